package keystoneroleassignment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

// comes has the API server serve K-ORC's kind.
func comes(w *ordertest.World) { w.NotServed[korcapi.Kind] = false }

// goes has it serve the kind no more: a CRD takes its objects with it, and K-ORC unassigns what they
// stood for, unless it lets go of them without a word to Keystone.
func goes(w *ordertest.World) {
	w.T.Helper()
	w.Delete(ordertest.Child(order.RoleAssignmentKind, "member", assignmentChild), &korcapi.RoleAssignment{})
	w.PlayKORC()
	w.NotServed[korcapi.Kind] = true
}

// crash stops the operator at one of its writes, in the cluster or in Keystone.
type crash struct {
	// at is the number of the write, counted from 1; 0 is never.
	at int
	// done tells whether the write is done before the operator stops. Otherwise it is lost.
	done bool
	seen int
	// dead is so from the crash until a new operator starts: nothing gets through meanwhile, not even
	// the status in which the old one would have told of it.
	dead bool
}

var errCrash = errors.New("crashed")

// write does a write, or not, and tells whether the operator stopped there.
func (c *crash) write(do func() error) error {
	if c.dead {
		return errCrash
	}
	c.seen++
	if c.seen != c.at {
		return do()
	}
	c.dead = true
	if c.done {
		if err := do(); err != nil {
			return err
		}
	}
	return errCrash
}

const grantPath = "/v3/projects/p-1/users/u-1/roles/r-member"

// watchOver makes the crash happen, and looks after every single thing that could take the role away: each
// request of the operator to Keystone, each of its writes, and what the returned function is called after.
// It fails at the first moment at which Keystone does not have a role that it had.
func watchOver(w *ordertest.World, c *crash) (look func(after string)) {
	had := false
	judge := func(has bool, after string) {
		if had && !has {
			w.T.Fatalf("the role is gone after %s", after)
		}
		had = has
	}
	look = func(after string) { w.T.Helper(); judge(granted(w), after) }
	w.Keystone.With(func() {
		w.Keystone.Fault = func(answer http.ResponseWriter, r *http.Request) bool {
			// Keystone is locked here, so the fields are read as they are.
			judge(w.Keystone.Grants["p-1/u-1/r-member"], "something before "+r.Method+" "+r.URL.Path)
			if !c.dead && (r.URL.Path != grantPath || r.Method != http.MethodPut) {
				return false
			}
			stopped := c.write(func() error {
				w.Keystone.Grants["p-1/u-1/r-member"] = true
				return nil
			})
			if stopped != nil {
				http.Error(answer, "the operator does not live to see this", http.StatusBadGateway)
				return true
			}
			return false
		}
	})
	write := func(what string, do func() error) error {
		err := c.write(do)
		look(what)
		return err
	}
	w.Client = interceptor.NewClient(w.Client, interceptor.Funcs{
		Apply: func(ctx context.Context, inner client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return write("an apply", func() error { return inner.Apply(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, inner client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return write("a patch of "+o.GetName(), func() error { return inner.Patch(ctx, o, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, inner client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return write("a status patch of "+o.GetName(), func() error { return inner.SubResource(sub).Patch(ctx, o, patch, options...) })
		},
		Delete: func(ctx context.Context, inner client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return write("a delete of "+o.GetName(), func() error { return inner.Delete(ctx, o, options...) })
		},
	})
	w.Restart()
	return look
}

// live plays passes with K-ORC in between. An operator that crashed starts anew.
func live(w *ordertest.World, c *crash, look func(after string)) {
	w.T.Helper()
	for range 12 {
		if _, err := w.TryPass("member"); err != nil && !c.dead {
			w.T.Fatal(err)
		}
		if c.dead {
			c.dead = false
			w.Restart()
		}
		look("a pass")
		if !w.Gone("member") && status(w, "member").RoleID == "" {
			w.T.Fatal("the status forgot the role: a credential order would be refused")
		}
		w.PlayKORC()
		look("K-ORC")
		w.Advance(40 * time.Second)
	}
}

// TestMigration moves an order from one way of assigning to the other, with a crash at each write, lost or
// done, and watches the role in Keystone at every step.
func TestMigration(t *testing.T) {
	for name, way := range map[string]struct {
		// korcAssigns is who assigns at first.
		korcAssigns bool
		change      func(*ordertest.World)
		arrived     progress
		// writes is how many an undisturbed move takes at the least.
		writes int
	}{
		"to_korc":                      {false, comes, byKORC, 3},
		"back_when_korc_just_lets_go":  {true, func(w *ordertest.World) { w.KORC.LetsGo = true; goes(w) }, direct, 3},
		"back_after_korc_unassigned":   {true, goes, direct, 3},
		"to_korc_when_it_adopts_later": {false, func(w *ordertest.World) { w.KORC.Idle = true; comes(w); w.Pass("member"); w.KORC.Idle = false }, byKORC, 1},
	} {
		move := func(t *testing.T, c *crash) {
			t.Helper()
			w := ready(t, way.korcAssigns)
			way.change(w)
			look := watchOver(w, c)
			look("the beginning") // what K-ORC took away with its kind is not the move's to lose
			live(w, c, look)
			w.Wants("member", v1alpha1.ReasonRoleAssigned)
			if got := recordOf(roleImport(w, "member")).Progress; got != way.arrived || !granted(w) {
				t.Fatalf("it is %q, granted %v; want %q", got, granted(w), way.arrived)
			}
			if w.Announced(revocationRepaired) {
				t.Errorf("events %v", w.Events)
			}
			w.Quiet(func() { w.Pass("member") })
		}
		t.Run(name, func(t *testing.T) {
			undisturbed := &crash{}
			move(t, undisturbed)
			if undisturbed.seen < way.writes {
				t.Fatalf("the move takes %d writes only, want %d at the least", undisturbed.seen, way.writes)
			}
			for at := range undisturbed.seen {
				for _, done := range []bool{false, true} {
					t.Run(fmt.Sprintf("crash_at_write_%d_done_%v", at+1, done), func(t *testing.T) { move(t, &crash{at: at + 1, done: done}) })
				}
			}
		})
	}
}

// TestMigration_of_an_order_that_is_deleted stops the move after each of its writes and deletes the order:
// whoever has assigned the role by then, it is taken away.
func TestMigration_of_an_order_that_is_deleted(t *testing.T) {
	for name, korcAssigns := range map[string]bool{"to_korc": false, "back": true} {
		t.Run(name, func(t *testing.T) {
			for at := 1; at <= 4; at++ {
				w := ready(t, korcAssigns)
				if korcAssigns {
					goes(w)
				} else {
					comes(w)
				}
				unwatched, stop := w.Client, &crash{at: at, done: true}
				watchOver(w, stop)
				for range 6 {
					if _, err := w.TryPass("member"); err != nil {
						break // the operator stops here
					}
					w.PlayKORC()
					w.Advance(40 * time.Second)
				}
				if stop.seen != at {
					t.Fatalf("the move has %d writes only", stop.seen)
				}
				w.Client = unwatched
				w.Keystone.With(func() { w.Keystone.Fault = nil })
				w.Restart()
				remove(w, "member")
				w.Settle("member")
				if !w.Gone("member") || granted(w) || roleImport(w, "member") != nil {
					t.Errorf("stopped after write %d: gone %v, granted %v", at, w.Gone("member"), granted(w))
				}
			}
		})
	}
}

func TestKind_comes_and_goes(t *testing.T) {
	underway := func(t *testing.T) *ordertest.World {
		w := ready(t, false)
		comes(w)
		w.KORC.Idle = true
		w.Pass("member")
		return w
	}
	taken := func(w *ordertest.World) {
		w.T.Helper()
		w.Wants("member", v1alpha1.ReasonRoleAssigned)
		if !granted(w) || status(w, "member").RoleID == "" {
			w.T.Fatal("a gap")
		}
	}
	t.Run("an_order_is_fulfilled_however_long_korc_takes", func(t *testing.T) {
		w := underway(t)
		for range 3 {
			w.Pass("member")
			taken(w)
		}
		if korcAssignment(w, "member") == nil {
			t.Fatal("K-ORC was not asked")
		}
		w.KORC.Idle = false
		w.Settle("member")
		taken(w)
		if recordOf(roleImport(w, "member")).Progress != byKORC {
			t.Error("K-ORC has not taken over")
		}
	})
	t.Run("the_audit_goes_on_while_korc_takes_its_time", func(t *testing.T) {
		w := underway(t)
		w.Pass("member")
		w.Keystone.Grant("p-1", "u-1", "r-member", false)
		w.Advance(2 * ordertest.AuditInterval)
		w.Pass("member")
		taken(w)
		if !w.Announced(assignmentRepaired) {
			t.Errorf("events %v", w.Events)
		}
	})
	giveUp := func(w *ordertest.World) {
		w.T.Helper()
		object := korcAssignment(w, "member")
		ordertest.GiveUp(object, &object.Status.Conditions, orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration creating resource: 403 Forbidden")
		w.Must(w.Client.Status().Update(w.T.Context(), object))
	}
	t.Run("korc_that_gives_up_on_its_way_is_told_to_look_again", func(t *testing.T) {
		w := underway(t)
		giveUp(w)
		w.Pass("member")
		taken(w)
		w.KORC.Idle = false
		w.Settle("member")
		taken(w)
		if recordOf(roleImport(w, "member")).Progress != byKORC {
			t.Error("K-ORC has not taken over")
		}
	})
	t.Run("what_was_taken_away_meanwhile_is_assigned_again_although_korc_gives_up", func(t *testing.T) {
		w := underway(t)
		giveUp(w)
		w.Keystone.Grant("p-1", "u-1", "r-member", false)
		w.Pass("member")
		taken(w)
	})
	t.Run("a_keystone_that_is_away_stops_the_move_and_not_the_order", func(t *testing.T) {
		w := underway(t)
		w.Keystone.Down(true)
		w.KORC.Idle = false
		w.Settle("member")
		taken(w)
		if recordOf(roleImport(w, "member")).Progress != moving {
			t.Error("K-ORC was believed without Keystone's word")
		}
		w.Keystone.Down(false)
		w.Settle("member")
		taken(w)
		if recordOf(roleImport(w, "member")).Progress != byKORC {
			t.Error("K-ORC has not taken over")
		}
	})
	t.Run("the_role_is_assigned_directly_on_the_first_pass_after_the_kind_went", func(t *testing.T) {
		w := ready(t, true)
		goes(w)
		if granted(w) {
			t.Fatal("the role is still there")
		}
		w.Pass("member")
		taken(w)
	})
	t.Run("also_when_the_kind_goes_in_the_middle_of_the_move", func(t *testing.T) {
		w := ready(t, false)
		comes(w)
		w.Pass("member")
		w.PlayKORC() // assigns, and nobody has seen it yet
		goes(w)
		w.Pass("member")
		taken(w)
	})
}
