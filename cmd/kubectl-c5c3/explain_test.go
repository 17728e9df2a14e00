// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/advice"
)

func TestExplain(t *testing.T) {
	const (
		credential = "KeystoneApplicationCredential tenant-a/workflow-appcred"
		user       = "KeystoneUser tenant-a/workflow"
		role       = "KeystoneRoleAssignment tenant-a/workflow-member"
		plane      = "ControlPlane openstack/cp"
	)
	withoutRole := func(s subject) { s.(*v1alpha1.KeystoneRoleAssignment).Status.RoleID = "" }
	otherPair := func(s subject) { s.(*v1alpha1.KeystoneRoleAssignment).Spec.UserRef.Name = "other" }
	forbidden := func(r reference) map[reference]string { return map[reference]string{r: "forbidden"} }

	for name, c := range map[string]struct {
		of     subject
		others []subject
		unread map[reference]string
		// because is the way, as "object condition reason".
		because []string
		unseen  []string
	}{
		"what is Ready needs no explanation": {of: aCredential()},
		"a credential that waits for a user that waits for the admin's password is explained by the password": {
			of: aCredential(says("CredentialReady", "WaitingForUser", "")),
			others: []subject{
				aUser(says("UserReady", "WaitingForAdminCredential", "")),
				aPlane(says("AdminCredentialReady", "WaitingForAdminPassword", "Secret openstack/keystone-admin does not exist")),
			},
			because: []string{
				credential + " CredentialReady WaitingForUser", user + " UserReady WaitingForAdminCredential",
				plane + " AdminCredentialReady WaitingForAdminPassword",
			},
		},
		"a reference is followed by the condition that counts and not by the first that fails": {
			of:      aCredential(says("CredentialReady", "WaitingForUser", "no password")),
			others:  []subject{aUser(says("DeliveryReady", "BackupNotSynced", ""))},
			because: []string{credential + " CredentialReady WaitingForUser"},
		},
		"the first condition that fails comes before later ones": {
			of: aCredential(says("DeliveryReady", "BackupNotSynced", ""), says("CredentialReady", "NoRoleOnProject", "")),
			others: []subject{
				aPlane(says("SecretStoreReady", "SecretStoreNotFound", "")),
			},
			because: []string{credential + " CredentialReady NoRoleOnProject"},
		},
		"no role leads to the assignment that has not assigned it": {
			of:      aCredential(says("CredentialReady", "NoRoleOnProject", "")),
			others:  []subject{aRole(withoutRole, says("AssignmentReady", "RoleNotAllowed", ""))},
			because: []string{credential + " CredentialReady NoRoleOnProject", role + " AssignmentReady RoleNotAllowed"},
		},
		"no role does not lead to the assignment of another user": {
			of:      aCredential(says("CredentialReady", "NoRoleOnProject", "")),
			others:  []subject{aRole(otherPair, says("AssignmentReady", "RoleNotAllowed", ""))},
			because: []string{credential + " CredentialReady NoRoleOnProject"},
		},
		"a project that waits for K-ORC waits for nobody's project": {
			of:      aProject(says("ProjectReady", "WaitingForProject", "")),
			others:  []subject{aPlane()},
			because: []string{"KeystoneProject tenant-a/workflow-project ProjectReady WaitingForProject"},
		},
		"a wait for K-ORC is explained by a Keystone that does not answer": {
			of:      aProject(says("ProjectReady", "WaitingForProject", "")),
			others:  []subject{aPlane(says("KeystoneReachable", "EndpointUnreachable", ""))},
			because: []string{"KeystoneProject tenant-a/workflow-project ProjectReady WaitingForProject", plane + " KeystoneReachable EndpointUnreachable"},
		},
		"a backup is followed to the store": {
			of:      aUser(says("DeliveryReady", "BackupNotSynced", "")),
			others:  []subject{aPlane(says("SecretStoreReady", "SecretStoreNotReady", ""))},
			because: []string{user + " DeliveryReady BackupNotSynced", plane + " SecretStoreReady SecretStoreNotReady"},
		},
		"what the caller may not read ends the way and is named": {
			of:      aUser(says("UserReady", "WaitingForAdminCredential", "AdminCredentialReady is False: WaitingForAdminPassword")),
			unread:  forbidden(reference{"ControlPlane", "openstack", "cp"}),
			because: []string{user + " UserReady WaitingForAdminCredential"},
			unseen:  []string{plane + ": forbidden"},
		},
		"a kind that may not be listed ends the way too": {
			of:      aCredential(says("CredentialReady", "WaitingForUser", "")),
			unread:  forbidden(reference{Kind: "KeystoneUser", Namespace: "tenant-a"}),
			because: []string{credential + " CredentialReady WaitingForUser"},
			unseen:  []string{user + ": forbidden"},
		},
		"K-ORC's kinds that are missing explain that K-ORC is waited for": {
			of:      aUser(says("UserReady", "WaitingForAdminCredential", "")),
			others:  []subject{aPlane(says("AdminCredentialReady", "WaitingForKORC", ""), says("DependenciesReady", "KindsMissing", ""))},
			because: []string{user + " UserReady WaitingForAdminCredential", plane + " AdminCredentialReady WaitingForKORC", plane + " DependenciesReady KindsMissing"},
		},
		"an order that nobody looked at": {
			of:      aUser(unreported),
			because: []string{user + "  NotReconciled"},
		},
		"an order whose change nobody looked at": {
			of:      aUser(outdated),
			because: []string{user + "  NotReconciled"},
		},
		"a deletion that has not begun": {
			of:      aUser(deleting),
			because: []string{user + "  BeingDeleted"},
		},
		"a reference that is being deleted": {
			of:      aCredential(says("CredentialReady", "WaitingForUser", "")),
			others:  []subject{aUser(deleting)},
			because: []string{credential + " CredentialReady WaitingForUser", user + "  BeingDeleted"},
		},
		"a held deletion is followed to the order that is being deleted itself": {
			of: aUser(deleting, says("UserReady", "ReferencedByApplicationCredentials", "")),
			others: []subject{
				aCredential(deleting, says("CredentialReady", "WaitingForRevocation", "")),
				aPlane(says("KeystoneReachable", "EndpointUnreachable", "")),
			},
			because: []string{
				user + " UserReady ReferencedByApplicationCredentials", credential + " CredentialReady WaitingForRevocation",
				plane + " KeystoneReachable EndpointUnreachable",
			},
		},
		"a deletion that is held by an order that nobody deleted ends there": {
			of:      aRole(deleting, says("AssignmentReady", "ReferencedByApplicationCredentials", "")),
			others:  []subject{aCredential(says("CredentialReady", "WaitingForUser", ""))},
			because: []string{role + " AssignmentReady ReferencedByApplicationCredentials"},
		},
		"a ControlPlane that its orders hold": {
			of:      aPlane(deleting, says("Ready", "ReferencedByOrders", "tenant-a/workflow")),
			because: []string{plane + " Ready ReferencedByOrders"},
		},
		"a ControlPlane that is being deleted is no explanation for a wait": {
			of:      aUser(says("UserReady", "WaitingForServiceAccounts", "")),
			others:  []subject{aPlane(deleting, outdated)},
			because: []string{user + " UserReady WaitingForServiceAccounts"},
		},
		"an unknown condition keeps a ControlPlane from Ready": {
			of:      aPlane(saysStatus("KeystoneReachable", metav1.ConditionUnknown, "WaitingForAdminCredential", "")),
			because: []string{plane + " KeystoneReachable WaitingForAdminCredential"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := world{subjects: append([]subject{c.of}, c.others...), unread: c.unread}.explain(c.of)
			var because []string
			for _, f := range e.Because {
				because = append(because, fmt.Sprintf("%s %s %s", f.reference, f.Condition, f.Reason))
			}
			if !slices.Equal(because, c.because) {
				t.Errorf("the way is\n  %s\nand not\n  %s", strings.Join(because, "\n  "), strings.Join(c.because, "\n  "))
			}
			if !slices.Equal(e.NotReadable, c.unseen) {
				t.Errorf("not readable is %v and not %v", e.NotReadable, c.unseen)
			}
			if e.fine() != (e.Advice == "") {
				t.Errorf("the advice is %q", e.Advice)
			}
		})
	}
}

// TestEveryReasonOfAnOrderThatBlamesItsPlaneIsFollowed keeps the table of leads from a misspelt reason: each
// of them is one that advice is given on.
func TestEveryReasonThatLeadsToAControlPlaneIsOneOfTheAPIs(t *testing.T) {
	for reason, conditions := range planeConditions {
		if _, ok := advice.For("KeystoneUser", reason); !ok {
			t.Errorf("%s is no reason of ours", reason)
		}
		for _, condition := range conditions {
			if !slices.Contains(named(controlPlaneKind).conditions, condition) {
				t.Errorf("%s leads to %s, which a ControlPlane does not have", reason, condition)
			}
		}
	}
}

func TestAWayThatComesBackEnds(t *testing.T) {
	// The operator reports no such thing; a plugin that hangs would be the worst way to find out.
	one, other := aPlane(says("AdminCredentialReady", "WaitingForKORC", ""), says("DependenciesReady", "WaitingForKORC", "")), aUser()
	if e := (world{subjects: []subject{one, other}}).explain(one); len(e.Because) != 1 {
		t.Errorf("the way has %d findings", len(e.Because))
	}
}
