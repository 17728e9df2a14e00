# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A rehearsal of moving one kind to another stored version and dropping the former: three releases, between which
# every object is written anew, while its orders live and are used. docs/olm.md has the procedure.

installed=$(newest)
crd=keystoneapplicationcredentials.c5c3.io
# with_versions VERSION FIRST SECOND: the bundle's CRD has these versions, of which the first is stored. Their schemas
# are the same, as they have to be where nothing converts.
with_versions() {
	local file=$work/bundles/c5c3-operator-$1/manifests/c5c3.io_keystoneapplicationcredentials.yaml block version stored=true
	block=$(awk '/^status:/ { exit } inside; /^  versions:$/ { inside = 1 }' "$file")
	sed -i '/^  versions:$/q' "$file"
	for version in "${@:2}"; do
		sed "s/^    name: v1alpha1\$/    name: $version/; s/^    storage: true\$/    storage: $stored/" <<<"$block" >>"$file"
		stored=false
	done
}
# move VERSION FIRST [SECOND]: upgrades to a release of the same operator whose CRD has these versions.
move() {
	bundle "$1" "$image"
	with_versions "$@"
	load "c5c3-operator-$1"
	offer "{name: c5c3-operator.v$1, replaces: c5c3-operator.v$installed}"
	within 300 upgraded "$1"
	installed=$1
	within 120 all_ready
}
# migrate VERSION: has every object written in the version that is stored now, and says so to the API server. A
# conflict with the operator's own write is tried again.
migrate() {
	within 60 rewrite
	kubectl patch crd "$crd" --subresource status --type merge -p "{\"status\":{\"storedVersions\":[\"$1\"]}}"
	within 60 all_ready
}
rewrite() { kubectl get "$crd" -A -o json | kubectl replace -f -; }
stored() { kubectl get crd "$crd" -o jsonpath='{.status.storedVersions}'; }

image=local.test/c5c3/c5c3-operator:v$installed
start_consumer
next_step "A release stores credential orders as v1beta1, and they are written anew"
move "$(following)" v1beta1 v1alpha1
[[ $(stored) == '["v1alpha1","v1beta1"]' ]] || fail "stored are $(stored)"
migrate v1beta1

next_step "A release stores them as v1alpha1 again"
move "$(following)" v1alpha1 v1beta1
migrate v1alpha1

next_step "A release drops v1beta1"
move "$(following)" v1alpha1
[[ $(stored) == '["v1alpha1"]' ]] || fail "stored are $(stored)"
stop_consumer
same_credentials
