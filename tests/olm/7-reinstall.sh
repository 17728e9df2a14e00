# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The operator is uninstalled with orders in place: nothing is revoked. It is installed again, this time from a
# catalog that runs as a pod and is found by cluster DNS, and goes on with the orders.

installed=$(newest)
next_step "Uninstalling with orders in place revokes nothing"
start_consumer
kubectl -n "$namespace" delete subscriptions.operators.coreos.com c5c3-operator
kubectl -n "$namespace" delete "$csvs" "c5c3-operator.v$installed"
within 120 absent -n "$namespace" get pods -l app.kubernetes.io/name=c5c3-operator
kubectl get crd controlplanes.c5c3.io keystoneapplicationcredentials.c5c3.io >/dev/null
same_credentials

next_step "A catalog in a pod, found by cluster DNS, installs it again"
kubectl -n olm delete catalogsources.operators.coreos.com c5c3
catalog_source "image: '$(stack load-catalog local.test/c5c3/catalog:dev "$work/configs")', grpcPodConfig: {securityContextConfig: restricted}"
catalog_ready() {
	local now
	now=$(kubectl -n olm get catalogsources.operators.coreos.com c5c3 -o jsonpath='{.status.connectionState.lastObservedState}')
	[[ $now == READY ]] || { echo "the catalog is '$now'"; return 1; }
}
within 120 catalog_ready
subscribe
within 300 upgraded "$installed"
within 120 all_ready
stop_consumer
same_credentials

next_step "An order that is deleted now is revoked"
kubectl -n tenant-a delete keystoneapplicationcredentials.c5c3.io workflow-appcred --timeout=120s
listed=$(credentials | wc -l)
((listed == OLM_ORDERS)) || fail "Keystone lists $listed credentials for $OLM_ORDERS orders"

# What follows is served by a process again.
kubectl -n olm delete catalogsources.operators.coreos.com c5c3
serve
catalog_source "address: '$C5C3_STACK_HOST_ADDRESS:50051'"
