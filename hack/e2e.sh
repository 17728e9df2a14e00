#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e.sh: runs the Chainsaw suites of tests/e2e, and then looks for every secret they made in
# everything that was logged meanwhile. On the local stack it also holds the operator's rights against
# what it did, by the API server's audit log: an unused right fails the run as a refused request does.
#
# Without KUBECONFIG, or with the local stack's: on the local stack, which is brought up with the
# operator of this tree. With another KUBECONFIG: on that cluster. It must run K-ORC and ESO and
# reach a Keystone, and the suites read from the environment what
# `go -C tests/stack run ./cmd/stack env` prints for the local stack. The operator is deployed there
# when IMG names an image that the cluster can pull; with IMG left at its default the suites test the
# operator that already runs there.
#
# E2E_SUITE=NAME runs one suite, a folder of tests/e2e/parallel or tests/e2e/serial (which see for why
# there are two). E2E_ARGS goes to chainsaw. E2E_DEPLOY=no leaves the stack's operator as it is.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

began=$(date -u +%Y-%m-%dT%H:%M:%SZ)
folders=(parallel serial)
excluded=()
if [[ -z ${KUBECONFIG:-} || $KUBECONFIG == "$(use_stack && echo "$KUBECONFIG")" ]]; then
	[[ ${E2E_DEPLOY:-yes} == no ]] || hack/stack-deploy.sh
	use_stack
else
	say "using the cluster of KUBECONFIG=$KUBECONFIG ($(kubectl config current-context))"
	say "EXCLUDED there: the suites of tests/e2e/serial, which break and restart the local stack's Keystone,"
	say "and the judgement of the operator's rights, which needs the API server's audit log and all suites"
	folders=(parallel)
	if [[ $IMG != local.test/* ]]; then
		COMPONENTS=agentprimitives hack/render.sh | kubectl apply --server-side -f -
		kubectl -n "$OPERATOR_NAMESPACE" rollout status deployment -l app.kubernetes.io/name=c5c3-operator --timeout=3m
	elif [[ $(kubectl -n "$OPERATOR_NAMESPACE" get deployments -l app.kubernetes.io/name=c5c3-operator -o 'jsonpath={..args}') != *--credential-updates* ]]; then
		say "EXCLUDED too: the suite healing, because the operator there runs without config/agentprimitives"
		excluded=(--exclude-test-regex '^chainsaw$/^healing$')
	fi
fi
if [[ -n ${E2E_SUITE:-} ]]; then
	found=()
	for folder in "${folders[@]}"; do
		[[ ! -d tests/e2e/$folder/$E2E_SUITE ]] || found+=("$folder/$E2E_SUITE")
	done
	((${#found[@]} > 0)) || { say "no suite $E2E_SUITE in ${folders[*]/#/tests/e2e/}"; exit 2; }
	folders=("${found[@]}")
fi

chainsaw=$(hack/tools/tool.sh chainsaw)
mkdir -p bin/e2e
# What the suites' scripts call. Built once: `go run` in a loop that polls would be most of its work.
go -C tests/e2e/witness build -o "$PWD/bin/e2e/witness" .
go -C tests/stack build -o "$PWD/bin/e2e/stack" ./cmd/stack
# kubectl finds its plugin on PATH.
go build -ldflags "-s -w -X main.version=$VERSION" -o bin/e2e/kubectl-c5c3 ./cmd/kubectl-c5c3
kubectl=$(type -P kubectl || echo "$(stack assets)/kubectl")
ln -sf "$kubectl" bin/e2e/kubectl
PATH=$PWD/bin/e2e:$PATH
export PATH E2E=$PWD/tests/e2e WITNESS=$PWD/bin/e2e/witness STACK=$PWD/bin/e2e/stack OPERATOR_NAMESPACE

# Holds secrets while the suites run: nobody else may read it, and it goes with this script.
E2E_STATE=$(mktemp -d "${XDG_STATE_HOME:-$HOME/.local/state}/c5c3-e2e.XXXXXX")
export E2E_STATE
children=()
finish() {
	status=$?
	trap - EXIT INT TERM
	((${#children[@]} == 0)) || kill "${children[@]}" 2>/dev/null || true
	wait
	rm -rf "$E2E_STATE"
	exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

operator_logs=("$kubectl" -n "$OPERATOR_NAMESPACE" logs -l app.kubernetes.io/name=c5c3-operator --all-containers --prefix --ignore-errors --tail=-1)
# Everything is written down as it happens: suites delete what they make, Events go with their
# namespaces, logs with their pods.
record() {
	"$kubectl" proxy --unix-socket="$E2E_STATE/api.sock" >"$E2E_STATE/proxy.log" 2>&1 &
	children+=($!)
	while [[ ! -S $E2E_STATE/api.sock ]]; do
		kill -0 "${children[-1]}" || { cat "$E2E_STATE/proxy.log" >&2; return 1; }
		sleep 0.1
	done
	witness record --api "$E2E_STATE/api.sock" --out "$E2E_STATE/record" --namespaces chainsaw- &
	children+=($!)
	follow_logs >"$E2E_STATE/operator-followed.log" 2>&1 &
	children+=($!)
}
# follow_logs goes on with the next pod when one ends, and takes its kubectl along when it is ended.
follow_logs() {
	trap 'kill "$following" 2>/dev/null; exit 0' TERM
	while :; do
		"${operator_logs[@]}" -f &
		following=$!
		wait "$following" || true
		sleep 1
	done
}
record

failed=()
for folder in "${folders[@]}"; do
	say "suites of tests/e2e/$folder"
	parallel=()
	[[ $folder != serial* ]] || parallel=(--parallel 1)
	# shellcheck disable=SC2086 # E2E_ARGS is a list of arguments
	"$chainsaw" test --config tests/e2e/.chainsaw.yaml --test-dir "tests/e2e/$folder" --no-color="$([[ -t 1 ]] && echo false || echo true)" \
		--report-format JUNIT-TEST --report-path bin/e2e --report-name "${folder//\//-}" "${parallel[@]}" "${excluded[@]}" ${E2E_ARGS:-} \
		2>&1 | tee "$E2E_STATE/chainsaw-${folder//\//-}.log" || failed+=("tests/e2e/$folder")
done

say "looking for secrets in what was logged"
"${operator_logs[@]}" >"$E2E_STATE/operator.log" || true
"${operator_logs[@]}" --previous >"$E2E_STATE/operator-previous.log" 2>&1 || true # most have no previous one
: >"$E2E_STATE/metrics"
for pod in $("$kubectl" -n "$OPERATOR_NAMESPACE" get pods -l app.kubernetes.io/name=c5c3-operator -o name); do
	"$kubectl" get --raw "/api/v1/namespaces/$OPERATOR_NAMESPACE/pods/${pod#*/}:8080/proxy/metrics" >>"$E2E_STATE/metrics"
done
[[ -s $E2E_STATE/operator.log && -s $E2E_STATE/metrics ]] || { say "the operator has no logs or no metrics: nothing was looked at"; failed+=("leaks"); }
witness leaks --record "$E2E_STATE/record" "$E2E_STATE"/*.log "$E2E_STATE/metrics" || failed+=("leaks")

# Only all suites together use all rights.
if [[ ${folders[*]} == "parallel serial" && -z ${E2E_ARGS:-} ]]; then
	say "holding the operator's rights against what it did"
	"$kubectl" get clusterroles,clusterrolebindings,roles,rolebindings -A -o json >"$E2E_STATE/roles.json"
	# With the files that the API server has put aside since.
	witness rights --account "$OPERATOR_NAMESPACE/c5c3-operator" --roles "$E2E_STATE/roles.json" --since "$began" \
		"${C5C3_STACK_AUDIT_LOG%.log}"*.log || failed+=("rights")
fi

if ((${#failed[@]} > 0)); then
	say "FAILED: ${failed[*]} (reports in bin/e2e, 'make support-data' tells more)"
	exit 1
fi
say "all suites passed, no secret was found in logs, Events, conditions and metrics, and the operator did what it may"
