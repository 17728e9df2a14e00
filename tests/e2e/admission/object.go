package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// The five kinds.
const (
	ControlPlane          = "ControlPlane"
	User                  = "KeystoneUser"
	Project               = "KeystoneProject"
	RoleAssignment        = "KeystoneRoleAssignment"
	ApplicationCredential = "KeystoneApplicationCredential"
)

// OrderKinds are the kinds of orders, in the order in which one needs the other; Kinds are all.
var (
	OrderKinds = []string{User, Project, RoleAssignment, ApplicationCredential}
	Kinds      = slices.Concat([]string{ControlPlane}, OrderKinds)
)

// Namespace is where the objects of the cases are.
const Namespace = "tenant-a"

// Values is a JSON object, spelled short.
type Values = map[string]any

// Minimal is the least that a person has to write for a kind. The objects are unstructured, because
// Go's types cannot tell an absent field from an empty one, and that difference is what many cases are
// about.
func Minimal(kind, name string) *unstructured.Unstructured {
	pair := Values{
		"controlPlaneRef": Values{"name": "cp"},
		"userRef":         Values{"name": "workflow"},
		"projectRef":      Values{"name": "workflow-project"},
	}
	specs := map[string]Values{
		ControlPlane:          nil,
		User:                  {"controlPlaneRef": Values{"name": "cp"}},
		Project:               {"controlPlaneRef": Values{"name": "cp"}},
		RoleAssignment:        {"controlPlaneRef": pair["controlPlaneRef"], "userRef": pair["userRef"], "projectRef": pair["projectRef"], "role": "member"},
		ApplicationCredential: pair,
	}
	object := &unstructured.Unstructured{Object: Values{}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	object.SetNamespace(Namespace)
	object.SetName(name)
	if spec := specs[kind]; spec != nil {
		object.Object["spec"] = AsJSON(spec)
	}
	return object
}

// Edit changes one thing about an object.
type Edit func(*unstructured.Unstructured)

// Set writes a value at a path such as "spec.rotation.interval".
func Set(at string, value any) Edit {
	return func(object *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(object.Object, AsJSON(value), strings.Split(at, ".")...); err != nil {
			panic(fmt.Sprintf("a case writes %s, which cannot be written: %v", at, err))
		}
	}
}

// Drop removes the field at a path.
func Drop(at string) Edit {
	return func(object *unstructured.Unstructured) {
		unstructured.RemoveNestedField(object.Object, strings.Split(at, ".")...)
	}
}

// SetOwnName writes the object's own name at a path.
func SetOwnName(at string) Edit {
	return func(object *unstructured.Unstructured) { Set(at, object.GetName())(object) }
}

// All is several edits as one.
func All(edits ...Edit) Edit {
	return func(object *unstructured.Unstructured) {
		for _, change := range edits {
			change(object)
		}
	}
}

// AsJSON turns a value into what a decoder would have made of it, which is all that unstructured
// objects may hold.
func AsJSON(value any) any {
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
