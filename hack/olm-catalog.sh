#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# olm-catalog.sh: renders our file-based catalog into bin/catalog from the templates in catalog/, with the
# operator's bundle of this tree and bundles of K-ORC and ESO made from their own manifests, and has opm
# validate it. The first time this builds opm (with OLM, about 15 minutes on two cores).
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

opm=$(dirname "$(stack build --only olm)")/opm
rm -rf bin/catalog-bundles
stack bundles "$PWD/bin/catalog-bundles"
# The one image of a template, so that a version stands in one place.
image() { sed -n 's/^    image: *//p' "catalog/$1.yaml"; }
go run ./hack/catalog -opm "$opm" -out bin/catalog \
	-bundle "$(image c5c3-operator)=bundle" \
	-bundle "$(image orc)=bin/catalog-bundles/orc" \
	-bundle "$(image external-secrets-operator)=bin/catalog-bundles/external-secrets-operator" \
	catalog/*.yaml
say "bin/catalog is valid: serve it with 'opm serve bin/catalog', or put it into an image below /configs"
