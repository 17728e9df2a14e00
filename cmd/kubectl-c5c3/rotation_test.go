// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

func asks(generation int64) change {
	return func(s subject) {
		switch o := s.(type) {
		case *v1alpha1.KeystoneUser:
			o.Spec.PasswordGeneration = generation
		case *v1alpha1.KeystoneApplicationCredential:
			o.Spec.CredentialGeneration = generation
		}
	}
}

func holds(generation int64) change {
	return func(s subject) {
		switch o := s.(type) {
		case *v1alpha1.KeystoneUser:
			o.Status.PasswordGeneration = generation
		case *v1alpha1.KeystoneApplicationCredential:
			o.Status.CredentialGeneration = generation
		}
	}
}

func grace(until time.Duration) change {
	return func(s subject) {
		status := &s.(*v1alpha1.KeystoneApplicationCredential).Status
		status.PreviousCredentialID, status.PreviousCredentialGeneration, status.PreviousCredentialDeleteAt = "c0", 1, at(until)
	}
}

func TestPlanRotation(t *testing.T) {
	failed := says("CredentialReady", "CredentialFailed", "Keystone refuses a login")
	notAssigned := says("CredentialReady", "NamespaceNotAssigned", "ControlPlane openstack/cp does not assign namespace")
	for name, c := range map[string]struct {
		order    order.Object
		to       int64
		underWay bool
		// refused, and caution are parts of the words.
		refused, caution string
		until            time.Duration
	}{
		"the next generation is asked for":                       {order: aCredential(asks(1)), to: 2},
		"a default in spec counts as 1":                          {order: aCredential(asks(0)), to: 2},
		"scheduled rotations have gone ahead of spec":            {order: aCredential(asks(1), holds(7)), to: 8},
		"what was asked for already is not asked for twice":      {order: aCredential(asks(2)), to: 2, underWay: true},
		"a higher one that was asked for is waited for":          {order: aCredential(asks(5)), to: 5, underWay: true},
		"nothing is rotated before the first":                    {order: aCredential(holds(0)), refused: "nothing was delivered yet"},
		"a grace period is waited for":                           {order: aCredential(holds(2), grace(time.Hour)), refused: "in 60m (2026-03-01T13:00:00Z)", until: time.Hour},
		"a grace period that is over waits for Keystone":         {order: aCredential(holds(2), grace(-time.Minute)), refused: "before Keystone confirms"},
		"a frozen order is not rotated":                          {order: aCredential(notAssigned), refused: "frozen"},
		"a frozen order in a grace period is frozen":             {order: aCredential(holds(2), grace(time.Hour), notAssigned), refused: "frozen"},
		"an order that is being deleted is not rotated":          {order: aCredential(deleting), refused: "being deleted"},
		"a scheduled generation that failed is given up":         {order: aCredential(asks(1), failed), to: 3, caution: "given up"},
		"a generation that was asked for and failed is given up": {order: aCredential(asks(2), failed), to: 3, caution: "given up"},
		"the first generation that failed is given up":           {order: aCredential(asks(1), holds(0), failed), to: 2, caution: "given up"},
		"a refused reference is told": {
			order: aCredential(asks(1), says("CredentialReady", "WaitingForUser", "the user is not ready")), to: 2,
			caution: "begins when CredentialReady holds again: it is WaitingForUser: the user is not ready",
		},
		"a password":                         {order: aUser(asks(1)), to: 2},
		"a password that is under way":       {order: aUser(asks(2)), to: 2, underWay: true},
		"a password that was never accepted": {order: aUser(holds(0)), refused: "nothing was delivered yet"},
		"a frozen user":                      {order: aUser(says("DeliveryReady", "NamespaceNotAssigned", "")), refused: "frozen"},
	} {
		t.Run(name, func(t *testing.T) {
			r := planRotation(c.order, now)
			if (c.refused == "") != (r.Refused == "") || !strings.Contains(r.Refused, c.refused) {
				t.Errorf("refused: %q", r.Refused)
			}
			if (c.caution == "") != (r.Caution == "") || !strings.Contains(r.Caution, c.caution) {
				t.Errorf("caution: %q", r.Caution)
			}
			if (c.until != 0) != (r.Until != nil) || (r.Until != nil && !r.Until.Equal(now.Add(c.until))) {
				t.Errorf("until: %v", r.Until)
			}
			if c.refused == "" && (r.To != c.to || r.UnderWay != c.underWay) {
				t.Errorf("generation %d, under way %t", r.To, r.UnderWay)
			}
			r.ask(c.order)
			if c.refused == "" && r.asked(c.order) != c.to {
				t.Errorf("the order asks for %d", r.asked(c.order))
			}
		})
	}
}

// TestGivingUpAFailedGenerationAgainGoesOn: a failed generation may be a higher one than the plugin can
// know of, so each call goes one further.
func TestGivingUpAFailedGenerationAgainGoesOn(t *testing.T) {
	o := aCredential(asks(1), says("CredentialReady", "CredentialFailed", ""))
	for want := int64(3); want < 6; want++ {
		r := planRotation(o, now)
		if r.ask(o); r.To != want {
			t.Errorf("generation %d is asked for and not %d", r.To, want)
		}
	}
}

func TestDelivered(t *testing.T) {
	judgedBefore := func(s subject) {
		for i := range *s.GetConditions() {
			(*s.GetConditions())[i].ObservedGeneration = 0
		}
	}
	noSecret := func(s subject) { s.(*v1alpha1.KeystoneApplicationCredential).Status.SecretName = "" }
	for name, c := range map[string]struct {
		order order.Object
		want  bool
	}{
		"the Secret carries it":                          {aCredential(holds(2)), true},
		"a later generation does as well":                {aCredential(holds(3)), true},
		"the generation is still the one before":         {aCredential(holds(1)), false},
		"status switched and the Secret has not":         {aCredential(holds(2), noSecret), false},
		"the verdict is from before it was asked for":    {aCredential(holds(2), judgedBefore), false},
		"the backup is waited for":                       {aCredential(holds(2), says("DeliveryReady", "BackupNotSynced", "")), false},
		"another condition that fails is another matter": {aCredential(holds(2), says("CredentialReady", "WaitingForUser", "")), true},
		"a password":                      {aUser(holds(2)), true},
		"a password that is not accepted": {aUser(holds(1)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := delivered(c.order, request{To: 2}, 1); got != c.want {
				t.Errorf("delivered is %t", got)
			}
		})
	}
}
