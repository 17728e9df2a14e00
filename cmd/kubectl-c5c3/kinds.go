// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// subject is what the plugin is asked about: an order or a ControlPlane.
type subject interface {
	client.Object
	GetConditions() *[]metav1.Condition
}

// kind is a kind of subject, with the names that kubectl takes for it. They are written down here rather
// than discovered, so that a word is completed and a mistake explained without a cluster.
type kind struct {
	name, plural, short string
	// conditions are the kind's own, in the order in which Ready judges them.
	conditions []string
	new        func() subject
	newList    func() client.ObjectList
}

func orderKind(k order.Kind, short string) kind {
	return kind{
		name: k.Name, plural: strings.ToLower(k.Name) + "s", short: short, conditions: k.Conditions,
		new:     func() subject { return k.New() },
		newList: k.NewList,
	}
}

const controlPlaneKind = "ControlPlane"

// kinds are all kinds of subject: the ControlPlane, then orders in the order in which one needs the other.
var kinds = []kind{
	{
		name: controlPlaneKind, plural: "controlplanes", short: "cplane",
		conditions: []string{
			v1alpha1.ConditionDependenciesReady, v1alpha1.ConditionAdminCredentialReady,
			v1alpha1.ConditionKeystoneReachable, v1alpha1.ConditionSecretStoreReady,
		},
		new:     func() subject { return &v1alpha1.ControlPlane{} },
		newList: func() client.ObjectList { return &v1alpha1.ControlPlaneList{} },
	},
	orderKind(order.UserKind, "kuser"),
	orderKind(order.ProjectKind, "kproject"),
	orderKind(order.RoleAssignmentKind, "krole"),
	orderKind(order.ApplicationCredentialKind, "kappcred"),
}

// orderKinds are the kinds that are orders.
func orderKinds() []kind { return kinds[1:] }

// resource is what a kind is called in a sentence about rights.
func (k kind) resource() string { return k.plural + "." + v1alpha1.GroupVersion.Group }

// called tells whether kubectl takes a word for the kind.
func (k kind) called(word string) bool {
	word = strings.TrimSuffix(strings.ToLower(word), "."+v1alpha1.GroupVersion.Group)
	return slices.Contains([]string{strings.ToLower(k.name), k.plural, k.short}, word)
}

// kindCalled finds a kind by any of its names.
func kindCalled(word string) (kind, error) {
	for _, k := range kinds {
		if k.called(word) {
			return k, nil
		}
	}
	var words []string
	for _, k := range kinds {
		words = append(words, k.short)
	}
	return kind{}, wrongUse("there is no kind %q; there are %s, and their long names", word, strings.Join(words, ", "))
}

// kindOf is the kind of an object. The name in its metadata is not relied on: client-go drops it.
func kindOf(s subject) kind {
	name := controlPlaneKind
	switch s.(type) {
	case *v1alpha1.KeystoneUser:
		name = order.UserKind.Name
	case *v1alpha1.KeystoneProject:
		name = order.ProjectKind.Name
	case *v1alpha1.KeystoneRoleAssignment:
		name = order.RoleAssignmentKind.Name
	case *v1alpha1.KeystoneApplicationCredential:
		name = order.ApplicationCredentialKind.Name
	}
	return named(name)
}

// named is the kind with a name of this program's own.
func named(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// parseArguments reads KIND/NAME or KIND NAME. The name is empty when only a kind is given.
func parseArguments(args []string) (kind, string, error) {
	word, name, ok := strings.Cut(args[0], "/")
	switch {
	case ok && name == "", ok && len(args) > 1:
		return kind{}, "", wrongUse("%q is not KIND/NAME", strings.Join(args, " "))
	case !ok && len(args) > 1:
		name = args[1]
	}
	k, err := kindCalled(word)
	return k, name, err
}

// reference names an object in what is printed for scripts.
type reference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func referenceTo(s subject) reference {
	return reference{kindOf(s).name, s.GetNamespace(), s.GetName()}
}

// String is how a sentence names the object.
func (r reference) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// planeOf is the ControlPlane that an order names, and the ControlPlane itself for one.
func planeOf(s subject) reference {
	if o, ok := s.(order.Object); ok {
		ref := o.GetControlPlaneRef()
		return reference{controlPlaneKind, ref.Namespace, ref.Name}
	}
	return referenceTo(s)
}

// observedGeneration is the generation that the status describes.
func observedGeneration(s subject) int64 {
	switch o := s.(type) {
	case order.Object:
		return o.GetObservedGeneration()
	case *v1alpha1.ControlPlane:
		return o.Status.ObservedGeneration
	}
	return -1
}
