# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Sourced by the scripts of this suite after lib.sh, and by hack/demo-agent.sh: what the runner of an agent's
# session does. Needs NAMESPACE.
AGENTS=agentprimitives.authzed.com
REQUESTS=credentialupdaterequests.$AGENTS

# begin SESSION CLASS: an agent starts to work.
begin() {
	kubectl -n "$NAMESPACE" create -o name -f - <<-YAML
		apiVersion: $AGENTS/v1alpha1
		kind: AgentSession
		metadata: {name: "$1"}
		spec: {class: "$2"}
	YAML
}
# file NAME SESSION ORIGIN [WHY]: the agent says that a tool's credential does not work any more. The request
# belongs to its session, by UID.
file() {
	file_uid=$(kubectl -n "$NAMESPACE" get "agentsessions.$AGENTS" "$2" -o 'jsonpath={.metadata.uid}')
	kubectl -n "$NAMESPACE" create -o name -f - <<-YAML
		apiVersion: $AGENTS/v1alpha1
		kind: CredentialUpdateRequest
		metadata:
		  name: "$1"
		  ownerReferences: [{apiVersion: $AGENTS/v1alpha1, kind: AgentSession, name: "$2", uid: "$file_uid", controller: true}]
		spec:
		  sessionRef: {namespace: "$NAMESPACE", name: "$2"}
		  origin: "$3"
		  toolName: list_servers
		  requestedBy: user:alice
		  why: "${4:-The call was refused.}"
	YAML
}
# request NAME FIELD: one field of a request's status.
request() { kubectl -n "$NAMESPACE" get "$REQUESTS" "$1" -o "jsonpath={.status.$2}"; }
# says NAME PHASE DETERMINATION [WORDS]: what became of a request, and that its reason has these words.
says() {
	says_got="$(request "$1" phase) $(request "$1" determination)"
	[ "$says_got" = "$2 $3" ] || { printf '%s\n' "request $1 is $says_got and not $2 $3: $(request "$1" reason)"; return 1; }
	case $(request "$1" reason) in
	*"${4:-}"*) ;;
	*) printf '%s\n' "'$4' is not in: $(request "$1" reason)"; return 1 ;;
	esac
}
