# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The next version appears in the catalog, and the upgrade rolls while orders live and are used.

installed=$(newest) next=$(following)
next_step "Upgrade to $next while $OLM_ORDERS orders live and are used"
release "$next"
start_consumer
offer "{name: c5c3-operator.v$next, replaces: c5c3-operator.v$installed}"
within 300 upgraded "$next"
within 60 serving "$next"
# The new version must take up its work, and the consumer have met it, before anything is judged.
within 120 all_ready
stop_consumer
same_credentials
