#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kubectl.sh ARGS...: runs kubectl, the one that the local stack builds where none is installed.
set -euo pipefail
if command -v kubectl >/dev/null; then exec kubectl "$@"; fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
exec "$(go -C "$root/tests/stack" run ./cmd/stack assets)/kubectl" "$@"
