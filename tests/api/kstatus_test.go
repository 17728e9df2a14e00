package api

import (
	"context"
	"encoding/json"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

// observedRule keeps kstatus from taking an object for finished that no controller has judged: it
// reads an observed generation without a Ready condition as Current.
const observedRule = "status.observedGeneration comes together with the condition Ready"

// ownConditions are the condition types of each kind beside Ready.
var ownConditions = map[string][]string{
	admission.ControlPlane: {
		v1alpha1.ConditionAdminCredentialReady, v1alpha1.ConditionDependenciesReady,
		v1alpha1.ConditionSecretStoreReady, v1alpha1.ConditionKeystoneReachable,
	},
	admission.User:                  {v1alpha1.ConditionUserReady, v1alpha1.ConditionDeliveryReady},
	admission.Project:               {v1alpha1.ConditionProjectReady},
	admission.RoleAssignment:        {v1alpha1.ConditionAssignmentReady},
	admission.ApplicationCredential: {v1alpha1.ConditionCredentialReady, v1alpha1.ConditionDeliveryReady},
}

func TestKstatus(t *testing.T) {
	for _, kind := range admission.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Run("reads_a_new_object_as_in_progress", func(t *testing.T) {
				created := admission.Minimal(kind, uniqueName())
				stored := store(t, created)
				// What the answer to the create says counts too: tools compute from it before they read.
				for where, o := range map[string]*object{"the answer to its create": created, "what is stored": stored} {
					if got := computed(t, o); got != status.InProgressStatus {
						t.Errorf("%s reads %s", where, got)
					}
				}
			})
			t.Run("reads_a_change_that_nobody_looked_at_as_in_progress", func(t *testing.T) {
				stored := store(t, admission.Minimal(kind, uniqueName()))
				writeStatus(t, stored, values{"observedGeneration": stored.GetGeneration(), "conditions": conditions("Ready", "True", "AllReady")})
				if got := computed(t, stored); got != status.CurrentStatus {
					t.Fatalf("a fulfilled object reads %s", got)
				}
				change(kind)(stored)
				if err := api.Update(t.Context(), stored); err != nil {
					t.Fatal(err)
				}
				if got := computed(t, read(t, stored)); got != status.InProgressStatus {
					t.Errorf("after a change of its spec it reads %s", got)
				}
			})
			t.Run("reads_an_object_that_is_being_deleted_as_terminating", func(t *testing.T) {
				doomed := admission.Minimal(kind, uniqueName())
				doomed.SetFinalizers([]string{"c5c3.io/test"})
				if err := api.Create(t.Context(), doomed); err != nil {
					t.Fatal(err)
				}
				writeStatus(t, doomed, values{"observedGeneration": doomed.GetGeneration(), "conditions": conditions("Ready", "True", "AllReady")})
				if err := api.Delete(t.Context(), doomed); err != nil {
					t.Fatal(err)
				}
				terminating := read(t, doomed)
				if got := computed(t, terminating); got != status.TerminatingStatus {
					t.Errorf("it reads %s", got)
				}
				terminating.SetFinalizers(nil)
				if err := api.Update(t.Context(), terminating); err != nil {
					t.Fatal(err)
				}
			})
			t.Run("reads_current_only_when_ready_at_this_generation", func(t *testing.T) { checkStatuses(t, kind) })
		})
	}
}

// checkStatuses writes generated statuses, whatever a controller might write, and asks kstatus about
// each that the API server takes.
func checkStatuses(t *testing.T, kind string) {
	t.Helper()
	stored := store(t, admission.Minimal(kind, uniqueName()))
	// Three changes, so that there are older generations to be stale at.
	for range 3 {
		change(kind)(stored)
		if err := api.Update(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	generation := stored.GetGeneration()
	if generation < 4 {
		t.Fatalf("three changes of the spec lead to generation %d", generation)
	}
	taken, current := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		generated := values{}
		observed := rapid.SampledFrom([]any{nil, int64(-1), int64(0), int64(1), generation - 1, generation, generation}).Draw(t, "observedGeneration")
		if observed != nil {
			generated["observedGeneration"] = observed
		}
		ready := metav1.ConditionStatus("")
		var list []values
		for _, condition := range append([]string{v1alpha1.ConditionReady}, ownConditions[kind]...) {
			value := rapid.SampledFrom([]metav1.ConditionStatus{"", metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}).Draw(t, condition)
			if condition == v1alpha1.ConditionReady {
				ready = value
			}
			if value != "" {
				list = append(list, conditions(condition, string(value), "Generated")...)
			}
		}
		if len(list) > 0 || rapid.Bool().Draw(t, "conditions are an empty list") {
			generated["conditions"] = list
		}

		err := putStatus(t, stored, generated)
		if ready == "" && observed != nil && observed.(int64) >= 0 {
			if !apierrors.IsInvalid(err) {
				t.Fatalf("an observed generation without Ready must be refused, got %v", err)
			}
			return
		}
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		taken++
		fulfilled := ready == metav1.ConditionTrue && observed == generation
		result, err := status.Compute(stored)
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Status == status.CurrentStatus; got != fulfilled {
			t.Fatalf("%s: %s; Ready is %q at generation %v of %d", result.Status, result.Message, ready, observed, generation)
		}
		if fulfilled {
			current++
		}
	})
	if !t.Failed() && (taken == 0 || current == 0) {
		t.Errorf("of %d statuses %d are fulfilled; the property says nothing", taken, current)
	}
}

// TestObservedGeneration has the rule behind the property in the API server's own words.
func TestObservedGeneration(t *testing.T) {
	for _, kind := range admission.Kinds {
		t.Run(kind, func(t *testing.T) {
			stored := store(t, admission.Minimal(kind, uniqueName()))
			for name, c := range map[string]struct {
				status  values
				refused bool
			}{
				"with_ready":                        {values{"observedGeneration": 1, "conditions": conditions("Ready", "False", "x")}, false},
				"not_yet_and_no_condition":          {values{"observedGeneration": -1}, false},
				"not_yet_and_another_condition":     {values{"observedGeneration": -1, "conditions": conditions(ownConditions[kind][0], "False", "x")}, false},
				"without_any_condition":             {values{"observedGeneration": 1}, true},
				"with_an_empty_list_of_conditions":  {values{"observedGeneration": 1, "conditions": []any{}}, true},
				"with_another_condition_than_ready": {values{"observedGeneration": 1, "conditions": conditions(ownConditions[kind][0], "True", "x")}, true},
			} {
				t.Run(name, func(t *testing.T) {
					err := putStatus(t, stored, c.status)
					var want []string
					if c.refused {
						want = []string{"status: Invalid value: " + observedRule}
					}
					checkAnswer(t, err, want)
				})
			}
		})
	}
}

// change is an edit of the spec that every kind takes, as often as it is made.
func change(kind string) admission.Edit {
	return func(o *object) {
		switch kind {
		case admission.ControlPlane:
			region, _ := nested(o, "spec.region").(string)
			admission.Set("spec.region", region+"x")(o)
		case admission.User:
			admission.Set("spec.passwordGeneration", nested(o, "spec.passwordGeneration").(int64)+1)(o)
		case admission.ApplicationCredential:
			admission.Set("spec.credentialGeneration", nested(o, "spec.credentialGeneration").(int64)+1)(o)
		default:
			// All that these say is immutable. What still counts as a change is how it is written.
			if nested(o, "spec.controlPlaneRef.namespace") == nil {
				admission.Set("spec.controlPlaneRef.namespace", "")(o)
			} else {
				admission.Drop("spec.controlPlaneRef.namespace")(o)
			}
		}
	}
}

func computed(t *testing.T, o *object) status.Status {
	t.Helper()
	result, err := status.Compute(o)
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

func writeStatus(t *testing.T, o *object, what values) {
	t.Helper()
	if err := putStatus(t, o, what); err != nil {
		t.Fatal(err)
	}
}

// putStatus replaces the status as a whole.
func putStatus(t interface {
	Helper()
	Fatal(...any)
	Context() context.Context
}, o *object, what values) error {
	t.Helper()
	patch, err := json.Marshal([]values{{"op": "add", "path": "/status", "value": what}})
	if err != nil {
		t.Fatal(err)
	}
	return api.Status().Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, patch))
}
