package order

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// ManagedByLabel and ManagedByValue mark every object the operator writes. Secrets are cached by
// this label only, so that unrelated Secrets never move the operator's memory.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedByValue = "c5c3-operator"
)

// FieldManager is the operator's name in Server-Side Apply.
const FieldManager = client.FieldOwner("c5c3-operator")

// MaxClusterNameLength is the longest name of a target cluster: it is carried as a label value.
const MaxClusterNameLength = 63

// Object is an order as generic code sees it.
type Object interface {
	client.Object
	v1alpha1.Order
}

// Kind describes one order kind to the scaffold.
type Kind struct {
	// Name is the Kind, such as KeystoneUser.
	Name string
	// Segment is the kind's part of a child's name: user, project, roleassignment,
	// applicationcredential.
	Segment string
	// Conditions are the kind's own condition types, in the order in which Ready judges them.
	Conditions []string
	// New returns an empty order.
	New func() Object
	// NewList returns an empty list of orders.
	NewList func() client.ObjectList
	// ErrorReason is the reason of a failure to read or write at the API server, outside delivery.
	ErrorReason string
}

// The four order kinds.
var (
	UserKind = Kind{
		Name: "KeystoneUser", Segment: "user",
		Conditions:  []string{v1alpha1.ConditionUserReady, v1alpha1.ConditionDeliveryReady},
		New:         func() Object { return &v1alpha1.KeystoneUser{} },
		NewList:     func() client.ObjectList { return &v1alpha1.KeystoneUserList{} },
		ErrorReason: v1alpha1.ReasonServiceAccountError,
	}
	ProjectKind = Kind{
		Name: "KeystoneProject", Segment: "project",
		Conditions:  []string{v1alpha1.ConditionProjectReady},
		New:         func() Object { return &v1alpha1.KeystoneProject{} },
		NewList:     func() client.ObjectList { return &v1alpha1.KeystoneProjectList{} },
		ErrorReason: v1alpha1.ReasonProjectError,
	}
	RoleAssignmentKind = Kind{
		Name: "KeystoneRoleAssignment", Segment: "roleassignment",
		Conditions:  []string{v1alpha1.ConditionAssignmentReady},
		New:         func() Object { return &v1alpha1.KeystoneRoleAssignment{} },
		NewList:     func() client.ObjectList { return &v1alpha1.KeystoneRoleAssignmentList{} },
		ErrorReason: v1alpha1.ReasonRoleAssignmentError,
	}
	ApplicationCredentialKind = Kind{
		Name: "KeystoneApplicationCredential", Segment: "applicationcredential",
		Conditions:  []string{v1alpha1.ConditionCredentialReady, v1alpha1.ConditionDeliveryReady},
		New:         func() Object { return &v1alpha1.KeystoneApplicationCredential{} },
		NewList:     func() client.ObjectList { return &v1alpha1.KeystoneApplicationCredentialList{} },
		ErrorReason: v1alpha1.ReasonCredentialError,
	}
)

// Kinds are the four order kinds, in the order in which one needs the other.
var Kinds = []Kind{UserKind, ProjectKind, RoleAssignmentKind, ApplicationCredentialKind}

// GroupVersionKind returns the kind's full name.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return v1alpha1.GroupVersion.WithKind(k.Name)
}

// Finalizer is what holds an order until its teardown is done.
func (k Kind) Finalizer() string { return "c5c3.io/" + strings.ToLower(k.Name) + "-teardown" }

// NameLabel carries the order's name on its children.
func (k Kind) NameLabel() string { return "c5c3.io/" + strings.ToLower(k.Name) + "-name" }

// NamespaceLabel carries the order's namespace on its children.
func (k Kind) NamespaceLabel() string { return "c5c3.io/" + strings.ToLower(k.Name) + "-namespace" }

// ClusterLabel carries the order's cluster on its children, empty for the management cluster.
func (k Kind) ClusterLabel() string { return "c5c3.io/" + strings.ToLower(k.Name) + "-cluster" }

// Annotation returns the name of an annotation of this kind.
func (k Kind) Annotation(name string) string {
	return "c5c3.io/" + strings.ToLower(k.Name) + "-" + name
}

// RotateAnnotation, on an order, names what it delivers that is said to be dead: the id of an application
// credential, or a password generation as keystoneuser.DeadPassword writes it. The order asks Keystone by
// itself, and replaces it when that is so and it is still the current one. It is an annotation and not a
// raised generation in the spec, so that asking twice rotates once, and that GitOps has nothing to set back.
const RotateAnnotation = "c5c3.io/rotate-credential"

// Key names one order among all clusters. Cluster is empty for the management cluster.
type Key struct {
	Cluster, Namespace, Name string
}

// KeyOf returns the key of an order that lives on a cluster.
func KeyOf(cluster string, order client.Object) Key {
	return Key{Cluster: cluster, Namespace: order.GetNamespace(), Name: order.GetName()}
}

// Prefix is what the names of all children of an order start with, with its trailing dash:
// <name>-<8 hex>-<segment>-. The hash covers cluster, namespace and name, because children of all
// orders of a ControlPlane share its namespace; the name is there for the people who read it.
func (k Kind) Prefix(key Key) string {
	sum := sha256.Sum256([]byte(key.Cluster + "/" + key.Namespace + "/" + key.Name))
	return key.Name + "-" + hex.EncodeToString(sum[:4]) + "-" + k.Segment + "-"
}

// Labels are the labels of an order's children. The cluster label is present and empty for an
// order on the management cluster, so that one selector finds the children of one order only.
func (k Kind) Labels(key Key) map[string]string {
	labels := k.selector(key)
	labels[ManagedByLabel] = ManagedByValue
	return labels
}

// selector finds an order's children. It leaves the managed-by label out: ownership is the three
// labels of the order.
func (k Kind) selector(key Key) client.MatchingLabels {
	return client.MatchingLabels{
		k.NameLabel():      key.Name,
		k.NamespaceLabel(): key.Namespace,
		k.ClusterLabel():   key.Cluster,
	}
}

// KeyFromLabels returns the order whose child carries these labels. It is not ok for an object that
// is no child of this kind.
func (k Kind) KeyFromLabels(labels map[string]string) (Key, bool) {
	name, hasName := labels[k.NameLabel()]
	namespace, hasNamespace := labels[k.NamespaceLabel()]
	cluster, hasCluster := labels[k.ClusterLabel()]
	return Key{Cluster: cluster, Namespace: namespace, Name: name}, hasName && hasNamespace && hasCluster
}

// owns tells whether an object is a child of an order: all three labels match.
func (k Kind) owns(key Key, object client.Object) bool {
	owner, ok := k.KeyFromLabels(object.GetLabels())
	return ok && owner == key
}
