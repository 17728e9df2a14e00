#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test.sh [GO TEST ARGS...]: runs the tests of every module of ours.
#
# The envtests start a real kube-apiserver and etcd. KUBEBUILDER_ASSETS names their folder; where it
# is not set or holds no kube-apiserver, the ones that the local stack builds are used, so nothing is
# downloaded. The first build of these takes 15 to 25 minutes on two cores and is kept for good.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

if [[ ! -x ${KUBEBUILDER_ASSETS:-}/kube-apiserver ]]; then
	KUBEBUILDER_ASSETS=$(stack assets)
fi
export KUBEBUILDER_ASSETS

# Two packages at a time: every envtest brings a control plane of about half a GiB.
go test -p "${TEST_PACKAGES_AT_ONCE:-2}" -timeout 20m "$@" ./...
for module in $(hack/modules.sh --with-tests); do
	say "tests of $module"
	vet=()
	# A component links somebody else's program, and vet goes through all that it depends on: minutes
	# for External Secrets alone. What is ours in it is a main of some lines.
	[[ $module != tests/stack/components/* ]] || vet=(-vet=off)
	go -C "$module" test "${vet[@]}" -timeout 20m "$@" ./...
done
