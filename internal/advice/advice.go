// SPDX-License-Identifier: Apache-2.0

// Package advice says what a person does about the reason of a condition.
//
// It is the pages of docs/ in one table, for programs that explain an order to somebody who has not
// opened them. A condition's message says what is wrong with this very object and names it; an advice
// is the same for all objects and names none, so the two are meant to be shown together.
package advice

import "slices"

// Reasons that no condition carries. They are for an object whose conditions do not tell yet.
const (
	// NotReconciled: the operator has not reported on the object, or not on its newest generation.
	NotReconciled = "NotReconciled"
	// BeingDeleted: the object is being deleted, and its conditions are still those from before.
	BeingDeleted = "BeingDeleted"
)

// The kinds whose advice differs from that of the others.
const (
	controlPlane   = "ControlPlane"
	project        = "KeystoneProject"
	roleAssignment = "KeystoneRoleAssignment"
)

// The advice that several rows share.
const (
	nothing    = "Nothing: this is as it should be."
	apiServer  = "Wait: the API server refused something, and the operator tries again. If it stays, check the operator's RBAC and log."
	askWhoRuns = "Ask whoever runs the ControlPlane to look at its conditions; this order goes on by itself."
)

// row is what to do about one reason. Without kinds it holds for every kind that no row of the same
// reason names.
type row struct {
	reason string
	kinds  []string
	do     string
}

// table has a row for every reason, in the order of api/v1alpha1/conditions.go.
var table = []row{
	{reason: "AllReady", do: nothing},
	{reason: "NotAllReady", do: "Look at the first condition that is not True; the message repeats it."},

	{reason: "ControlPlaneNotFound", do: "Create the ControlPlane, or delete the order and create it again with the right spec.controlPlaneRef."},
	{reason: "NamespaceNotAssigned", do: "Ask whoever runs the ControlPlane for an entry of this namespace. The order is frozen until then; what it has keeps working."},
	{reason: "ClusterNameTooLong", do: "Register the cluster under a name of at most 63 characters."},
	{reason: "WaitingForAdminCredential", kinds: []string{controlPlane}, do: "Look at AdminCredentialReady: Keystone is asked once there is something to log in with."},
	{reason: "WaitingForAdminCredential", do: askWhoRuns},
	{reason: "WaitingForDependencies", do: "Have K-ORC or External Secrets Operator installed, as the message says. No restart is needed."},

	{reason: "UserNotFound", do: "Create the KeystoneUser in this namespace; this order goes on by itself."},
	{reason: "ProjectNotFound", do: "Create the KeystoneProject in this namespace; this order goes on by itself."},
	{reason: "ControlPlaneMismatch", do: "Delete one of the two orders and create it again with the ControlPlane of the other."},
	{reason: "WaitingForUser", do: "Look at the KeystoneUser. This order goes on by itself once it is ready and its password is available."},
	{reason: "WaitingForProject", kinds: []string{project}, do: "Wait: K-ORC is creating the project. If it stays, look whether K-ORC runs, and at its words in the message."},
	{reason: "WaitingForProject", do: "Look at the KeystoneProject. This order goes on by itself once it is ready."},
	{reason: "NoRoleOnProject", do: "Order a KeystoneRoleAssignment of this user and project in this namespace; this order goes on by itself."},
	{reason: "ReferencedByRoleAssignments", do: "Delete the KeystoneRoleAssignments that the message names; the deletion goes on by itself."},
	{reason: "ReferencedByApplicationCredentials", do: "Delete the KeystoneApplicationCredentials that the message names; the deletion goes on by itself."},

	{reason: "UserProvisioned", do: nothing},
	{reason: "ServiceAccountCollision", do: "Order under another name: delete this order and create it with another spec.userName. A user that exists is never taken over."},
	{reason: "ProbingForCollision", do: "Wait: the operator is finding out whether the name is free."},
	{reason: "SecretStoreNotReady", kinds: []string{controlPlane}, do: "Check the store's address and token: External Secrets Operator does not get into it."},
	{reason: "SecretStoreNotReady", do: "Ask whoever runs the ControlPlane to look at its SecretStoreReady. No password is made that could not be backed up."},
	{reason: "WaitingForServiceAccounts", kinds: []string{roleAssignment}, do: "Wait: the role is being found and assigned. If it stays, check that Keystone has a role of exactly this name."},
	{reason: "WaitingForServiceAccounts", do: "Wait: K-ORC is creating the user or applying its password. If it stays, look whether K-ORC runs, and at its words in the message."},
	{reason: "ServiceAccountsFailed", do: "Correct what the message names. If it is the name, delete the order and create it with another spec.userName."},
	{reason: "ServiceAccountError", do: apiServer},

	{reason: "ProjectProvisioned", do: nothing},
	{reason: "ProjectCollision", do: "Order under another name: delete this order and create it with another spec.projectName. A project that exists is never taken over."},
	{reason: "ProjectFailed", do: "Do what the message says. If it is the name, delete the order and create it with another spec.projectName."},
	{reason: "ProjectError", do: apiServer},

	{reason: "RoleAssigned", do: nothing},
	{reason: "RoleNotAllowed", do: "Ask whoever runs the ControlPlane to put the role on allowedRoles of the namespace's entry. The order is frozen until then."},
	{reason: "DuplicateRoleAssignment", do: "Delete one of the two orders; the message names the older. The other takes over as soon as it is gone."},
	{reason: "RoleAssignmentFailed", do: "Correct what the message names, in Keystone or in the order; spec.role is immutable."},
	{reason: "RoleAssignmentError", do: apiServer},

	{reason: "CredentialMinted", do: nothing},
	{reason: "WaitingForCABundle", kinds: []string{controlPlane}, do: "Create the Secret of caBundleSecretRef, with the key ca.crt."},
	{reason: "WaitingForCABundle", do: askWhoRuns},
	{reason: "WaitingForCredential", do: "Wait: the credential is being created, and the message says what for. If it stays, look whether K-ORC runs."},
	{reason: "CredentialFailed", do: "Correct the cause that the message names. If it stays, give the failed generation up with `kubectl c5c3 rotate`. A delivered credential stays."},
	{reason: "TransportErrorRetryFailed", do: "Check the operator's RBAC: it may not clear the error that K-ORC gave up with."},
	{reason: "CredentialError", do: apiServer},

	{reason: "Delivered", do: nothing},
	{reason: "KeystoneNotPublished", kinds: []string{controlPlane}, do: "Set spec.services.keystone.publicEndpoint, or gateway."},
	{reason: "KeystoneNotPublished", do: "Ask whoever runs the ControlPlane to set spec.services.keystone.publicEndpoint."},
	{reason: "BackupNotSynced", do: "Look at the PushSecret that the message names, and at the ControlPlane's SecretStoreReady. The Secret keeps what it has."},
	{reason: "DeliveryRefused", do: "Remove the Secret that the message names, which is not this order's, or order under another name."},
	{reason: "DeliveryError", do: apiServer},

	{reason: "WaitingForRevocation", do: "Wait until Keystone and the store answer: the order goes once they confirm. Leave its finalizer, or what it made lives on in Keystone."},
	{reason: "ReferencedByOrders", do: "Delete the orders that the message names. Where that can't be waited for, the annotation c5c3.io/abandon-orders=true lets the ControlPlane go and leaves credentials behind in Keystone."},

	{reason: "AuthenticationFailed", kinds: []string{controlPlane}, do: "Correct the password in the Secret of passwordSecretRef, or unlock the user in Keystone. The operator tries again by itself."},
	{reason: "AuthenticationFailed", do: askWhoRuns},
	{reason: "EndpointUnreachable", kinds: []string{controlPlane}, do: "Check Keystone, its URL and the way there. The operator asks again by itself."},
	{reason: "EndpointUnreachable", do: "Wait: Keystone gives no usable answer, and what exists keeps working. If it stays, tell whoever runs the ControlPlane."},
	{reason: "TLSVerificationFailed", kinds: []string{controlPlane}, do: "Name a CA bundle that verifies Keystone's certificate in caBundleSecretRef, or correct the URL."},
	{reason: "TLSVerificationFailed", do: askWhoRuns},
	{reason: "CatalogEndpointMismatch", kinds: []string{controlPlane}, do: "Correct region or endpointType, or Keystone's catalog: it has no identity endpoint of the two."},
	{reason: "CatalogEndpointMismatch", do: askWhoRuns},
	{reason: "CredentialDrift", do: "Ask whoever runs Keystone why it refuses application credentials to this user; the message repeats its words."},
	{reason: "AdminCredentialAccepted", do: nothing},
	{reason: "WaitingForAdminPassword", do: "Create the Secret and the key that the message names, with the password of Keystone's administrator."},
	{reason: "WaitingForKORC", do: "Look whether K-ORC runs. It has not imported the domain and the administrator yet."},
	{reason: "AdminImportFailed", do: "Correct userName and domainName in spec.korc.adminCredential: K-ORC found no such domain or user, or several."},
	{reason: "KeystoneAnswers", do: nothing},
	{reason: "KindsServed", do: nothing},
	{reason: "KindsMissing", do: "Install K-ORC v2.6.0 or newer, or External Secrets Operator, as the message says. No restart is needed."},
	{reason: "SecretStoreValid", do: nothing},
	{reason: "SecretStoreNotFound", do: "Create the store, or name another in spec.secretStoreRef."},
	{reason: "ControlPlaneError", do: apiServer},
	{reason: "Assigned", do: nothing},
	{reason: "NamespaceNotFound", do: "Create the namespace, or take its entry out of spec.namespaceAssignments."},
	{reason: "NamespaceTerminating", do: "Wait until the namespace is gone; take its entry out of spec.namespaceAssignments if it does not come back."},
	{reason: "TargetClusterUnavailable", do: "Register the cluster under the name of targetClusterRef, or correct the entry."},
	{reason: "ClusterUnreachable", do: "Look whether the target cluster answers. The operator asks again by itself."},

	{reason: NotReconciled, do: "Look whether the operator runs and sees the namespace: kubectl -n c5c3-operator-system get pods."},
	{reason: BeingDeleted, do: "Wait until it is gone. If it stays, look whether the operator runs. What needs it goes on once it is created again."},
}

// For is what to do about a reason on an object of a kind, such as KeystoneUser. It is not ok for a
// reason that is none of ours.
func For(kind, reason string) (do string, ok bool) {
	for _, r := range table {
		if r.reason == reason && (len(r.kinds) == 0 || slices.Contains(r.kinds, kind)) {
			return r.do, true
		}
	}
	return "", false
}
