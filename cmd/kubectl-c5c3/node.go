// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// node is an object in a tree. Its JSON is documented in docs/kubectl-plugin.md: fields are added, never
// renamed.
type node struct {
	reference `json:",inline"`
	Created   *metav1.Time `json:"created,omitempty"`
	Deleting  bool         `json:"deleting,omitempty"`
	// Ready is True, False or Unknown; empty for what has no such notion, as a Secret.
	Ready      string      `json:"ready,omitempty"`
	Conditions []condition `json:"conditions,omitempty"`
	// KeystoneID is Keystone's id of the user, project, role or application credential.
	KeystoneID string `json:"keystoneID,omitempty"`
	// Generation is that of the password or credential, not metadata.generation.
	Generation   int64        `json:"generation,omitempty"`
	ExpiresAt    *metav1.Time `json:"expiresAt,omitempty"`
	LastRotation *metav1.Time `json:"lastRotation,omitempty"`
	NextRotation *metav1.Time `json:"nextRotation,omitempty"`
	Previous     *previous    `json:"previous,omitempty"`
	Role         string       `json:"role,omitempty"`
	// Missing: something names the object, and it does not exist.
	Missing bool `json:"missing,omitempty"`
	// NotReadable are the resources that may not be read: the object's own, or in a namespace.
	NotReadable []string `json:"notReadable,omitempty"`
	Note        string   `json:"note,omitempty"`
	Nodes       []node   `json:"nodes,omitempty"`
}

// condition is a condition of any object, ours, K-ORC's or ESO's.
type condition struct {
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
}

// previous is a superseded credential in its grace period.
type previous struct {
	KeystoneID string       `json:"keystoneID"`
	Generation int64        `json:"generation"`
	DeleteAt   *metav1.Time `json:"deleteAt,omitempty"`
}

// namespaceKind groups what lies in one namespace. The namespace itself is not read.
const namespaceKind = "Namespace"

func namespaceNode(name string) node {
	return node{reference: reference{Kind: namespaceKind, Name: name}}
}

func subjectNode(s subject) node {
	n := objectNode(kindOf(s).name, s)
	n.Ready = string(metav1.ConditionUnknown)
	for _, c := range *s.GetConditions() {
		n.Conditions = append(n.Conditions, conditionOf(c))
		if c.Type == v1alpha1.ConditionReady {
			n.Ready = string(c.Status)
		}
	}
	switch o := s.(type) {
	case *v1alpha1.KeystoneUser:
		n.KeystoneID, n.Generation = o.Status.UserID, o.Status.PasswordGeneration
		n.LastRotation, n.NextRotation = o.Status.LastPasswordRotation, o.Status.NextRotation
	case *v1alpha1.KeystoneProject:
		n.KeystoneID = o.Status.ProjectID
	case *v1alpha1.KeystoneRoleAssignment:
		n.KeystoneID, n.Role = o.Status.RoleID, o.Spec.Role
	case *v1alpha1.KeystoneApplicationCredential:
		status := o.Status
		n.KeystoneID, n.Generation, n.ExpiresAt = status.CredentialID, status.CredentialGeneration, status.CredentialExpiresAt
		n.LastRotation, n.NextRotation = status.LastRotation, status.NextRotation
		if status.PreviousCredentialID != "" {
			n.Previous = &previous{status.PreviousCredentialID, status.PreviousCredentialGeneration, status.PreviousCredentialDeleteAt}
		}
	}
	return n
}

// objectNode is the node of any object. Kinds of K-ORC and ESO bring their conditions along.
func objectNode(kind string, o client.Object) node {
	created := o.GetCreationTimestamp()
	n := node{reference: reference{kind, o.GetNamespace(), o.GetName()}, Deleting: !o.GetDeletionTimestamp().IsZero()}
	if !created.IsZero() {
		n.Created = &created
	}
	switch child := o.(type) {
	case order.KORCObject:
		progress, reason, message := korc.State(child.GetConditions(), child.GetGeneration())
		n.Ready = string(metav1.ConditionFalse)
		if progress == korc.Available {
			n.Ready = string(metav1.ConditionTrue)
		}
		// One condition of the two that K-ORC has says how it is; the operator reads them the same way.
		n.Conditions = []condition{{Type: orcv1alpha1.ConditionAvailable, Status: n.Ready, Reason: reason, Message: message}}
		n.KeystoneID = korcID(child)
	case *externalsecrets.PushSecret:
		n.Ready = string(metav1.ConditionUnknown)
		for _, c := range child.Status.Conditions {
			n.Ready = string(c.Status)
			n.Conditions = append(n.Conditions, condition{c.Type, n.Ready, c.Reason, c.Message, c.LastTransitionTime.DeepCopy()})
		}
	}
	return n
}

func conditionOf(c metav1.Condition) condition {
	return condition{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime.DeepCopy()}
}

// korcID is Keystone's id of what one of K-ORC's objects stands for. An assignment has none.
func korcID(o order.KORCObject) string {
	var id *string
	switch child := o.(type) {
	case *orcv1alpha1.User:
		id = child.Status.ID
	case *orcv1alpha1.Project:
		id = child.Status.ID
	case *orcv1alpha1.Role:
		id = child.Status.ID
	case *orcv1alpha1.ApplicationCredential:
		id = child.Status.ID
	}
	if id == nil {
		return ""
	}
	return *id
}

// deliveredName is the Secret beside an order; empty for kinds that deliver none. Before the first
// delivery status does not name it.
func deliveredName(o order.Object) string {
	switch kindOf(o).name {
	case order.UserKind.Name, order.ApplicationCredentialKind.Name:
		return order.DeliveredName(o.GetName())
	}
	return ""
}

// treeRows is a tree as a table.
func (p *plugin) treeRows(root node) [][]cell {
	rows := [][]cell{{plain("NAME"), plain("READY"), plain("REASONS"), plain("AGE"), plain("DETAILS")}}
	var add func(n node, namespace, trunk, twig string)
	add = func(n node, namespace, trunk, twig string) {
		rows = append(rows, p.treeRow(n, namespace, trunk+twig))
		switch twig {
		case "├─ ":
			trunk += "│  "
		case "└─ ":
			trunk += "   "
		}
		if n.Kind == namespaceKind {
			namespace = n.Name
		}
		for i, child := range n.Nodes {
			twig := "├─ "
			if i == len(n.Nodes)-1 {
				twig = "└─ "
			}
			add(child, namespace, trunk, twig)
		}
	}
	add(root, root.Namespace, "", "")
	return rows
}

// treeRow is one object. A namespace is told where it is not the one around.
func (p *plugin) treeRow(n node, namespace, branch string) []cell {
	name := n.Kind
	if n.Name != "" {
		name += "/" + n.Name
	}
	if n.Namespace != "" && n.Namespace != namespace {
		name += " (namespace " + n.Namespace + ")"
	}
	return []cell{plain(branch + name), {n.Ready, hueOf(n.Ready)}, plain(n.reasons()), plain(p.age(n.Created)), plain(p.details(n))}
}

// reasons are those of an object's conditions but Ready, which sums ours up; of an object that has only
// Ready, that one's.
func (n node) reasons() string {
	own := slices.DeleteFunc(slices.Clone(n.Conditions), func(c condition) bool { return c.Type == v1alpha1.ConditionReady })
	if len(own) == 0 {
		own = n.Conditions
	}
	var reasons []string
	for _, c := range own {
		if c.Reason != "" && !slices.Contains(reasons, c.Reason) {
			reasons = append(reasons, c.Reason)
		}
	}
	return strings.Join(reasons, ",")
}

func (p *plugin) details(n node) string {
	var details []string
	add := func(applies bool, format string, args ...any) {
		if applies {
			details = append(details, fmt.Sprintf(format, args...))
		}
	}
	add(n.Deleting, "being deleted")
	add(n.Missing, "does not exist")
	add(n.Role != "", "role %s", n.Role)
	add(n.KeystoneID != "", "id %s", n.KeystoneID)
	add(n.Generation != 0, "generation %d", n.Generation)
	moment := func(t *metav1.Time, ahead, behind string) {
		switch {
		case t == nil:
		case t.Time.Before(p.now()):
			add(true, "%s %s", behind, until(p.now(), t.Time))
		default:
			add(true, "%s %s", ahead, until(p.now(), t.Time))
		}
	}
	moment(n.NextRotation, "next rotation", "rotation was due")
	moment(n.ExpiresAt, "expires", "expired")
	if n.Previous != nil {
		deletion := "until Keystone confirms that it is gone"
		if at := n.Previous.DeleteAt; at != nil && at.After(p.now()) {
			deletion = "is deleted " + until(p.now(), at.Time)
		}
		add(true, "superseded generation %d (id %s) %s", n.Previous.Generation, n.Previous.KeystoneID, deletion)
	}
	add(n.Note != "", "%s", n.Note)
	add(len(n.NotReadable) > 0, "(not readable by you: %s)", strings.Join(n.NotReadable, ", "))
	return strings.Join(details, ", ")
}

// conditionCalled is a condition of an object by its type, nil for none.
func conditionCalled(s subject, kind string) *metav1.Condition {
	return meta.FindStatusCondition(*s.GetConditions(), kind)
}
