#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# olm-e2e.sh [CHAPTER...]: installs the operator with OLM on a local stack, by one Subscription to a catalog that
# also has K-ORC and ESO, upgrades it while orders live and are used, and breaks what can break. Ends with 0 only if
# everything held. The chapters are the files of tests/olm, see there; named ones run on what an earlier call left.
#
# The stack is one of its own (C5C3_STACK_NAME, default olm): there K-ORC and ESO are pods that OLM installs,
# and not processes. It stays up afterwards. Safe to repeat: what an earlier run installed is removed first.
# OLM_ORDERS is the number of credential orders that live through everything (default 50).
: "${C5C3_STACK_NAME:=olm}"
export C5C3_STACK_NAME
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
: "${OLM_ORDERS:=50}"

# The step that runs, when it began, and how long those before it took.
step='' started=$SECONDS times=()
# next_step NAME: what comes next; empty ends the last one.
next_step() {
	[[ -z $step ]] || times+=("$(printf '%5d s  %s' $((SECONDS - started)) "$step")")
	step=$1 started=$SECONDS
	[[ -z $step ]] || say "$step"
}

chapters=()
(($# > 0)) || set -- 'tests/olm/[0-9]-*.sh'
for name in "$@"; do
	# shellcheck disable=SC2206 # the first argument is a pattern
	found=(tests/olm/[0-9]-"$name".sh) && [[ -f ${found[0]} ]] || found=($name)
	[[ -f ${found[0]} ]] || { say "no chapter $name in tests/olm"; exit 2; }
	chapters+=("${found[@]}")
done

next_step "Bringing the stack and OLM up"
stack up --only keystone,kv,olm
use_stack
source tests/olm/lib.sh
for chapter in "${chapters[@]}"; do
	source "$chapter"
done
next_step ''
kubectl get clusterserviceversions,installplans,subscriptions,catalogsources -A
printf '%s\n' "${times[@]}" "$(printf '%5d s  in all' $SECONDS)"
say "everything held"
