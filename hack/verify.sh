#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# verify.sh: fails when what is generated, the go.mod files or the formatting differ from what is
# committed. It judges by `git status`, so a tree that is dirty before it starts cannot be judged.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

if [[ -n $(git status --porcelain) ]]; then
	git status --short
	say "verify needs a clean tree: commit or remove these files first (nothing was checked)"
	exit 1
fi

status=0
problem() {
	say "verify: $*"
	status=1
}

make generate manifests bundle
make verify-invalid-cr-fixtures || problem "the admission corpora are not what their generators write"
make verify-coverage || problem "docs/contract-coverage.md and tests/coverage need a look: run 'make coverage'"
for module in $(hack/modules.sh); do
	go -C "$module" mod tidy -diff || problem "$module/go.mod or go.sum is not tidy: run 'go mod tidy' there"
done
unformatted=$(git ls-files '*.go' | xargs -r gofmt -l)
[[ -z $unformatted ]] || problem "not formatted, run gofmt -w on:"$'\n'"$unformatted"
for module in $(hack/modules.sh | grep -v -e '^hack/tools/' -e '^tests/stack/components/'); do
	go -C "$module" vet ./... || problem "go vet has findings in $module"
done
if [[ -n $(git status --porcelain) ]]; then
	git status --short
	git --no-pager diff
	problem "generated files differ from what is committed: commit the result of 'make generate manifests bundle'"
fi
exit $status
