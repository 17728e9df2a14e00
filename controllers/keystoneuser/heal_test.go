package keystoneuser

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// claims has the order's annotation say so.
func (w *fakeWorld) claims(value string) {
	w.t.Helper()
	user := w.order()
	user.Annotations = map[string]string{order.RotateAnnotation: value}
	w.must(w.client.Update(w.t.Context(), user))
}

// changedByHand gives the user another password in Keystone, as an administrator would.
func changedByHand(w *fakeWorld) {
	id := w.order().Status.UserID
	w.keystone.with(func() { w.keystone.users[id].password = "by hand" })
}

func (w *fakeWorld) logins() int {
	return strings.Count(strings.Join(w.keystone.asked(), "\n"), "/auth/tokens")
}

func TestADeadPasswordIsReplaced(t *testing.T) {
	w := fulfilled(t)
	before := w.delivered().Data["password"]
	changedByHand(w)
	w.pass()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady) // nobody said so
	w.claims(DeadPassword(1, w.clock.Now()))
	w.keystone.asked()
	w.pass()
	if got := w.logins(); got != 1 {
		t.Errorf("it was tried %d times, and each counts towards locking the account", got)
	}
	told := ""
	for len(w.events.Events) > 0 {
		told += <-w.events.Events + "\n"
	}
	if !strings.Contains(told, "password generation 2 is being set in Keystone (PasswordRefused)") {
		t.Errorf("the Events are %s", told)
	}
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	status := w.order().Status
	var password string
	w.keystone.with(func() { password = w.keystone.users[status.UserID].password })
	if after := w.delivered().Data["password"]; status.PasswordGeneration != 2 || password == "by hand" || string(after) != password || bytes.Equal(after, before) {
		t.Errorf("status is %+v, and the Secret has Keystone's password: %t", status, string(after) == password)
	}

	// The annotation is of yesterday: the next pass is a steady one.
	w.writes = nil
	w.keystone.asked()
	if result := w.pass(); result.RequeueAfter != 0 || len(w.writes) > 0 || w.logins() > 0 {
		t.Errorf("it wrote %v and comes back after %s", w.writes, result.RequeueAfter)
	}
}

func TestAClaimThatAPasswordIsDead(t *testing.T) {
	asClaimed := func(w *fakeWorld) { w.claims(DeadPassword(1, w.clock.Now())) }
	saying := func(value string) func(*fakeWorld) { return func(w *fakeWorld) { w.claims(value) } }
	for name, c := range map[string]struct {
		given func(*fakeWorld)
		claim func(*fakeWorld)
		// logins of the user's that succeed on the pass.
		logins int
		// note is what the order tells.
		note string
		// back tells that it is looked into again soon, and over ends what is in the way.
		back bool
		over func(*fakeWorld)
	}{
		"it_works": {given: func(*fakeWorld) {}, claim: asClaimed, logins: 1, note: "and Keystone accepts it"},
		"the_user_is_disabled": {given: func(w *fakeWorld) {
			changedByHand(w)
			id := w.order().Status.UserID
			w.keystone.with(func() { w.keystone.users[id].disabled = true })
		}, claim: asClaimed, note: "disabled"},
		"the_user_is_gone": {given: func(w *fakeWorld) {
			id := w.order().Status.UserID
			w.keystone.with(func() { delete(w.keystone.users, id) })
		}, claim: asClaimed, note: "gone"},
		"keystone_is_away": {given: func(w *fakeWorld) { changedByHand(w); w.keystone.with(func() { w.keystone.down = true }) }, claim: asClaimed, note: "when Keystone answers", back: true,
			over: func(w *fakeWorld) { w.keystone.with(func() { w.keystone.down = false }) }},
		"the_store_is_away": {given: func(w *fakeWorld) { changedByHand(w); w.must(w.client.Delete(w.t.Context(), readyStore())) }, claim: asClaimed, note: "secret store", back: true,
			over: func(w *fakeWorld) { w.must(w.client.Create(w.t.Context(), readyStore())) }},
		"another_generation":  {given: changedByHand, claim: saying("2@2026-03-01T12:00:00Z")},
		"no_generation":       {given: changedByHand, claim: saying("@2026-03-01T12:00:00Z")},
		"no_time":             {given: changedByHand, claim: saying("1")},
		"another_kinds_words": {given: changedByHand, claim: saying("0f0d3e0f5d8a4b0d9d0e")},
		"of_yesterday":        {given: changedByHand, claim: func(w *fakeWorld) { w.claims(DeadPassword(1, w.clock.Now().Add(-claimLife-time.Second))) }},
		"of_tomorrow":         {given: changedByHand, claim: func(w *fakeWorld) { w.claims(DeadPassword(1, w.clock.Now().Add(claimLife+time.Second))) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := fulfilled(t)
			c.given(w)
			c.claim(w)
			user := w.order().Status.UserID
			refused, accepted := w.keystone.refusedLogins(user), w.keystone.acceptedLogins(user)
			result := w.pass()
			w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
			if got := w.secret(child("password-v2")); got != nil {
				t.Error("another password was made")
			}
			if got := w.keystone.refusedLogins(user) - refused; got != 0 {
				t.Errorf("%d logins were refused, which count towards locking the account", got)
			}
			if got := w.keystone.acceptedLogins(user) - accepted; got != c.logins {
				t.Errorf("%d logins succeeded, want %d", got, c.logins)
			}
			ready := meta.FindStatusCondition(w.order().Status.Conditions, v1alpha1.ConditionUserReady)
			if !strings.Contains(ready.Message, c.note) || c.note == "" && strings.Contains(ready.Message, "said to be dead") {
				t.Errorf("it says %q, want %q in it", ready.Message, c.note)
			}
			if soon := result.RequeueAfter > 0 && result.RequeueAfter <= order.WaitShort; soon != c.back {
				t.Errorf("it comes back after %s", result.RequeueAfter)
			}
			if c.over != nil {
				c.over(w)
				w.settle()
				w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
				if got := w.order().Status.PasswordGeneration; got != 2 {
					t.Errorf("when that is over, the password is of generation %d", got)
				}
			}
		})
	}
}

// Keystone does not tell a locked account from a wrong password. A new password is of no use before the lock
// is over, and is then found good; until then it is not made anew again and again.
func TestALockedAccountGetsOnePassword(t *testing.T) {
	w := fulfilled(t)
	id := w.order().Status.UserID
	w.keystone.with(func() { w.keystone.users[id].locked = true })
	w.claims(DeadPassword(1, w.clock.Now()))
	w.settle()
	w.wants(v1alpha1.ConditionUserReady, v1alpha1.ReasonWaitingForServiceAccounts)
	w.claims(DeadPassword(1, w.clock.Now()))
	w.settle()
	if w.secret(child("password-v3")) != nil {
		t.Error("a second password was made")
	}
	w.keystone.with(func() { w.keystone.users[id].locked = false })
	w.settle()
	w.wants(v1alpha1.ConditionReady, v1alpha1.ReasonAllReady)
	if got := w.order().Status.PasswordGeneration; got != 2 {
		t.Errorf("it has generation %d", got)
	}
}

func TestDeadPassword(t *testing.T) {
	at := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("elsewhere", 3600))
	value := DeadPassword(7, at)
	if value != "7@2026-03-01T12:00:00Z" {
		t.Errorf("it is written %s", value)
	}
	if generation, when, ok := ParseDeadPassword(value); generation != 7 || !when.Equal(at) || !ok {
		t.Errorf("it is read as %d, %s, %t", generation, when, ok)
	}
	for _, value := range []string{"", "7", "7@", "@2026-03-01T12:00:00Z", "0@2026-03-01T12:00:00Z", "-1@2026-03-01T12:00:00Z", "7@yesterday", "7@2026-03-01T12:00:00Z@"} {
		if _, _, ok := ParseDeadPassword(value); ok {
			t.Errorf("%q is read", value)
		}
	}
}
