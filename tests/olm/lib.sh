# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by hack/olm-e2e.sh before the chapters: what they share. Nothing here prints a secret.
# What one chapter leaves to the next is in the cluster and below $work: entries, the catalog's channel, one
# entry a line, and bundles/NAME with bundles/NAME.reference, a bundle and its image.
namespace=$OPERATOR_NAMESPACE work=$PWD/bin/olm
csvs=clusterserviceversions.operators.coreos.com
kinds=keystoneapplicationcredentials.c5c3.io,keystoneroleassignments.c5c3.io,keystoneusers.c5c3.io,keystoneprojects.c5c3.io
bundled=$(sed -n 's/^  version: *//p' bundle/manifests/c5c3-operator.clusterserviceversion.yaml)

mkdir -p "$work/bundles"
go -C tests/e2e/witness build -o "$work/witness" .
go -C tests/stack build -o "$work/stack" ./cmd/stack
go build -o "$work/catalog" ./hack/catalog
stack() { "$work/stack" "$@"; }
kubectl() { "$C5C3_STACK_KUBECTL" "$@"; }
witness() { "$work/witness" "$@"; }

fail() { say "FAILED in '$step': $*"; exit 1; }
# within SECONDS COMMAND...: repeats the command until it succeeds, and fails with its last words.
within() {
	local limit=$((SECONDS + $1)) words
	shift
	while ! words=$("$@" 2>&1); do
		((SECONDS < limit)) || fail "not in time: $* ($words)"
		sleep 1
	done
}
# throughout SECONDS COMMAND...: the command holds, again and again, for that long.
throughout() {
	local limit=$((SECONDS + $1)) words
	shift
	while ((SECONDS < limit)); do
		words=$("$@" 2>&1) || fail "does not hold any more: $* ($words)"
		sleep 1
	done
}

# Processes of ours, by number: the catalog's server and the consumer.
opm='' consumer=''
finish() {
	status=$?
	trap - EXIT INT TERM
	# First, so that nothing is written down as an attempt any more.
	[[ -z $consumer ]] || kill "$consumer" 2>/dev/null || true
	if ((status != 0)); then
		explain >&2 || true
		say "the stack is still up: C5C3_STACK_NAME=$C5C3_STACK_NAME make support-data, or look at it by yourself"
	fi
	[[ -z $opm ]] || kill "$opm" 2>/dev/null || true
	wait
	exit "$status"
}
explain() {
	kubectl get installplans,subscriptions,catalogsources,operatorconditions -A
	kubectl -n "$namespace" get subscriptions.operators.coreos.com -o jsonpath='{range .items[*].status.conditions[*]}{.type} {.status} {.reason}: {.message}{"\n"}{end}'
	kubectl -n "$namespace" get "$csvs" -o jsonpath='{range .items[*]}{.metadata.name} {.status.phase} {.status.reason}: {.status.message}{"\n"}{end}'
	kubectl -n "$namespace" get pods,jobs -o wide
	kubectl -n "$namespace" get events --sort-by=.lastTimestamp | tail -30
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

## Releases and the catalog

# image VERSION: the operator's image of that version, on the node.
image() {
	IMG=local.test/c5c3/c5c3-operator:v$1 VERSION=v$1 IMAGE_TAR=bin/olm/operator.tar hack/image.sh
	stack load-image "local.test/c5c3/c5c3-operator:v$1" "$work/operator.tar"
}
# bundle VERSION IMAGE: a folder with the bundle of that version, made of the one in bundle/.
bundle() {
	local folder=$work/bundles/c5c3-operator-$1
	rm -rf "$folder"
	cp -r bundle "$folder"
	sed -i -e "s|c5c3-operator\.v${bundled//./\\.}|c5c3-operator.v$1|; s|^  version: ${bundled//./\\.}\$|  version: $1|" \
		-e "s|ghcr\.io/c5c3/c5c3-operator:[^ \"']*|$2|" "$folder"/manifests/c5c3-operator.clusterserviceversion.yaml
	grep -q "image: $2" "$folder"/manifests/c5c3-operator.clusterserviceversion.yaml || fail "the bundle of $1 does not name $2"
}
# load NAME: the image of a bundle's folder, on the node.
load() { stack load-bundle "local.test/c5c3/$1-bundle:dev" "$work/bundles/$1" >"$work/bundles/$1.reference"; }
# release VERSION: image and bundle of a version that is all right.
release() {
	image "$1"
	bundle "$1" "local.test/c5c3/c5c3-operator:v$1"
	load "c5c3-operator-$1"
}
# newest, following: the highest version that was ever offered, and the one to make next.
newest() { sed -n 's/.*name: c5c3-operator\.v\([0-9.]*\).*/\1/p' "$work/entries" | sort -V | tail -1; }
following() {
	local version
	version=$(newest)
	echo "${version%.*}.$((${version##*.} + 1))"
}

# render: the catalog of the entries, with K-ORC and ESO as ours has them but from the node's images, in $work/configs.
render() {
	local name templates=$work/templates arguments=() entries
	rm -rf "$templates"
	mkdir -p "$templates"
	entries=$(paste -sd, "$work/entries")
	{
		printf 'schema: olm.template.basic\nentries:\n'
		printf -- '- {schema: olm.package, name: c5c3-operator, defaultChannel: stable}\n'
		printf -- '- {schema: olm.channel, package: c5c3-operator, name: %s, entries: [%s]}\n' candidate "$entries" stable "$entries"
		for name in $(sed -n 's/.*name: c5c3-operator\.v\([0-9.]*\).*/c5c3-operator-\1/p' "$work/entries"); do
			printf -- '- {schema: olm.bundle, image: "%s"}\n' "$(<"$work/bundles/$name.reference")"
		done
	} >"$templates/c5c3-operator.yaml"
	for name in orc external-secrets-operator; do
		sed "s|image: .*|image: $(<"$work/bundles/$name.reference")|" "catalog/$name.yaml" >"$templates/$name.yaml"
	done
	for name in "$work"/bundles/*.reference; do arguments+=(-bundle "$(<"$name")=${name%.reference}"); done
	"$work/catalog" -opm "$C5C3_STACK_OPM" -out "$work/configs" "${arguments[@]}" "$templates"/*.yaml
}
# serve: opm serves what was rendered, as a process of this machine, to a CatalogSource with spec.address.
serve() {
	if [[ -n $opm ]]; then
		kill "$opm" 2>/dev/null || true
		wait "$opm" 2>/dev/null || true
	fi
	"$C5C3_STACK_OPM" serve "$work/configs" --port 50051 --pprof-addr '' --termination-log "$work/opm.termination" >"$work/opm.log" 2>&1 &
	opm=$!
	within 60 listens
}
listens() { (exec 3<>"/dev/tcp/$C5C3_STACK_HOST_ADDRESS/50051") && kill -0 "$opm"; }
# offer ENTRY: adds an entry, in YAML's short form, to the channel that is served.
offer() {
	echo "$1" >>"$work/entries"
	render
	serve
}
# catalog_source FIELDS: the CatalogSource, with these fields of its spec.
catalog_source() {
	kubectl apply --server-side --force-conflicts -f - <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: c5c3, namespace: olm}
spec: {sourceType: grpc, displayName: c5c3, $1}
YAML
}
# subscribe [APPROVAL]: to the channel stable.
subscribe() {
	kubectl apply --server-side --force-conflicts -f - <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: c5c3-operator, namespace: $namespace}
spec: {name: c5c3-operator, channel: stable, source: c5c3, sourceNamespace: olm, installPlanApproval: ${1:-Automatic}}
YAML
}

## What OLM says

phase() { kubectl -n "$namespace" get "$csvs" "$1" -o jsonpath='{.status.phase}' --ignore-not-found; }
succeeded() {
	local now
	now=$(phase "$1") && [[ $now == Succeeded ]] || { echo "$1 is '$now'"; return 1; }
}
absent() { [[ -z $(kubectl "$@" -o name --ignore-not-found) ]] || { echo "$* is still there"; return 1; }; }
# upgraded VERSION: the CSV of that version is the one that serves, and the one before is gone.
upgraded() {
	succeeded "c5c3-operator.v$1" || return 1
	[[ $(kubectl -n "$namespace" get "$csvs" -o name | grep -c '/c5c3-operator\.') == 1 ]] || { echo "more than one version is there"; return 1; }
}
# serving VERSION: the operator of that version is available.
serving() {
	local image
	image=$(kubectl -n "$namespace" get pods -l app.kubernetes.io/name=c5c3-operator \
		-o 'jsonpath={range .items[?(@.status.containerStatuses[0].ready==true)]}{.spec.containers[0].image}{"\n"}{end}')
	grep -qxF "local.test/c5c3/c5c3-operator:v$1" <<<"$image" || { echo "ready is '$image'"; return 1; }
}

## Orders and their consumer

is_ready() { # NAMESPACE KIND NAME
	[[ $(kubectl -n "$1" get "$2" "$3" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == True ]] ||
		{ kubectl -n "$1" get "$2" "$3" -o 'jsonpath={.kind} {.metadata.name}: {.status.conditions[?(@.type=="Ready")].message}'; return 1; }
}
all_ready() {
	local waiting
	waiting=$(kubectl -n tenant-a get "$kinds" -o 'jsonpath={range .items[*]}{.kind} {.metadata.name}: {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}{"\n"}{end}' | grep -v ': True ') || true
	[[ -z $waiting ]] || { echo "$(wc -l <<<"$waiting") orders are not Ready, $(head -1 <<<"$waiting") among them"; return 1; }
}
# credentials: what Keystone lists of the orders' user.
credentials() { witness credentials "$(kubectl -n tenant-a get keystoneusers.c5c3.io workflow -o jsonpath='{.status.userID}')" | sort; }

# start_consumer: logs in with one delivered Secret after the other, and writes down how each attempt ended. One whose
# Secret cannot be read has failed too; the two statuses tell it from a refusal. 130 is an interrupt of the whole run,
# which bash lets through to the consumer's commands.
start_consumer() {
	: >"$work/logins"
	: >"$work/logins.said"
	credentials >"$work/credentials.before"
	consume &
	consumer=$!
}
consume() {
	local secret ended
	while :; do
		for secret in $(seq -f 'live-%02g-credentials' "$OLM_ORDERS"); do
			ended=accepted
			kubectl -n tenant-a get secret "$secret" -o json 2>>"$work/logins.said" | witness login >/dev/null 2>>"$work/logins.said" ||
				ended="$(date -u +%T) reading $secret ended with ${PIPESTATUS[0]}, the login with ${PIPESTATUS[1]}"
			echo "$ended" >>"$work/logins"
		done
	done
}
# stop_consumer: after a whole round more, no login may have failed.
stop_consumer() {
	local seen refused
	seen=$(wc -l <"$work/logins")
	within 300 logins_beyond $((seen + OLM_ORDERS))
	kill "$consumer"
	wait "$consumer" 2>/dev/null || true
	consumer=''
	refused=$(grep -vcx accepted "$work/logins") || true
	[[ $refused == 0 ]] || { grep -vx accepted "$work/logins" >&2; sort "$work/logins.said" | uniq -c >&2; fail "$refused of $(wc -l <"$work/logins") logins failed"; }
	say "held: $(wc -l <"$work/logins") logins and none refused"
}
logins_beyond() { (($(wc -l <"$work/logins") >= $1)) || { echo "$(wc -l <"$work/logins") logins"; return 1; }; }
# same_credentials: Keystone lists what it listed when the consumer started.
same_credentials() {
	credentials >"$work/credentials.after"
	diff "$work/credentials.before" "$work/credentials.after" || fail "Keystone holds other credentials than before"
	say "held: the same $(wc -l <"$work/credentials.after") credentials as before"
}
