#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# demo.sh: shows an order's whole life on the local real stack, told step by step. Ends with 0 only if
# every step held. Safe to repeat: what an earlier demo left is deleted first.
#
# The credentials that it logs in with lie in a folder that only its user reads and that is removed at
# the end. It prints ids, names and times, and never a secret.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

# Short, so that one can wait for it; orders of real life have 720h and 24h. The grace period leaves room for
# a machine that is busy: the first credential expires one grace period after the second is due.
interval=90s grace=80s

bold='' dim='' green='' red='' off=''
if [[ -t 1 ]]; then bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' off=$'\e[0m'; fi
began=$SECONDS
chapter=0
chapter() { chapter=$((chapter + 1)); printf '\n%s%2d  %s%s\n' "$bold" "$chapter" "$1" "$off"; }
tell() { printf '    %s\n' "$*"; }
quote() { sed "s/^/    $dim| /; s/\$/$off/"; }
# show COMMAND...: prints a command and what it says.
show() {
	printf '    %s$ %s%s\n' "$dim" "$*" "$off"
	"$@" 2>&1 | quote
}
held() { printf '    %s✓%s %s\n' "$green" "$off" "$*"; }
give_up() {
	printf '\n    %s✗ %s%s\n' "$red" "$*" "$off" >&2
	exit 1
}

# wait_for WHAT EXPECTED LIMIT COMMAND...: repeats a command until it succeeds, says how long it takes
# and how long that usually is, in seconds. On a terminal the line counts; in a log it is written
# twice a minute.
wait_for() {
	local what=$1 expected=$2 limit=$3 start=$SECONDS said=0 words
	shift 3
	while ! words=$("$@" 2>&1); do
		local elapsed=$((SECONDS - start))
		if ((elapsed > limit)); then
			[[ ! -t 1 ]] || printf '\r\e[K'
			give_up "$what: not after $limit s. $words"
		fi
		if [[ -t 1 ]]; then
			printf '\r\e[K    %s… %s, %d s of about %d s%s' "$dim" "$what" "$elapsed" "$expected" "$off"
		elif ((elapsed >= said)); then
			printf '    … %s, %d s of about %d s\n' "$what" "$elapsed" "$expected"
			said=$((elapsed + 30))
		fi
		sleep 1
	done
	[[ ! -t 1 ]] || printf '\r\e[K'
	held "$what ($((SECONDS - start)) s)${words:+: $words}"
}

folder=$(mktemp -d)
finish() {
	local status=$?
	trap - EXIT
	rm -rf "$folder"
	if ((status != 0)); then
		printf '\n%sThe demo stopped in chapter %d.%s Everything is still there to be looked at:\n' "$red" "$chapter" "$off"
		tell "make support-data        states, conditions, Events and logs, no Secret"
		tell "make demo                starts over"
	fi
	exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

printf '%sA Keystone application credential: ordered, delivered, rotated, revoked.%s\n' "$bold" "$off"
tell "Nothing here is faked: a Kubernetes node, Keystone, K-ORC, External Secrets and a KV store run on this machine."

chapter "The stack and the operator"
tell "The very first time this builds Kubernetes and the others from source: about 35 minutes on two cores."
tell "Later it takes about a minute. Each part says what it does."
hack/stack-deploy.sh 2>&1
use_stack
# The stack's own kubectl: finding it anew for every call would be most of the work of waiting.
kubectl() { "$C5C3_STACK_KUBECTL" "$@"; }
stack status | quote
tell "The operator is a pod with a ServiceAccount and rights of its own, no administrator's:"
account=system:serviceaccount:$OPERATOR_NAMESPACE:$(kubectl -n "$OPERATOR_NAMESPACE" get pods -l app.kubernetes.io/name=c5c3-operator -o 'jsonpath={.items[0].spec.serviceAccountName}')
may() { kubectl auth can-i "$@" --as "$account" 2>/dev/null || true; }
[[ $(may create pods -n default) == no && $(may '*' '*') == no ]] || give_up "$account may do more than it needs"
[[ $(may create pushsecrets.external-secrets.io -n openstack) == yes ]] || give_up "$account may not do its work"
held "$account may write backups, and may not create pods"

# The samples, for this stack's Keystone and in a hurry.
mkdir -p bin/demo
cat >bin/demo/kustomization.yaml <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../config/samples]
patches:
  - target: {kind: ControlPlane}
    patch: |-
      apiVersion: c5c3.io/v1alpha1
      kind: ControlPlane
      metadata: {name: any}
      spec: {services: {keystone: {mode: External, external: {authURL: "$OS_AUTH_URL"}}}}
  - target: {kind: KeystoneApplicationCredential}
    patch: |-
      apiVersion: c5c3.io/v1alpha1
      kind: KeystoneApplicationCredential
      metadata: {name: any}
      spec: {rotation: {interval: $interval, gracePeriod: $grace}}
YAML
"$(hack/tools/tool.sh kustomize)" build bin/demo >bin/demo/samples.yaml

chapter "The orders"
sample() { awk -v kind="$1" 'BEGIN { RS = "---\n" } $0 ~ "(^|\n)kind: " kind "\n" { printf "%s", $0 }' bin/demo/samples.yaml; }
namespaces=$(sample Namespace)
owner=$(sample KeystoneApplicationCredential | awk '/^  namespace:/ { print $2 }')
plane=$(sample ControlPlane | awk '/^  namespace:/ { print $2 }')
name_of() { sample "$1" | awk '/^metadata:/ { inside = 1 } inside && /^  name:/ { print $2; exit }'; }
user=$(name_of KeystoneUser) project=$(name_of KeystoneProject) assignment=$(name_of KeystoneRoleAssignment)
order=$(name_of KeystoneApplicationCredential) cp=$(name_of ControlPlane)
orders=("kappcred/$order" "krole/$assignment" "kuser/$user" "kproject/$project")
of() { kubectl -n "$owner" get "$1" "$2" -o "jsonpath={$3}"; }
gone() { [[ -z $(kubectl -n "$owner" get "$1" -o name --ignore-not-found) ]]; }
remove_orders() {
	kubectl -n "$owner" delete --ignore-not-found --wait=false "${orders[@]}" >/dev/null
	wait_for "no order of the samples is there" 20 240 all_gone
}
all_gone() {
	local one
	for one in "${orders[@]}"; do gone "$one" || { of "${one%/*}" "${one#*/}" '.status.conditions[?(@.type=="Ready")].message'; return 1; }; done
}
if kubectl get namespace "$owner" >/dev/null 2>&1 && [[ -n $(kubectl -n "$owner" get "${orders[@]}" --ignore-not-found -o name 2>/dev/null) ]]; then
	tell "An earlier demo was interrupted: its orders are deleted first."
	remove_orders
fi
[[ -z $namespaces ]] || kubectl apply --server-side -f - <<<"$namespaces" >/dev/null
kubectl get namespace "$owner" >/dev/null 2>&1 || kubectl create namespace "$owner" >/dev/null
kubectl apply --server-side --force-conflicts -f bin/demo/samples.yaml >/dev/null
tell "In namespace $plane somebody runs a ControlPlane, and consents to namespace $owner:"
sample ControlPlane | quote
tell "In namespace $owner somebody orders a user, a project, a role, and a credential:"
sample KeystoneApplicationCredential | quote

ready() {
	local status
	status=$(of "$1" "$2" '.status.conditions[?(@.type=="Ready")].status')
	[[ $status == True ]] || { of "$1" "$2" '.status.conditions[?(@.type=="Ready")].message'; return 1; }
}
plane_ready() {
	[[ $(kubectl -n "$plane" get "controlplanes.c5c3.io/$cp" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == True ]] ||
		{ kubectl -n "$plane" get "controlplanes.c5c3.io/$cp" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}'; return 1; }
}
accepted() { [[ -n $(of kappcred "$order" '.status.conditions[?(@.type=="CredentialReady")].reason') ]]; }
wait_for "the operator gets into Keystone" 15 180 plane_ready
wait_for "the credential order is accepted" 5 60 accepted
wait_for "the user is in Keystone" 15 180 ready kuser "$user"
held "Keystone's id of the user: $(of kuser "$user" .status.userID)"
wait_for "the project is in Keystone" 15 180 ready kproject "$project"
held "Keystone's id of the project: $(of kproject "$project" .status.projectID)"
wait_for "the role is assigned" 15 180 ready krole "$assignment"
wait_for "the credential is minted, backed up and delivered" 20 240 ready kappcred "$order"
first=$(of kappcred "$order" .status.credentialID)
held "Keystone's id of the credential: $first"
show kubectl -n "$owner" get kuser,kproject,krole,kappcred

chapter "The backup came first"
hash=$(printf '/%s/%s' "$owner" "$order" | sha256sum | cut -c1-8)
path=openstack/keystone/$plane/$order-$hash-applicationcredential/service-accounts/application-credential
stack kv get "$path" >"$folder/keys" || give_up "nothing is stored at $path"
tell "The KV store holds, at $path:"
quote <"$folder/keys"
grep -qx clouds.yaml "$folder/keys" || give_up "the backup has no clouds.yaml"
held "the backup is there (its keys; values are not shown)"

chapter "The Secret beside the order"
secret=$(of kappcred "$order" .status.secretName)
# shellcheck disable=SC2016 # a template's variables, not the shell's
kubectl -n "$owner" get secret "$secret" -o 'go-template={{range $key, $value := .data}}{{$key}}{{"\n"}}{{end}}' | quote
held "Secret $owner/$secret has these keys"

# fetch FILE: writes the delivered clouds.yaml where the openstack client reads it.
fetch() { (umask 077 && kubectl -n "$owner" get secret "$secret" -o 'jsonpath={.data.clouds\.yaml}' | base64 -d >"$1"); }
# login FILE: the real client, which never shows the token here. Its words go to FILE.said.
login() {
	env -u OS_AUTH_URL -u OS_CLOUD OS_CLIENT_CONFIG_FILE="$1" openstack --os-cloud c5c3 token issue -f value -c project_id -c user_id >"$1.said" 2>&1
}
admin() { env -u OS_AUTH_URL openstack --os-cloud admin "$@"; }
listed() { admin application credential list --user "$(of kuser "$user" .status.userID)" -f value -c ID; }

chapter "A login with it"
fetch "$folder/first.yaml"
tell "\$ OS_CLIENT_CONFIG_FILE=clouds.yaml openstack --os-cloud c5c3 token issue -c project_id -c user_id"
login "$folder/first.yaml" || { quote <"$folder/first.yaml.said"; give_up "the openstack client cannot log in with the delivered clouds.yaml"; }
quote <"$folder/first.yaml.said"
grep -qx "$(of kproject "$project" .status.projectID)" "$folder/first.yaml.said" || give_up "the token is for another project"
grep -qx "$(of kuser "$user" .status.userID)" "$folder/first.yaml.said" || give_up "the token is for another user"
held "Keystone gives a token for the ordered user on the ordered project"

chapter "The scheduled rotation"
tell "Every $interval here. The next one is due at $(of kappcred "$order" .status.nextRotation); it is now $(date -u +%FT%TZ)."
rotated() {
	local id carried
	id=$(of kappcred "$order" .status.credentialID)
	carried=$(of secret "$secret" .data.application_credential_id | base64 -d)
	[[ $id != "$first" && $carried == "$id" ]] || { of kappcred "$order" '.status.conditions[?(@.type=="CredentialReady")].message'; return 1; }
}
wait_for "a successor is minted, tried, backed up and delivered" 100 270 rotated
second=$(of secret "$secret" .data.application_credential_id | base64 -d)
held "the Secret carries generation $(of kappcred "$order" .status.credentialGeneration): $second"
fetch "$folder/second.yaml"
login "$folder/first.yaml" &
old=$!
login "$folder/second.yaml" || { quote <"$folder/second.yaml.said"; give_up "the new credential is refused"; }
wait "$old" || { quote <"$folder/first.yaml.said"; give_up "the old credential is refused within its grace period"; }
[[ $(of kappcred "$order" .status.previousCredentialID) == "$first" ]] || give_up "the grace period was over before both were tried"
held "Keystone accepts both, the old one until $(of kappcred "$order" .status.previousCredentialDeleteAt)"
show kubectl -n "$owner" get kappcred "$order"

chapter "The end of the old one"
forgotten() { [[ $(of kappcred "$order" .status.previousCredentialID) != "$first" ]]; }
wait_for "the grace period ends, and Keystone confirms the revocation" 85 240 forgotten
if login "$folder/first.yaml"; then give_up "Keystone still accepts the old credential"; fi
# An answer, not a failure to ask: the client prints Keystone's status.
grep -qE 'HTTP (401|404)' "$folder/first.yaml.said" || { quote <"$folder/first.yaml.said"; give_up "that was no refusal"; }
grep -oE '.{0,100}\(HTTP (401|404)\)' "$folder/first.yaml.said" | head -1 | quote
held "Keystone refuses the old credential"
listed >"$folder/listed"
quote <"$folder/listed"
if grep -qx "$first" "$folder/listed"; then give_up "Keystone still lists the old credential"; fi
held "and does not list it any more"
login "$folder/second.yaml" || { fetch "$folder/second.yaml" && login "$folder/second.yaml"; } || give_up "the delivered credential is refused"
held "what is delivered works"

chapter "Deletion"
tell "All four orders at once. Each holds until what needs it is gone: credential, role, then user and project."
keystone_user=$(of kuser "$user" .status.userID) keystone_project=$(of kproject "$project" .status.projectID)
remove_orders
children=$(kubectl -n "$plane" get applicationcredentials.openstack.k-orc.cloud,users.openstack.k-orc.cloud,projects.openstack.k-orc.cloud,pushsecrets.external-secrets.io,secrets \
	-o 'jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.labels}{"\n"}{end}' | grep "\"$owner\"" | cut -d' ' -f1,2 || true)
[[ -z $children ]] || give_up "left in namespace $plane: $children"
held "namespace $plane has no child of theirs"
gone "secret/$secret" || give_up "Secret $secret is left"
if stack kv get "$path" >/dev/null 2>&1; then give_up "the backup is left"; fi
held "the Secret and the backup are gone"
admin user list -f value -c ID >"$folder/users"
admin project list -f value -c ID >"$folder/projects"
if grep -qx "$keystone_user" "$folder/users" || grep -qx "$keystone_project" "$folder/projects"; then give_up "Keystone still has the user or the project"; fi
held "Keystone has neither the user nor the project, and with the user every credential went"
kubectl -n "$plane" delete "controlplanes.c5c3.io/$cp" --timeout=2m >/dev/null
kubectl delete namespace "$owner" --timeout=2m >/dev/null
held "ControlPlane and namespace are removed, so the next demo starts from nothing"

printf '\n%sEvery step held%s, after %d min %02d s. Where to look next:\n' "$bold$green" "$off" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60))
tell "eval \"\$(go -C tests/stack run ./cmd/stack env)\"   work with the stack: kubectl, openstack --os-cloud admin"
tell "kubectl apply -k bin/demo                         the same orders, to stay"
tell "docs/keystoneapplicationcredential.md             what the order promises, field by field"
tell "make e2e                                          the same and much worse, as tests"
tell "make stack-down                                   stop it all; what was built is kept"
