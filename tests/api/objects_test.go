package api

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

// values is a JSON object, spelled short.
type values = admission.Values

var names atomic.Int64

// uniqueName returns a name that no other test uses.
func uniqueName() string { return fmt.Sprintf("order-%d", names.Add(1)) }

// store creates an object for the time of one test and returns it as the API server has it.
func store(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := api.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	deleteLater(t, object)
	return read(t, object)
}

// deleteLater leaves the name free for the next test: the examples and the cases share some.
func deleteLater(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(api.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
			t.Errorf("deleting %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	})
}

// read returns the object as the API server has it now.
func read(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(object.GroupVersionKind())
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), stored); err != nil {
		t.Fatalf("reading %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return stored
}

// nested returns the value at a path.
func nested(o *object, path string) any {
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
	if err != nil || !found {
		return nil
	}
	return value
}
