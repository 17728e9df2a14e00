package order

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

func newPass(order Object) *Pass {
	return &Pass{Kind: UserKind, Order: order, original: order.DeepCopyObject().(Object), Now: time.Unix(1000, 0)}
}

func TestReport(t *testing.T) {
	t.Run("the_shortest_wish_to_come_back_wins_and_zero_is_none", func(t *testing.T) {
		p := newPass(&v1alpha1.KeystoneUser{})
		for _, after := range []time.Duration{0, time.Minute, 10 * time.Second, 0, time.Hour} {
			p.ComeBack(after)
		}
		if p.after != 10*time.Second {
			t.Errorf("comes back after %s, want 10s", p.after)
		}
	})
	t.Run("a_time_that_has_passed_is_no_wish", func(t *testing.T) {
		p := newPass(&v1alpha1.KeystoneUser{})
		p.ComeBackAt(p.Now)
		p.ComeBackAt(p.Now.Add(-time.Second))
		if p.after != 0 {
			t.Errorf("comes back after %s for a time that has passed", p.after)
		}
	})
	t.Run("a_conflict_keeps_the_condition_and_is_no_error", func(t *testing.T) {
		p := newPass(&v1alpha1.KeystoneUser{})
		p.Report(v1alpha1.ConditionUserReady, Done(v1alpha1.ReasonUserProvisioned, "there"))
		conflict := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "x", errors.New("changed"))
		p.Report(v1alpha1.ConditionUserReady, Fail(v1alpha1.ReasonServiceAccountError, conflict))
		if !meta.IsStatusConditionTrue(*p.Order.GetConditions(), v1alpha1.ConditionUserReady) || p.err != nil {
			t.Errorf("a lost race shows: %v, error %v", *p.Order.GetConditions(), p.err)
		}
		if p.after == 0 {
			t.Error("nobody comes back after a lost race")
		}
	})
	t.Run("a_failure_is_reported_and_returned", func(t *testing.T) {
		p := newPass(&v1alpha1.KeystoneUser{})
		p.Report(v1alpha1.ConditionUserReady, Fail(v1alpha1.ReasonServiceAccountError, errors.New("no such luck")))
		condition := meta.FindStatusCondition(*p.Order.GetConditions(), v1alpha1.ConditionUserReady)
		if condition == nil || condition.Reason != v1alpha1.ReasonServiceAccountError || p.err == nil {
			t.Errorf("condition %v, error %v", condition, p.err)
		}
	})
}

func TestAggregate(t *testing.T) {
	cases := map[string]struct {
		user, delivery *metav1.ConditionStatus
		ready          metav1.ConditionStatus
		mentions       string
	}{
		"both_true_is_ready":                 {ptrTo(metav1.ConditionTrue), ptrTo(metav1.ConditionTrue), metav1.ConditionTrue, "fulfilled"},
		"the_first_that_fails_is_named":      {ptrTo(metav1.ConditionFalse), ptrTo(metav1.ConditionFalse), metav1.ConditionFalse, "UserReady: SomeReason: some words"},
		"the_second_is_named_when_it_fails":  {ptrTo(metav1.ConditionTrue), ptrTo(metav1.ConditionFalse), metav1.ConditionFalse, "DeliveryReady: SomeReason"},
		"one_that_is_missing_is_not_ready":   {ptrTo(metav1.ConditionTrue), nil, metav1.ConditionFalse, "DeliveryReady is not reported yet"},
		"one_that_is_unknown_is_not_ready":   {ptrTo(metav1.ConditionUnknown), ptrTo(metav1.ConditionTrue), metav1.ConditionFalse, "UserReady"},
		"none_reported_is_not_ready_either":  {nil, nil, metav1.ConditionFalse, "UserReady is not reported yet"},
		"a_true_one_after_a_false_is_no_use": {ptrTo(metav1.ConditionFalse), ptrTo(metav1.ConditionTrue), metav1.ConditionFalse, "UserReady: SomeReason"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPass(&v1alpha1.KeystoneUser{})
			for condition, status := range map[string]*metav1.ConditionStatus{v1alpha1.ConditionUserReady: c.user, v1alpha1.ConditionDeliveryReady: c.delivery} {
				if status != nil {
					p.Report(condition, &Outcome{Status: *status, Reason: "SomeReason", Message: "some words"})
				}
			}
			p.aggregate()
			ready := meta.FindStatusCondition(*p.Order.GetConditions(), v1alpha1.ConditionReady)
			if ready.Status != c.ready || !strings.Contains(ready.Message, c.mentions) {
				t.Errorf("Ready is %s with %q, want %s and %q", ready.Status, ready.Message, c.ready, c.mentions)
			}
			wantReason := map[metav1.ConditionStatus]string{metav1.ConditionTrue: v1alpha1.ReasonAllReady, metav1.ConditionFalse: v1alpha1.ReasonNotAllReady}[c.ready]
			if ready.Reason != wantReason {
				t.Errorf("reason %s, want %s", ready.Reason, wantReason)
			}
		})
	}
}

func TestTruncate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.StringN(1, 40, -1).Draw(t, "text"), rapid.IntRange(1, 2000).Draw(t, "times"))
		cut := Truncate(text)
		if len(cut) > maxMessageLength {
			t.Fatalf("%d bytes are left", len(cut))
		}
		if !strings.HasPrefix(text, cut) {
			t.Fatal("what is left is not the beginning")
		}
		if utf8.ValidString(text) && !utf8.ValidString(cut) {
			t.Fatal("a rune was cut in two")
		}
		if len(text) <= maxMessageLength && cut != text {
			t.Fatal("a message that fits was cut")
		}
		if len(text) > maxMessageLength && len(cut) < maxMessageLength-utf8.UTFMax {
			t.Fatalf("more was cut than needed: %d bytes are left", len(cut))
		}
	})
}

func ptrTo[T any](value T) *T { return &value }
