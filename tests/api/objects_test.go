package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// The five kinds, in the order in which one needs the other.
const (
	controlPlane          = "ControlPlane"
	user                  = "KeystoneUser"
	project               = "KeystoneProject"
	roleAssignment        = "KeystoneRoleAssignment"
	applicationCredential = "KeystoneApplicationCredential"
)

var (
	orderKinds = []string{user, project, roleAssignment, applicationCredential}
	allKinds   = append([]string{controlPlane}, orderKinds...)
)

// values is a JSON object, spelled short.
type values = map[string]any

// minimal is the least that a person has to write for a kind. The objects are unstructured, because
// Go's types cannot tell an absent field from an empty one, and that difference is what most cases
// are about.
func minimal(kind, name string) *unstructured.Unstructured {
	specs := map[string]values{
		controlPlane: nil,
		user:         {"controlPlaneRef": values{"name": "cp"}},
		project:      {"controlPlaneRef": values{"name": "cp"}},
		roleAssignment: {
			"controlPlaneRef": values{"name": "cp"},
			"userRef":         values{"name": "workflow"},
			"projectRef":      values{"name": "workflow-project"},
			"role":            "member",
		},
		applicationCredential: {
			"controlPlaneRef": values{"name": "cp"},
			"userRef":         values{"name": "workflow"},
			"projectRef":      values{"name": "workflow-project"},
		},
	}
	object := &unstructured.Unstructured{Object: values{}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	if spec := specs[kind]; spec != nil {
		object.Object["spec"] = asJSON(spec)
	}
	return object
}

// edit changes one thing about an object.
type edit func(*unstructured.Unstructured)

// set writes a value at a path such as "spec.rotation.interval".
func set(path string, value any) edit {
	return func(object *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(object.Object, asJSON(value), strings.Split(path, ".")...); err != nil {
			panic(fmt.Sprintf("a case writes %s, which cannot be written: %v", path, err))
		}
	}
}

// drop removes the field at a path.
func drop(path string) edit {
	return func(object *unstructured.Unstructured) {
		unstructured.RemoveNestedField(object.Object, strings.Split(path, ".")...)
	}
}

// setOwnName writes the object's own name at a path.
func setOwnName(path string) edit {
	return func(object *unstructured.Unstructured) { set(path, object.GetName())(object) }
}

// all is several edits as one.
func all(edits ...edit) edit {
	return func(object *unstructured.Unstructured) {
		for _, change := range edits {
			change(object)
		}
	}
}

// asJSON turns a value into what a decoder would have made of it, which is all that unstructured
// objects may hold.
func asJSON(value any) any {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var decoded any
	if err := utiljson.Unmarshal(raw, &decoded); err != nil {
		panic(err)
	}
	return decoded
}

var names atomic.Int64

// uniqueName returns a name that no other test uses.
func uniqueName() string { return fmt.Sprintf("order-%d", names.Add(1)) }

// store creates an object for the time of one test and returns it as the API server has it.
func store(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := api.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(api.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
			t.Errorf("deleting %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	})
	return read(t, object)
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

// object is an object as the cases see it.
type object = unstructured.Unstructured

// nested returns the value at a path.
func nested(o *object, path string) any {
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
	if err != nil || !found {
		return nil
	}
	return value
}
