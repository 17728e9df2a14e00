#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# operatorhub.sh: makes of bundle/ what k8s-operatorhub/community-operators takes, in $OPERATORHUB_DIR, and holds it
# against the rules of the pipeline there. The bundle is ours without dependencies.yaml:
# docs/decisions/0020-two-flavours-of-one-bundle.md. Copy operators/ into a fork, in one signed-off commit.
#
# From the second version on, COMMUNITY_OPERATORS names a clone of that repository: the versions in it are laid out and
# checked too, since the update graph is one of them all.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

: "${BUNDLE_DIR:=bundle}"
: "${OPERATORHUB_DIR:=bin/operatorhub}"
: "${COMMUNITY_OPERATORS:=}"
version=$(awk '$1 == "version:" { version = $2 } END { print version }' "$BUNDLE_DIR/manifests/c5c3-operator.clusterserviceversion.yaml")
folder=$OPERATORHUB_DIR/operators/c5c3-operator

rm -rf "$folder"
mkdir -p "$folder"
[[ -z $COMMUNITY_OPERATORS ]] || cp -r "$COMMUNITY_OPERATORS/operators/c5c3-operator/." "$folder"
[[ ! -e $folder/$version ]] || {
	say "version $version is published, and what is published never changes: generate the next with BUNDLE_VERSION and BUNDLE_REPLACES"
	exit 1
}
cp -r "$BUNDLE_DIR" "$folder/$version"
rm "$folder/$version/metadata/dependencies.yaml"
cp config/manifests/ci.yaml "$folder/ci.yaml"
go -C hack/bundle run . check "$(realpath "$OPERATORHUB_DIR")"
say "version $version for OperatorHub is in $folder"
