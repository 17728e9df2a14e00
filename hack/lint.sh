#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# lint.sh [ARGS...]: runs golangci-lint with .golangci.yml on every module that holds code of ours.
# The stack's components are left out: each is a `main` that links somebody else's program, and
# type-checking all of Kubernetes for 50 lines costs more than the linters can find there.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

linter=$(hack/tools/tool.sh golangci-lint)
root=$PWD
status=0
for module in $(hack/modules.sh | grep -v -e '^hack/tools/' -e '^tests/stack/components/'); do
	say "linting $module"
	# Every module is linted even when an earlier one has findings.
	(cd "$module" && "$linter" run --allow-serial-runners --config "$root/.golangci.yml" "$@" ./...) || status=1
done
exit $status
