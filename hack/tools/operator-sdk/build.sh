#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh MODULE OUT VERSION: called by ../tool.sh, builds operator-sdk into OUT.
#
# Two things that a plain build lacks: containers/image without cgo needs its own OpenPGP (the default binds to
# gpgme), and operator-sdk names its version, which it writes into what it generates, only when told at link time.
set -euo pipefail
module=$1 out=$2 version=$3

variables=github.com/operator-framework/operator-sdk/internal/version
go -C "$module" build -tags containers_image_openpgp \
	-ldflags="-s -w -X $variables.Version=$version -X $variables.GitVersion=$version -X $variables.ImageVersion=$version" \
	-o "$out/operator-sdk" github.com/operator-framework/operator-sdk/cmd/operator-sdk
