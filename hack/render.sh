#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# render.sh [--without-crds]: prints the manifests of config/default with the image $IMG, and with the
# $COMPONENTS of config/ (names of folders, such as agentprimitives) and the CRDs in config/crd/<component>.
#
# The image is set in an overlay below bin/ and not by `kustomize edit`, which would write the
# name of somebody's registry into a tracked file.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

override=$(image_override controller "$IMG")
resources=../../config/default components=
for component in $COMPONENTS; do
	components+=${components:+, }../../config/$component
	[[ ! -d config/crd/$component ]] || resources+=", ../../config/crd/$component"
done
mkdir -p bin/deploy
cat >bin/deploy/kustomization.yaml <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [$resources]
components: [$components]
images: [$override]
YAML
manifests=$("$(hack/tools/tool.sh kustomize)" build bin/deploy)
if [[ ${1:-} == --without-crds ]]; then
	# Documents are separated by a line of three dashes; kustomize sorts and prints nothing else there.
	awk 'BEGIN { RS = "---\n"; ORS = "" } !/(^|\n)kind: CustomResourceDefinition\n/ { print "---\n" $0 }' <<<"$manifests"
else
	printf '%s\n' "$manifests"
fi
