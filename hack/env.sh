# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by the scripts beside it: the defaults of the Makefile for when a script is called
# without it, and the few commands that they share. Leaves the caller in the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
: "${IMG:=local.test/c5c3/c5c3-operator:dev}"
: "${IMAGE_TAR:=bin/c5c3-operator-image.tar}"
: "${IMAGE_PLATFORMS:=linux/amd64}"
: "${IMAGE_BUILDER:=go}"
: "${OPERATOR_NAMESPACE:=c5c3-operator-system}"
# Components of config/ that config/default is rendered with, with the CRDs that come with them.
: "${COMPONENTS:=}"
: "${VERSION:=$(git describe --tags --always --dirty 2>/dev/null || echo dev)}"
: "${REVISION:=$(git rev-parse HEAD 2>/dev/null || echo unknown)}"

stack() { go -C tests/stack run ./cmd/stack "$@"; }
kubectl() { hack/kubectl.sh "$@"; }
# use_stack exports what the local stack's clients need, KUBECONFIG first. It fails where the stack
# names none: kubectl would otherwise fall back to whatever cluster the user's own file points at.
use_stack() {
	local variables
	unset KUBECONFIG
	variables=$(stack env)
	set -a
	eval "$variables"
	set +a
	: "${KUBECONFIG:?the local stack names no kubeconfig}"
}
say() { printf '==> %s\n' "$*" >&2; }
# image_override NAME REFERENCE prints the element of a kustomization's images that has REFERENCE deployed for NAME.
image_override() {
	if [[ $2 == *@* ]]; then
		echo "{name: $1, newName: ${2%@*}, digest: ${2#*@}}"
	elif [[ ${2##*/} == *:* ]]; then # a colon before the last slash belongs to a registry's port
		echo "{name: $1, newName: ${2%:*}, newTag: ${2##*:}}"
	else
		echo "the image $2 has neither tag nor digest" >&2
		return 2
	fi
}
