# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# An upgrade waits while a rotation stands between its mint and its delivery, and goes on by itself after it.

installed=$(newest) next=$(following)
upgradeable() { # STATUS
	local said
	said=$(kubectl -n "$namespace" get operatorcondition "c5c3-operator.v$installed" -o 'jsonpath={.spec.conditions[?(@.type=="Upgradeable")].status} {.spec.conditions[?(@.type=="Upgradeable")].message}')
	[[ $said == "$1 "* ]] || { echo "Upgradeable is '$said'"; return 1; }
}
held() {
	local now
	now=$(kubectl -n "$namespace" get "$csvs" "c5c3-operator.v$next" -o 'jsonpath={.status.phase} {.status.reason}')
	[[ $now == 'Pending OperatorConditionNotUpgradeable' ]] || { echo "$next is '$now'"; return 1; }
	serving "$installed"
}
delivered() { # GENERATION
	local now
	now=$(kubectl -n tenant-a get keystoneapplicationcredentials.c5c3.io workflow-appcred -o 'jsonpath={.status.credentialGeneration}')
	[[ $now == "$1" ]] || { echo "generation $now"; return 1; }
	is_ready tenant-a keystoneapplicationcredentials.c5c3.io workflow-appcred
}

next_step "A rotation that Keystone does not let finish holds the upgrade to $next"
release "$next"
within 60 upgradeable True
generation=$(($(kubectl -n tenant-a get keystoneapplicationcredentials.c5c3.io workflow-appcred -o jsonpath='{.status.credentialGeneration}') + 1))
stack keystone fault 503 --method POST --path '/application_credentials$'
kubectl -n tenant-a patch keystoneapplicationcredentials.c5c3.io workflow-appcred --type merge -p "{\"spec\":{\"credentialGeneration\":$generation}}"
within 60 upgradeable False
offer "{name: c5c3-operator.v$next, replaces: c5c3-operator.v$installed}"
within 180 held
throughout 20 held

next_step "The rotation ends and the upgrade goes on"
stack keystone fault none
within 240 upgraded "$next"
within 120 delivered "$generation"
within 60 all_ready
