package operatorcondition

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

const (
	minted    = v1alpha1.ConditionCredentialReady
	user      = v1alpha1.ConditionUserReady
	delivered = v1alpha1.ConditionDeliveryReady
)

// credential is a credential order: the generation that its status carries, the Secret it names, and a
// condition with its reason, False unless the reason is one of success.
func credential(generation int64, secret string, conditions ...string) order.Object {
	return &v1alpha1.KeystoneApplicationCredential{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "appcred"},
		Status:     v1alpha1.KeystoneApplicationCredentialStatus{CredentialGeneration: generation, SecretName: secret, Conditions: reported(conditions)},
	}
}

func userOrder(generation int64, conditions ...string) order.Object {
	return &v1alpha1.KeystoneUser{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "user"},
		Status:     v1alpha1.KeystoneUserStatus{PasswordGeneration: generation, SecretName: "user-credentials", Conditions: reported(conditions)},
	}
}

func reported(pairs []string) []metav1.Condition {
	var all []metav1.Condition
	for pair := range slices.Chunk(pairs, 2) {
		status := metav1.ConditionFalse
		if slices.Contains([]string{v1alpha1.ReasonCredentialMinted, v1alpha1.ReasonUserProvisioned, v1alpha1.ReasonDelivered}, pair[1]) {
			status = metav1.ConditionTrue
		}
		all = append(all, metav1.Condition{Type: pair[0], Status: status, Reason: pair[1]})
	}
	return all
}

func deleting(o order.Object) order.Object {
	o.SetDeletionTimestamp(&metav1.Time{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)})
	return o
}

func TestUnderWay(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   order.Kind
		object order.Object
		minted int64
		want   bool
	}{
		"a credential order that nobody looked at yet":        {order.ApplicationCredentialKind, credential(0, ""), 0, false},
		"a credential order that waits for its user":          {order.ApplicationCredentialKind, credential(0, "", minted, v1alpha1.ReasonWaitingForUser), 0, false},
		"a first credential that K-ORC was asked for":         {order.ApplicationCredentialKind, credential(0, "", minted, v1alpha1.ReasonWaitingForCredential), 1, true},
		"a first credential that waits for its backup":        {order.ApplicationCredentialKind, credential(1, "", delivered, v1alpha1.ReasonBackupNotSynced), 1, true},
		"a delivered credential":                              {order.ApplicationCredentialKind, credential(1, "s", delivered, v1alpha1.ReasonDelivered), 1, false},
		"a successor that K-ORC was asked for":                {order.ApplicationCredentialKind, credential(1, "s", minted, v1alpha1.ReasonCredentialMinted), 2, true},
		"a successor that waits for its backup":               {order.ApplicationCredentialKind, credential(2, "", delivered, v1alpha1.ReasonBackupNotSynced), 2, true},
		"a delivered successor in the other's grace period":   {order.ApplicationCredentialKind, credential(2, "s"), 2, false},
		"a delivered credential whose object K-ORC lost":      {order.ApplicationCredentialKind, credential(2, "s"), 0, false},
		"an order in which K-ORC was given an error":          {order.ApplicationCredentialKind, credential(1, "s", minted, v1alpha1.ReasonCredentialError), 2, true},
		"a successor that Keystone refuses":                   {order.ApplicationCredentialKind, credential(1, "s", minted, v1alpha1.ReasonCredentialFailed), 2, false},
		"a successor whose role is gone":                      {order.ApplicationCredentialKind, credential(1, "s", minted, v1alpha1.ReasonNoRoleOnProject), 2, false},
		"a live credential without a role, not delivered":     {order.ApplicationCredentialKind, credential(2, "", minted, v1alpha1.ReasonNoRoleOnProject, delivered, v1alpha1.ReasonBackupNotSynced), 2, true},
		"a credential whose Secret's name somebody has":       {order.ApplicationCredentialKind, credential(1, "", delivered, v1alpha1.ReasonDeliveryRefused), 1, false},
		"a frozen successor":                                  {order.ApplicationCredentialKind, credential(1, "s", minted, v1alpha1.ReasonNamespaceNotAssigned), 2, false},
		"a frozen delivery":                                   {order.ApplicationCredentialKind, credential(2, "", minted, v1alpha1.ReasonNamespaceNotAssigned, delivered, v1alpha1.ReasonBackupNotSynced), 2, false},
		"an order without its ControlPlane":                   {order.ApplicationCredentialKind, credential(1, "s", minted, v1alpha1.ReasonControlPlaneNotFound), 2, false},
		"a successor of an order that is being deleted":       {order.ApplicationCredentialKind, deleting(credential(1, "s")), 2, false},
		"a user order that nobody looked at yet":              {order.UserKind, userOrder(0), 0, false},
		"a first password that K-ORC was asked for":           {order.UserKind, userOrder(0, user, v1alpha1.ReasonWaitingForServiceAccounts), 1, true},
		"a password that Keystone accepted, not delivered":    {order.UserKind, userOrder(1, delivered, v1alpha1.ReasonBackupNotSynced), 1, true},
		"a delivered password":                                {order.UserKind, userOrder(1, delivered, v1alpha1.ReasonDelivered), 1, false},
		"a next password that K-ORC was asked for":            {order.UserKind, userOrder(1, delivered, v1alpha1.ReasonWaitingForServiceAccounts), 2, true},
		"a user whose name is taken":                          {order.UserKind, userOrder(0, user, v1alpha1.ReasonServiceAccountCollision), 1, false},
		"a password that K-ORC can't set":                     {order.UserKind, userOrder(1, user, v1alpha1.ReasonServiceAccountsFailed), 2, false},
		"a password for a Keystone that nobody publishes":     {order.UserKind, userOrder(1, delivered, v1alpha1.ReasonKeystoneNotPublished), 1, false},
		"a next password of an order that is being deleted":   {order.UserKind, deleting(userOrder(1)), 2, false},
		"a project order, which is delivered nothing":         {order.ProjectKind, &v1alpha1.KeystoneProject{}, 0, false},
		"a role assignment order, which is delivered nothing": {order.RoleAssignmentKind, &v1alpha1.KeystoneRoleAssignment{}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := underWay(observed{kind: tc.kind, object: tc.object, minted: tc.minted}); got != tc.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

func TestUnderWay_every_life_passes_through_it_and_ends_outside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		generation := rapid.Int64Range(1, 1<<40).Draw(t, "generation")
		for _, step := range []struct {
			accepted, minted int64
			secret           string
			want             bool
		}{
			{generation, generation, "s", false},
			{generation, generation + 1, "s", true},
			{generation + 1, generation + 1, "", true},
			{generation + 1, generation + 1, "s", false},
		} {
			got := underWay(observed{kind: order.ApplicationCredentialKind, object: credential(step.accepted, step.secret), minted: step.minted})
			if got != step.want {
				t.Fatalf("%+v is %t", step, got)
			}
		}
	})
}

func TestJudge(t *testing.T) {
	busy := func(namespace, name string) observed {
		object := credential(0, "")
		object.SetNamespace(namespace)
		object.SetName(name)
		return observed{kind: order.ApplicationCredentialKind, object: object, minted: 1}
	}
	quiet := observed{kind: order.UserKind, object: userOrder(1, delivered, v1alpha1.ReasonDelivered), minted: 1}
	for name, tc := range map[string]struct {
		orders  []observed
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"no_order":     {nil, metav1.ConditionTrue, ReasonNothingUnderWay, "no order stands between a mint and its delivery"},
		"quiet_orders": {[]observed{quiet, quiet}, metav1.ConditionTrue, ReasonNothingUnderWay, "no order stands between a mint and its delivery"},
		"one_order":    {[]observed{quiet, busy("a", "x")}, metav1.ConditionFalse, ReasonAwaitingDelivery, "KeystoneApplicationCredential a/x stands between a mint and its delivery"},
		"many_orders": {
			[]observed{busy("b", "a"), quiet, busy("a", "y"), busy("a", "x")}, metav1.ConditionFalse, ReasonAwaitingDelivery,
			"3 orders stand between a mint and its delivery, KeystoneApplicationCredential a/x among them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(tc.orders)
			if got.Type != Upgradeable || got.Status != tc.status || got.Reason != tc.reason || got.Message != tc.message {
				t.Errorf("it is %+v", got)
			}
			slices.Reverse(tc.orders)
			if again := judge(tc.orders); again != got {
				t.Errorf("in another order of the orders it is %+v", again)
			}
		})
	}
}
