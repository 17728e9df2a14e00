#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# modules.sh               prints the folder of every Go module in this repository.
# modules.sh --with-tests  prints those that hold a test, leaving the root module out.
#
# Nested modules are invisible to `go test ./...` in the root, so whoever wants all of them asks here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
files() { git ls-files --cached --others --exclude-standard -- "$@"; }

case ${1:-} in
'') files '*go.mod' | xargs -n1 dirname | sort -u ;;
--with-tests)
	files '*_test.go' | xargs -r -n1 dirname | sort -u | while read -r dir; do
		while [[ $dir != . && ! -f $dir/go.mod ]]; do dir=$(dirname "$dir"); done
		[[ $dir == . ]] || echo "$dir"
	done | sort -u
	;;
*) echo "usage: modules.sh [--with-tests]" >&2; exit 2 ;;
esac
