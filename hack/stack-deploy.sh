#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stack-deploy.sh: brings the local stack up with the operator of this tree running in it as a pod
# with its own ServiceAccount, and returns when that pod is available. It determines CredentialUpdateRequests
# too (config/agentprimitives), or what else $COMPONENTS names. Safe to repeat.
export COMPONENTS=${COMPONENTS-agentprimitives}
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

stack up >&2
hack/image.sh
stack load-image "$IMG" "$(realpath "$IMAGE_TAR")" >&2
use_stack

say "deploying $IMG into $KUBECONFIG"
# By way of the file that others install from, so that what is tested is what they get.
DIST_DIR=bin/dist hack/dist.sh
kubectl apply --server-side -f bin/dist/install.yaml >&2
# The tag stays the same from build to build, so an unchanged Deployment would keep the old image.
kubectl -n "$OPERATOR_NAMESPACE" rollout restart deployment -l app.kubernetes.io/name=c5c3-operator >&2
kubectl -n "$OPERATOR_NAMESPACE" rollout status deployment -l app.kubernetes.io/name=c5c3-operator --timeout=3m >&2
