package order

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

func TestPersist_observes_a_generation_only_when_it_was_judged(t *testing.T) {
	var (
		lost = Fail(v1alpha1.ReasonServiceAccountError, apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")))
		done = Done(v1alpha1.ReasonUserProvisioned, "there")
		wait = Wait(v1alpha1.ReasonWaitingForServiceAccounts, WaitShort, "not yet")
	)
	cases := map[string]struct {
		user, delivery *Outcome
		observed       int64
		ready          bool
	}{
		"both_hold_at_the_new_generation":        {done, done, 2, true},
		"one_lost_a_race":                        {done, lost, 1, true},
		"both_lost_a_race":                       {lost, lost, 1, true},
		"nothing_is_reported_yet":                {nil, nil, 1, true},
		"one_waits":                              {wait, done, 2, false},
		"one_waits_and_the_other_lost_a_race":    {lost, wait, 2, false},
		"the_first_waits_and_the_other_is_stale": {wait, nil, 2, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			user := &v1alpha1.KeystoneUser{}
			user.Name, user.Namespace, user.Generation = "workflow", "tenant-a", 1
			before := newPass(user)
			before.ReportAll(done)
			before.aggregate()
			before.observe()
			user.Generation = 2

			p := newPass(user)
			p.Client = fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(user).WithStatusSubresource(user).Build()
			if err := p.Client.Get(t.Context(), client.ObjectKeyFromObject(user), user); err != nil {
				t.Fatal(err)
			}
			p.original, p.recorder = user.DeepCopy(), discard{}
			for condition, outcome := range map[string]*Outcome{v1alpha1.ConditionUserReady: c.user, v1alpha1.ConditionDeliveryReady: c.delivery} {
				if outcome != nil {
					p.Report(condition, outcome)
				}
			}
			if err := p.Persist(t.Context()); err != nil {
				t.Fatal(err)
			}
			stored := &v1alpha1.KeystoneUser{}
			if err := p.Client.Get(t.Context(), client.ObjectKeyFromObject(user), stored); err != nil {
				t.Fatal(err)
			}
			ready := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
			if stored.Status.ObservedGeneration != c.observed || ready.ObservedGeneration != c.observed {
				t.Errorf("observed is generation %d, and Ready's is %d, want %d", stored.Status.ObservedGeneration, ready.ObservedGeneration, c.observed)
			}
			if got := meta.IsStatusConditionTrue(stored.Status.Conditions, v1alpha1.ConditionReady); got != c.ready {
				t.Errorf("Ready is %t with %q", got, ready.Message)
			}
		})
	}
}
