package keystoneapplicationcredential

import (
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

func TestGenerationOf(t *testing.T) {
	t.Run("reads_back_every_name_that_is_written", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			generation := rapid.Int64Range(1, math.MaxInt64).Draw(t, "generation")
			if got, ok := generationOf(credentialChild(generation), credentialPrefix); !ok || got != generation {
				t.Fatalf("read %d, %t from the name of generation %d", got, ok, generation)
			}
			if _, ok := generationOf(secretChild(generation), credentialPrefix); ok {
				t.Fatal("a secret's name is taken for a credential's")
			}
		})
	})
	for _, name := range []string{
		"", "credential-v", "credential-v0", "credential-v-1", "credential-v+1", "credential-v01",
		"credential-v1x", "credential-v1 ", "credential-v9223372036854775808", "mint-cloud", "xcredential-v1",
	} {
		t.Run("is_not_fooled_by_"+name, func(t *testing.T) {
			if generation, ok := generationOf(name, credentialPrefix); ok {
				t.Errorf("%q is read as generation %d", name, generation)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	t.Run("survives_writing_and_reading", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			moment := rapid.Custom(func(t *rapid.T) *time.Time {
				if rapid.Bool().Draw(t, "none") {
					return nil
				}
				at := time.Unix(rapid.Int64Range(1, 4e9).Draw(t, "at"), 0)
				return &at
			})
			want := rotation.Status{
				ID:           rapid.StringN(1, 8, -1).Draw(t, "id"),
				Generation:   rapid.Int64Range(1, 1e6).Draw(t, "generation"),
				ExpiresAt:    moment.Draw(t, "expires"),
				LastRotation: moment.Draw(t, "last"),
			}
			if deleteAt := moment.Draw(t, "delete"); deleteAt != nil {
				want.Previous = &rotation.Previous{ID: "old", Generation: 1, DeleteAt: *deleteAt}
			}
			order := &v1alpha1.KeystoneApplicationCredential{}
			order.Status.PreviousCredentialID, order.Status.PreviousCredentialGeneration = "left over", 7
			setStatus(order, want)
			if got := statusOf(order); !reflect.DeepEqual(got, want) {
				t.Fatalf("wrote %+v, read %+v", want, got)
			}
			if want.Previous == nil && (order.Status.PreviousCredentialID != "" || order.Status.PreviousCredentialGeneration != 0) {
				t.Fatal("a superseded credential is named outside of a grace period")
			}
		})
	})
}

func TestSteady(t *testing.T) {
	if !steady(rotation.Plan{Desired: 1, Wake: []time.Time{{}}}) {
		t.Error("a plan that does nothing is not steady")
	}
	plan := reflect.TypeFor[rotation.Plan]()
	// What a plan says about times and generations asks nobody and does nothing.
	passive := map[string]bool{"Desired": true, "Trigger": true, "NextRotation": true, "Wake": true, "Failed": true}
	for i := range plan.NumField() {
		field := plan.Field(i)
		if passive[field.Name] {
			continue
		}
		t.Run("not_with_"+field.Name, func(t *testing.T) {
			value := reflect.New(plan).Elem()
			value.Field(i).Set(something(field.Type))
			if steady(value.Interface().(rotation.Plan)) {
				t.Errorf("a plan with %s is taken for steady", field.Name)
			}
		})
	}
}

// something is a value of a type that is not its zero value.
func something(kind reflect.Type) reflect.Value {
	switch kind.Kind() {
	case reflect.Bool:
		return reflect.ValueOf(true)
	case reflect.Int64:
		return reflect.ValueOf(int64(1))
	case reflect.Slice:
		return reflect.MakeSlice(kind, 1, 1)
	case reflect.Pointer:
		return reflect.New(kind.Elem())
	default:
		panic("a plan's field of type " + kind.String())
	}
}
