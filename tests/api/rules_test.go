package api

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

// corpora is where the folders invalid-*-cr are, relative to this package.
const corpora = "../e2e"

// atLeast is how many refused objects the corpus of an order kind has at the least.
const atLeast = 40

func corpus(t *testing.T, kind string) []admission.Case {
	t.Helper()
	cases, err := admission.Read(corpora, kind)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestAdmission sends every case of the corpora to the API server, as kubectl does: with strict
// validation, which refuses a field that the schema does not know.
func TestAdmission(t *testing.T) {
	strict := client.WithFieldValidation(api, metav1.FieldValidationStrict)
	for _, kind := range admission.Kinds {
		t.Run(kind, func(t *testing.T) {
			refused := 0
			for _, c := range corpus(t, kind) {
				if !c.Accepted {
					refused++
				}
				t.Run(strings.ReplaceAll(c.Name, " ", "_"), func(t *testing.T) {
					checkAnswer(t, send(t, strict, c), c.Messages)
				})
			}
			if slices.Contains(admission.OrderKinds, kind) && refused < atLeast {
				t.Errorf("the corpus refuses %d objects, want %d at the least", refused, atLeast)
			}
		})
	}
}

// send creates the object of a case, or replaces the stored one with it.
func send(t *testing.T, to client.Client, c admission.Case) error {
	t.Helper()
	if c.Stored == nil {
		// A dry run goes through all of admission and leaves nothing behind.
		return to.Create(t.Context(), c.Object, client.DryRunAll)
	}
	c.Object.SetResourceVersion(store(t, c.Stored).GetResourceVersion())
	return to.Update(t.Context(), c.Object)
}

// notChecked is what the API server adds when schema errors kept it from evaluating CEL rules. It says
// nothing about the object.
const notChecked = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// checkAnswer wants exactly these messages, none for an object that is taken: a case that is refused for
// something else too proves nothing about its rule.
func checkAnswer(t *testing.T, err error, want []string) {
	t.Helper()
	if got := answer(t, err); !slices.Equal(got, want) {
		t.Errorf("the API server answers\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// answer is what the API server says about an object, sorted.
func answer(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("this is no answer of an API server: %v", err)
	}
	if !apierrors.IsInvalid(err) || status.ErrStatus.Details == nil {
		return []string{status.ErrStatus.Message}
	}
	messages := map[string]bool{}
	for _, cause := range status.ErrStatus.Details.Causes {
		if !strings.Contains(cause.Message, notChecked) {
			messages[fmt.Sprintf("%s: %s", cause.Field, cause.Message)] = true
		}
	}
	return slices.Sorted(maps.Keys(messages))
}

// object is an object as the cases see it.
type object = unstructured.Unstructured
