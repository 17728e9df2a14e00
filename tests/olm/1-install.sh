# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# One Subscription installs the operator, K-ORC and ESO from one catalog, and the samples become Ready.

next_step "Removing what an earlier run installed"
if kubectl get crd controlplanes.c5c3.io >/dev/null 2>&1; then
	kubectl -n tenant-a delete --ignore-not-found --wait=false "$kinds" --all
	within 300 absent -n tenant-a get "$kinds"
	kubectl -n openstack delete --ignore-not-found controlplanes.c5c3.io --all --timeout=120s
fi
kubectl -n "$namespace" delete --ignore-not-found subscriptions.operators.coreos.com,"$csvs" --all
kubectl delete --ignore-not-found --timeout=120s namespace "$namespace"
kubectl -n olm delete --ignore-not-found catalogsources.operators.coreos.com c5c3
rm -rf "$work/bundles" "$work/entries"

next_step "Making bundles and catalog"
stack bundles "$work/bundles"
load orc
load external-secrets-operator
release "$bundled"
offer "{name: c5c3-operator.v$bundled}"

next_step "One Subscription installs the operator $bundled, K-ORC and ESO"
kubectl apply --server-side -f - <<YAML
apiVersion: v1
kind: Namespace
metadata:
  name: $namespace
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: c5c3-operator, namespace: $namespace}
spec: {}
YAML
catalog_source "address: '$C5C3_STACK_HOST_ADDRESS:50051'"
subscribe
for csv in "c5c3-operator.v$bundled" orc.v2.6.0 external-secrets-operator.v0.16.2; do within 300 succeeded "$csv"; done

next_step "The samples become Ready"
stack stores
mkdir -p "$work/samples"
cat >"$work/samples/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../../config/samples]
patches:
  - target: {kind: ControlPlane}
    patch: |-
      apiVersion: c5c3.io/v1alpha1
      kind: ControlPlane
      metadata: {name: any}
      spec: {services: {keystone: {mode: External, external: {authURL: "$OS_AUTH_URL"}}}}
YAML
kubectl create namespace tenant-a --dry-run=client -o yaml | kubectl apply --server-side -f -
"$(hack/tools/tool.sh kustomize)" build "$work/samples" | kubectl apply --server-side --force-conflicts -f -
within 180 is_ready openstack controlplanes.c5c3.io cp
within 300 all_ready

next_step "$OLM_ORDERS more credential orders become Ready"
for i in $(seq "$OLM_ORDERS"); do
	printf -- '---\napiVersion: c5c3.io/v1alpha1\nkind: KeystoneApplicationCredential\nmetadata: {name: live-%02d, namespace: tenant-a}\n' "$i"
	printf 'spec:\n  controlPlaneRef: {name: cp, namespace: openstack}\n  userRef: {name: workflow}\n  projectRef: {name: workflow-project}\n'
	printf '  rotation: {interval: 720h, gracePeriod: 24h}\n'
done | kubectl apply --server-side -f - >/dev/null
within 900 all_ready
listed=$(credentials | wc -l)
((listed == OLM_ORDERS + 1)) || fail "Keystone lists $listed credentials for $((OLM_ORDERS + 1)) orders"
