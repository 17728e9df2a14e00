#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bundle-validate.sh: has operator-sdk validate both flavours of the bundle: what it always checks, and every optional
# validator that a pipeline of OperatorHub runs. Fails on an error, and on a warning that config/manifests/explained-warnings.yaml
# does not explain.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

: "${BUNDLE_DIR:=bundle}"
: "${OPERATORHUB_DIR:=bin/operatorhub}"
export BUNDLE_DIR OPERATORHUB_DIR
hack/operatorhub.sh
operator_sdk=$(hack/tools/tool.sh operator-sdk)
results=$(mktemp)
trap 'rm -f "$results"' EXIT

for bundle in "$BUNDLE_DIR" "$OPERATORHUB_DIR"/operators/c5c3-operator/*/; do
	for validators in suite=operatorframework name=operatorhub name=community name=multiarch; do
		values=()
		# The Kubernetes that we test, so that an API that it does not serve any more is an error.
		[[ $validators == name=multiarch ]] || values=(--optional-values=k8s-version=1.36)
		say "operator-sdk bundle validate $bundle --select-optional $validators"
		# It ends with 1 on an error, which its output says as well; what says nothing is caught by findings.
		"$operator_sdk" bundle validate "$bundle" --select-optional "$validators" "${values[@]}" -o json-alpha1 >>"$results" || true
	done
done
go -C hack/bundle run . findings -explained "$PWD/config/manifests/explained-warnings.yaml" <"$results"
