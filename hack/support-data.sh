#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# support-data.sh: prints what is needed to understand a failure: the stack's state, the operator's
# pods and the tail of their logs, every order and what the operator made for it, and the Events.
# It never reads a Secret, so its output can go into a bug report. Each part may fail by itself.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
set +e

if [[ -z ${KUBECONFIG:-} ]]; then
	echo "### stack"
	stack status 2>&1
	use_stack
	[[ -s $KUBECONFIG ]] || { echo "the local stack has no cluster, and KUBECONFIG is not set: that was all"; exit 0; }
fi
show() {
	printf '\n### kubectl %s\n' "$*"
	timeout 30 hack/kubectl.sh --request-timeout=20s "$@" 2>&1
}
kinds_of() {
	timeout 30 hack/kubectl.sh --request-timeout=20s api-resources --api-group="$1" --verbs=list -o name 2>/dev/null | paste -sd,
}

show version
show get nodes -o wide
show -n "$OPERATOR_NAMESPACE" get pods -o wide
show -n "$OPERATOR_NAMESPACE" describe pods
show -n "$OPERATOR_NAMESPACE" logs -l app.kubernetes.io/name=c5c3-operator --all-containers --prefix --tail=200
show -n "$OPERATOR_NAMESPACE" logs -l app.kubernetes.io/name=c5c3-operator --all-containers --prefix --tail=50 --previous
orders=$(kinds_of c5c3.io)
[[ -z $orders ]] || show describe "$orders" -A
for group in openstack.k-orc.cloud external-secrets.io; do
	kinds=$(kinds_of "$group")
	[[ -z $kinds ]] || show get "$kinds" -A -o \
		'custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,DELETING:.metadata.deletionTimestamp,CONDITIONS:.status.conditions[*].type,STATUS:.status.conditions[*].status,REASON:.status.conditions[*].reason,MESSAGE:.status.conditions[*].message'
done
show get events -A --sort-by=.lastTimestamp
exit 0
