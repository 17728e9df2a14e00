# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034 # the suites use what is not used here
#
# Sourced by the scripts of the suites. Chainsaw sets NAMESPACE, the owner's namespace of the test;
# hack/e2e.sh sets E2E (this folder), WITNESS, STACK and E2E_STATE. Nothing here prints a secret.
set -eu
PLANE=$NAMESPACE-plane
KEYSTONE_USER=$NAMESPACE-workflow
KEYSTONE_PROJECT=$NAMESPACE-project
# Kinds with their group: K-ORC and Kubernetes have users, projects and roles of their own.
ORDERS=keystoneapplicationcredentials.c5c3.io,keystoneroleassignments.c5c3.io,keystoneusers.c5c3.io,keystoneprojects.c5c3.io
KORC=applicationcredentials.openstack.k-orc.cloud,users.openstack.k-orc.cloud,projects.openstack.k-orc.cloud,roles.openstack.k-orc.cloud
CHILDREN=$KORC,pushsecrets.external-secrets.io,secrets

say() { printf '%s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# within SECONDS COMMAND...: repeats the command until it succeeds, and fails with its last words.
within() {
	within_limit=$(($(date +%s) + $1))
	shift
	while ! within_words=$("$@" 2>&1); do
		[ "$(date +%s)" -lt "$within_limit" ] || fail "not in time: $* ($within_words)"
		sleep 1
	done
	[ -z "$within_words" ] || say "$within_words"
}

# throughout SECONDS COMMAND...: the command holds, again and again, for that long.
throughout() {
	throughout_limit=$(($(date +%s) + $1))
	shift
	while [ "$(date +%s)" -lt "$throughout_limit" ]; do
		throughout_words=$("$@" 2>&1) || fail "does not hold any more: $* ($throughout_words)"
		sleep 1
	done
}

# of KIND NAME PATH [NAMESPACE]: one field of an object, empty when it is not there.
of() { kubectl -n "${4:-$NAMESPACE}" get "$1" "$2" -o "jsonpath={$3}" --ignore-not-found; }
# is VALUE KIND NAME PATH [NAMESPACE]: the field has this value.
is() {
	is_want=$1
	shift
	is_got=$(of "$@")
	[ "$is_got" = "$is_want" ] || { say "$2 $3 is '$is_got' and not '$is_want'"; return 1; }
}
# status FIELD, reason CONDITION, message CONDITION: of the credential order.
status() { of kappcred workflow-appcred ".status.$1"; }
reason() { of kappcred workflow-appcred ".status.conditions[?(@.type==\"$1\")].reason"; }
reason_is() { is "$3" "$1" "$2" ".status.conditions[?(@.type==\"$4\")].reason"; }

# assign JSON: what the ControlPlane's spec.namespaceAssignments is from now on.
assign() { kubectl -n "$PLANE" patch controlplanes.c5c3.io cp --type=merge -p '{"spec":{"namespaceAssignments":'"$1"'}}'; }

# prefix KIND NAME: what the names of an order's children begin with.
prefix() { printf '%s-%s-%s-' "$2" "$(printf '/%s/%s' "$NAMESPACE" "$2" | sha256sum | cut -c1-8)" "$1"; }
# backup KIND NAME LEAF: the path of an order's backup.
backup() {
	backup_prefix=$(prefix "$1" "$2")
	say "openstack/keystone/$PLANE/${backup_prefix%-}/service-accounts/$3"
}

# secret NAME: a Secret of the owner's namespace as JSON. Only ever into a pipe.
secret() { kubectl -n "$NAMESPACE" get secret "$1" -o json; }
# login SECRET [--user NAME]: Keystone accepts what the Secret holds.
login() {
	login_secret=$1
	shift
	secret "$login_secret" | "$WITNESS" login "$@"
}
# refused SECRET: Keystone itself refuses it. No answer is not a refusal.
refused() {
	refused_status=0
	login "$@" >/dev/null 2>&1 || refused_status=$?
	[ "$refused_status" = 3 ] || { say "the login with $1 ended with $refused_status, and 3 is a refusal"; return 1; }
}
# fingerprint SECRET KEY: tells two values apart without showing either.
fingerprint() { of secret "$1" ".data.$2" | sha256sum; }
# unchanged FINGERPRINT SECRET KEY: the value is the one that was there before.
unchanged() { [ "$(fingerprint "$2" "$3")" = "$1" ] || { say "key $3 of Secret $2 is another than before"; return 1; }; }
# credentials: what Keystone lists for the order's user, one "id name" a line.
credentials() { "$WITNESS" credentials "$(of kuser workflow .status.userID)"; }
listed() { credentials | grep -q "^$1 "; }
unlisted() { credentials_now=$(credentials) && ! printf '%s\n' "$credentials_now" | grep -q "^$1 "; }
# exactly COUNT: so many credentials of the user are in Keystone.
exactly() {
	exactly_found=$(credentials) || return 1
	[ "$(printf '%s' "$exactly_found" | grep -c .)" = "$1" ] || { say "Keystone lists: $exactly_found"; return 1; }
}

# carries_live: the delivered Secret carries the credential that status names.
carries_live() {
	carried=$(of secret workflow-appcred-credentials .data.application_credential_id | base64 -d)
	[ "${carried:-nothing}" = "$(status credentialID)" ] || { say "the Secret carries '$carried'"; return 1; }
}
# carries_generation N: status names generation N, and the Secret carries it.
carries_generation() { is "$1" kappcred workflow-appcred .status.credentialGeneration && carries_live && reason_is kappcred workflow-appcred Delivered DeliveryReady; }
# has_child, gone_child DISCRIMINATOR: a child of the credential order is there, or is not. A question
# that the API server does not answer is neither.
child_names() { kubectl -n "$PLANE" get "$CHILDREN" -o name; }
has_child() {
	has_children=$(child_names) || return 1
	printf '%s\n' "$has_children" | grep -q "/$(prefix applicationcredential workflow-appcred)$1\$" || { say "child $1 is not there"; return 1; }
}
gone_child() {
	gone_children=$(child_names) || return 1
	! printf '%s\n' "$gone_children" | grep -q "/$(prefix applicationcredential workflow-appcred)$1\$" || { say "child $1 is still there"; return 1; }
}
gone_password() { [ -z "$(of secret "$(prefix user workflow)password-v$1" .metadata.name "$PLANE")" ]; }

# nothing_left KIND: no child of any order of this namespace, of that kind of order.
nothing_left() {
	nothing_found=$(kubectl -n "$PLANE" get "$CHILDREN" -l "c5c3.io/$1-namespace=$NAMESPACE" -o name)
	[ -z "$nothing_found" ] || { say "left: $nothing_found"; return 1; }
}
gone() { [ -z "$(kubectl -n "$NAMESPACE" get "$@" -o name --ignore-not-found)" ] || { say "$* is still there"; return 1; }; }
absent_in_keystone() {
	absent_found=$("$WITNESS" find "$1" "$2")
	[ -z "$absent_found" ] || { say "Keystone has $1 $2: $absent_found"; return 1; }
}
# event REASON: an Event of that reason on an order of this namespace.
event() { [ -n "$(kubectl -n "$NAMESPACE" get events.events.k8s.io -o "jsonpath={.items[?(@.reason==\"$1\")].reason}")" ]; }

# korc_says RESOURCE NAME AVAILABLE PROGRESSING [STATUS]: gives an object the status that K-ORC's controller
# would write. AVAILABLE and PROGRESSING are conditions without times and generations, STATUS ends with a comma.
korc_says() {
	says_kind=$1.openstack.k-orc.cloud
	says_when='"observedGeneration":'$(of "$says_kind" "$2" .metadata.generation "$PLANE")',"lastTransitionTime":"'$(date -u +%Y-%m-%dT%H:%M:%SZ)'"'
	kubectl -n "$PLANE" patch "$says_kind" "$2" --subresource=status --type=merge -p '{"status":{'"${5:-}"'"conditions":[
		{"type":"Available",'"$3,$says_when"'},
		{"type":"Progressing",'"$4,$says_when"'}]}}'
}
korc_available='"status":"True","reason":"Success","message":"OpenStack resource is available"'
# latch RESOURCE NAME [AVAILABLE]: K-ORC gave up on the object over a broken connection, and will not look again.
latch() {
	korc_says "$1" "$2" "${3:-$korc_available}" '"status":"False","reason":"InvalidConfiguration","message":"dial tcp 192.0.2.1:5000: connect: connection refused"'
}
# vouch RESOURCE NAME STATUS: K-ORC is done with the object.
vouch() { korc_says "$1" "$2" "$korc_available" '"status":"False","reason":"Success","message":"OpenStack resource is up to date"' "$3"; }

# explain: what a failed test needs to be understood, Secrets by name only.
explain() {
	kubectl -n "$PLANE" get controlplanes.c5c3.io -o 'jsonpath={range .items[*].status.conditions[*]}{.type} {.status} {.reason}: {.message}{"\n"}{end}' || :
	kubectl -n "$NAMESPACE" get "$ORDERS" -o 'jsonpath={range .items[*]}{"\n"}{.kind} {.metadata.name} {.status.observedGeneration} {.metadata.deletionTimestamp}{"\n"}{range .status.conditions[*]}  {.type} {.status} {.reason}: {.message}{"\n"}{end}{end}' || :
	kubectl -n "$NAMESPACE" get kappcred -o yaml || :
	kubectl -n "$NAMESPACE" get credentialupdaterequests.agentprimitives.authzed.com -o 'jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.status.determination}: {.status.reason}{"\n"}{end}' || :
	kubectl -n "$PLANE" get "$CHILDREN" -o wide || :
	kubectl -n "$PLANE" get "$KORC,pushsecrets.external-secrets.io" -o 'jsonpath={range .items[*]}{.kind} {.metadata.name}{"\n"}{range .status.conditions[*]}  {.type} {.status} {.reason}: {.message}{"\n"}{end}{end}' || :
	kubectl -n "$NAMESPACE" get events --sort-by=.lastTimestamp | tail -40 || :
	kubectl -n "$NAMESPACE" get pods,jobs || :
	kubectl -n "$OPERATOR_NAMESPACE" logs -l app.kubernetes.io/name=c5c3-operator --tail=400 | grep "$NAMESPACE" | tail -40 || :
}
