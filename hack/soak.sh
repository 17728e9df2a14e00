#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# soak.sh: has $ORDERS credential orders rotate on a local stack for $DURATION while what they depend on is
# killed, and prints the ledger. Ends with 0 only if everything held. tests/soak/README.md explains it.
#
# The stack is one of its own (C5C3_STACK_NAME, default soak): its components are killed, which other users
# of a stack would take for a failure of theirs. It stays up afterwards, to be looked at or used again.
: "${C5C3_STACK_NAME:=soak}"
export C5C3_STACK_NAME
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

hack/stack-deploy.sh
use_stack
mkdir -p bin/soak
go build -o bin/soak/soak ./tests/soak
# Built once: `go run` for each kill would take longer than some of them.
go -C tests/stack build -o "$PWD/bin/soak/stack" ./cmd/stack
exec bin/soak/soak --duration "${DURATION:-10m}" --orders "${ORDERS:-20}" --seed "${SEED:-0}" \
	--out bin/soak --stack "$PWD/bin/soak/stack" --operator-namespace "$OPERATOR_NAMESPACE"
