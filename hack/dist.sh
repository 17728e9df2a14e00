#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# dist.sh: writes $DIST_DIR/install.yaml (dist/ by default): one file that installs the whole operator, with the
# image $IMG, on a cluster without OLM.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
: "${DIST_DIR:=dist}"

mkdir -p "$DIST_DIR"
# A render that fails half-way leaves the file of before.
hack/render.sh >"$DIST_DIR/install.yaml.new"
mv "$DIST_DIR/install.yaml.new" "$DIST_DIR/install.yaml"
say "$DIST_DIR/install.yaml installs $IMG: kubectl apply --server-side -f $DIST_DIR/install.yaml"
