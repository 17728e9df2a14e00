#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bundle.sh: generates the OLM bundle from config/manifests into bundle/, with bundle.Dockerfile beside it.
#
# Without variables it writes what is committed. Whoever needs another version, such as a release or the rehearsal
# of an upgrade, sets some of these:
#   BUNDLE_DIR               where to; any other place than bundle/ gets its bundle.Dockerfile beside itself
#   BUNDLE_VERSION           x.y.z without a v                                 (spec.version of the base)
#   BUNDLE_OPERATOR_IMG      the operator's image    (ghcr.io/c5c3/c5c3-operator:v$BUNDLE_VERSION)
#   BUNDLE_CREATED           yyyy-mm-ddThh:mm:ssZ                              (createdAt of the base)
#   BUNDLE_REPLACES          ClusterServiceVersion that this one replaces      (none)
#   BUNDLE_CHANNELS, BUNDLE_DEFAULT_CHANNEL
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

base=config/manifests/bases/c5c3-operator.clusterserviceversion.yaml
: "${BUNDLE_DIR:=bundle}"
: "${BUNDLE_VERSION:=$(awk '$1 == "version:" { print $2; exit }' "$base")}"
: "${BUNDLE_OPERATOR_IMG:=ghcr.io/c5c3/c5c3-operator:v$BUNDLE_VERSION}"
: "${BUNDLE_CREATED:=}"
: "${BUNDLE_REPLACES:=}"
: "${BUNDLE_CHANNELS:=candidate,stable}"
: "${BUNDLE_DEFAULT_CHANNEL:=stable}"
[[ $BUNDLE_VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+ ]] || {
	echo "bundle.sh: BUNDLE_VERSION=$BUNDLE_VERSION is no x.y.z" >&2
	exit 2
}

kustomize=$(hack/tools/tool.sh kustomize)
operator_sdk=$(hack/tools/tool.sh operator-sdk)

# In a folder of its own: operator-sdk writes bundle.Dockerfile into the current folder, whatever it is told, and
# leaves behind what an earlier run wrote and this one does not.
mkdir -p bin
work=$(mktemp -d "$PWD/bin/bundle.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp PROJECT "$work/"
override=$(image_override controller "$BUNDLE_OPERATOR_IMG")
cat >"$work/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../config/manifests]
images: [$override]
YAML
# By way of a file: of a pipe, a failure of kustomize would only be seen when the rest is done.
"$kustomize" build "$work" >"$work/manifests.yaml"
# operator-sdk reads standard input only when it is a pipe.
(cd "$work" && cat manifests.yaml | "$operator_sdk" generate bundle --quiet --overwrite --package c5c3-operator \
	--version "$BUNDLE_VERSION" --channels "$BUNDLE_CHANNELS" --default-channel "$BUNDLE_DEFAULT_CHANNEL" --output-dir bundle)
go -C hack/bundle run . complete -base "$PWD/$base" -icon "$PWD/config/manifests/icon.svg" \
	-created "$BUNDLE_CREATED" -replaces "$BUNDLE_REPLACES" "$work/bundle"
cp config/manifests/dependencies.yaml "$work/bundle/metadata/dependencies.yaml"

rm -rf "$BUNDLE_DIR"
mkdir -p "$(dirname "$BUNDLE_DIR")"
mv "$work/bundle" "$BUNDLE_DIR"
# The paths in it are relative to the folder that it is in, from which an image is built.
sed "s|^COPY bundle/|COPY $(basename "$BUNDLE_DIR")/|" "$work/bundle.Dockerfile" >"$(dirname "$BUNDLE_DIR")/bundle.Dockerfile"
say "version $BUNDLE_VERSION of the bundle, with $BUNDLE_OPERATOR_IMG, is in $BUNDLE_DIR"
