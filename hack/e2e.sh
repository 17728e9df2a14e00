#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e.sh: runs the Chainsaw suites of tests/e2e.
#
# Without KUBECONFIG, or with the local stack's: on the local stack, which is brought up with the
# operator of this tree. With another KUBECONFIG: on that cluster. It must run K-ORC and ESO and
# reach a Keystone, and the suites read from the environment what
# `go -C tests/stack run ./cmd/stack env` prints for the local stack. The operator is deployed there
# when IMG names an image that the cluster can pull; with IMG left at its default the suites test the
# operator that already runs there.
#
# E2E_SUITE=NAME runs one folder of tests/e2e, E2E_ARGS goes to chainsaw.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

if [[ -z ${KUBECONFIG:-} || $KUBECONFIG == "$(use_stack && echo "$KUBECONFIG")" ]]; then
	hack/stack-deploy.sh
	use_stack
else
	say "using the cluster of KUBECONFIG=$KUBECONFIG ($(kubectl config current-context))"
	if [[ $IMG != local.test/* ]]; then
		hack/render.sh | kubectl apply --server-side -f -
		kubectl -n "$OPERATOR_NAMESPACE" rollout status deployment -l app.kubernetes.io/name=c5c3-operator --timeout=3m
	fi
fi

chainsaw=$(hack/tools/tool.sh chainsaw)
mkdir -p bin
# The suites' scripts call kubectl, and the witness that asks Keystone and the store, by name.
go -C tests/e2e/witness build -o "$PWD/bin/witness" .
PATH=$PWD/bin:$PATH
type -P kubectl >/dev/null || PATH=$PATH:$(stack assets)
export PATH
# shellcheck disable=SC2086 # E2E_ARGS is a list of arguments
"$chainsaw" test --config tests/e2e/.chainsaw.yaml --test-dir "tests/e2e/${E2E_SUITE:-}" \
	--report-format JUNIT-TEST --report-path bin --report-name e2e-report ${E2E_ARGS:-}
