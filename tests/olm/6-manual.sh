# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# With manual approval a new version is offered and waits for somebody's word.

installed=$(newest) next=$(following)
plan() { kubectl -n "$namespace" get installplans.operators.coreos.com -o 'jsonpath={range .items[?(@.spec.approved==false)]}{.metadata.name} {.spec.clusterServiceVersionNames}{"\n"}{end}' | grep -F "c5c3-operator.v$next" || { echo "no plan waits for approval"; return 1; }; }
unapproved() {
	plan >/dev/null && absent -n "$namespace" get "$csvs" "c5c3-operator.v$next" && succeeded "c5c3-operator.v$installed"
}

next_step "Manual approval: $next waits"
subscribe Manual
release "$next"
offer "{name: c5c3-operator.v$next, replaces: c5c3-operator.v$installed}"
within 120 unapproved
throughout 15 unapproved

next_step "It is approved"
kubectl -n "$namespace" patch installplans.operators.coreos.com "$(plan | cut -d' ' -f1)" --type merge -p '{"spec":{"approved":true}}'
within 180 upgraded "$next"
within 60 serving "$next"
within 120 all_ready
subscribe
