#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh MODULE OUT VERSION: called by ../tool.sh, builds chainsaw into OUT.
#
# chainsaw v0.2.12 implements an internal interface of the testing package, which Go 1.26 widened
# by one method, so the released module does not compile. It gets that method here, at build time,
# in a copy outside the repository: a fork would have to be kept, and `go build -overlay` refuses
# to touch files of the module cache. Drop this script once a release of chainsaw has the method.
set -euo pipefail
module=$1 out=$2 version=$3

cp "$module/go.mod" "$module/go.sum" "$out/"
# On a machine that never downloaded the module `go list` succeeds and prints an empty folder.
go -C "$module" mod download github.com/kyverno/chainsaw
source=$(go -C "$module" list -m -f '{{.Dir}}' github.com/kyverno/chainsaw)
cp -r "$source" "$out/src"
chmod -R u+w "$out/src" # the module cache is read-only
printf 'package internal\n\nfunc (*TestDeps) ModulePath() string { return "" }\n' >"$out/src/pkg/runner/internal/modulepath.go"
go -C "$out" mod edit -replace "github.com/kyverno/chainsaw@$version=./src"
go -C "$out" build -ldflags="-s -w -X github.com/kyverno/chainsaw/pkg/version.BuildVersion=$version" \
	-o "$out/chainsaw" github.com/kyverno/chainsaw
