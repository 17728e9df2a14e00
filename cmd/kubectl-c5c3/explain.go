// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/advice"
)

// finding is a condition that does not hold.
type finding struct {
	reference `json:",inline"`
	// Condition and Status are empty for an object whose conditions do not tell.
	Condition string `json:"condition,omitempty"`
	Status    string `json:"status,omitempty"`
	// Reason is one of the API's, else NotReconciled or BeingDeleted.
	Reason  string       `json:"reason"`
	Message string       `json:"message,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
}

// explanation is why an order is not Ready, or not gone.
type explanation struct {
	reference `json:",inline"`
	Ready     bool `json:"ready"`
	Deleting  bool `json:"deleting,omitempty"`
	// Because leads from the object to what keeps it, the last of the list.
	Because []finding `json:"because,omitempty"`
	Advice  string    `json:"advice,omitempty"`
	// NotReadable are objects that the way led to and that could not be read.
	NotReadable []string `json:"notReadable,omitempty"`
}

// cause is the last finding.
func (e explanation) cause() finding { return e.Because[len(e.Because)-1] }

// fine tells whether there is nothing to explain.
func (e explanation) fine() bool { return len(e.Because) == 0 }

// world is what was read to explain things with.
type world struct {
	subjects []subject
	// unread says why an object could not be read, or a kind in a namespace (without a name), or a kind
	// in all namespaces (without either).
	unread map[reference]string
}

func (w world) find(r reference) subject {
	for _, s := range w.subjects {
		if referenceTo(s) == r {
			return s
		}
	}
	return nil
}

// whyUnread says why an object is not in the world; empty when it does not exist.
func (w world) whyUnread(r reference) string {
	if why := w.unread[r]; why != "" {
		return why
	}
	for _, kinds := range []reference{{Kind: r.Kind, Namespace: r.Namespace}, {Kind: r.Kind}} {
		if why := w.unread[kinds]; why != "" {
			return why
		}
	}
	return ""
}

// isReady tells whether an object is Ready as it stands: a verdict on an older generation does not count.
func isReady(s subject) bool {
	return meta.IsStatusConditionTrue(*s.GetConditions(), v1alpha1.ConditionReady) && observedGeneration(s) >= s.GetGeneration()
}

// explain finds the first thing that keeps an object from Ready. A reason that blames another object is
// followed there, so that a credential that waits for a user that waits for the admin's password is
// explained by the password. Messages are not followed, only reasons: a message is for people.
func (w world) explain(s subject) explanation {
	e := explanation{reference: referenceTo(s), Ready: isReady(s), Deleting: !s.GetDeletionTimestamp().IsZero()}
	if e.Ready && !e.Deleting {
		return e
	}
	conditions := kindOf(s).conditions
	if ready := meta.FindStatusCondition(*s.GetConditions(), v1alpha1.ConditionReady); ready != nil && ready.Reason == v1alpha1.ReasonReferencedByOrders {
		// No other condition tells that orders hold a ControlPlane.
		conditions = []string{v1alpha1.ConditionReady}
	}
	for s != nil {
		f := firstThatFails(s, conditions)
		if f == nil && (e.fine() || kindOf(s).name != controlPlaneKind) {
			f = untold(s)
		}
		if f == nil || slices.ContainsFunc(e.Because, func(seen finding) bool {
			return seen.reference == f.reference && seen.Condition == f.Condition
		}) {
			break
		}
		e.Because = append(e.Because, *f)
		s, conditions = w.lead(s, f.Reason, &e)
	}
	if !e.fine() {
		e.Advice, _ = advice.For(e.cause().Kind, e.cause().Reason)
	}
	return e
}

// firstThatFails is the first of the conditions that is not True; nil when all are.
func firstThatFails(s subject, conditions []string) *finding {
	f := finding{reference: referenceTo(s)}
	for _, kind := range conditions {
		c := meta.FindStatusCondition(*s.GetConditions(), kind)
		switch {
		case c == nil:
			f.Reason, f.Message = advice.NotReconciled, "the operator has not reported "+kind+" yet"
			return &f
		case c.Status != metav1.ConditionTrue:
			f.Condition, f.Status, f.Reason, f.Message = c.Type, string(c.Status), c.Reason, c.Message
			f.Since = c.LastTransitionTime.DeepCopy()
			return &f
		}
	}
	return nil
}

// untold is what conditions that all hold do not tell; nil for nothing. A ControlPlane that an order
// waits for is not asked: one that holds its deletion for its orders serves them until they are gone.
func untold(s subject) *finding {
	f := finding{reference: referenceTo(s)}
	switch {
	case !s.GetDeletionTimestamp().IsZero():
		f.Reason, f.Message, f.Since = advice.BeingDeleted, "it is being deleted", s.GetDeletionTimestamp()
	case observedGeneration(s) < s.GetGeneration():
		f.Reason = advice.NotReconciled
		f.Message = fmt.Sprintf("the operator has not looked at generation %d yet; its report is on generation %d", s.GetGeneration(), observedGeneration(s))
	default:
		return nil
	}
	return &f
}

// planeConditions are the conditions of a ControlPlane that a reason of its orders points to. Where K-ORC
// or Keystone is waited for, a Keystone that does not answer explains the wait.
var planeConditions = map[string][]string{
	v1alpha1.ReasonWaitingForAdminCredential: {v1alpha1.ConditionAdminCredentialReady},
	v1alpha1.ReasonWaitingForCABundle:        {v1alpha1.ConditionAdminCredentialReady, v1alpha1.ConditionKeystoneReachable},
	v1alpha1.ReasonAuthenticationFailed:      {v1alpha1.ConditionAdminCredentialReady, v1alpha1.ConditionKeystoneReachable},
	v1alpha1.ReasonTLSVerificationFailed:     {v1alpha1.ConditionAdminCredentialReady, v1alpha1.ConditionKeystoneReachable},
	v1alpha1.ReasonCatalogEndpointMismatch:   {v1alpha1.ConditionAdminCredentialReady, v1alpha1.ConditionKeystoneReachable},
	v1alpha1.ReasonWaitingForDependencies:    {v1alpha1.ConditionDependenciesReady},
	v1alpha1.ReasonSecretStoreNotReady:       {v1alpha1.ConditionSecretStoreReady},
	v1alpha1.ReasonBackupNotSynced:           {v1alpha1.ConditionSecretStoreReady},
	v1alpha1.ReasonWaitingForServiceAccounts: {v1alpha1.ConditionKeystoneReachable},
	v1alpha1.ReasonWaitingForProject:         {v1alpha1.ConditionKeystoneReachable},
	v1alpha1.ReasonWaitingForCredential:      {v1alpha1.ConditionKeystoneReachable},
	v1alpha1.ReasonProbingForCollision:       {v1alpha1.ConditionKeystoneReachable},
	v1alpha1.ReasonEndpointUnreachable:       {v1alpha1.ConditionKeystoneReachable},
	v1alpha1.ReasonWaitingForRevocation:      {v1alpha1.ConditionKeystoneReachable, v1alpha1.ConditionSecretStoreReady},
}

// lead is the object that a reason blames and the conditions of it that matter; nil when the reason
// blames none, or one that could not be read.
func (w world) lead(from subject, reason string, e *explanation) (subject, []string) {
	user, project := "", ""
	if o, ok := from.(order.Object); ok {
		user, project = order.References(o)
	}
	beside := func(k order.Kind, name string) reference {
		return reference{k.Name, from.GetNamespace(), name}
	}
	switch {
	case reason == v1alpha1.ReasonWaitingForUser:
		return w.to(beside(order.UserKind, user), e), []string{v1alpha1.ConditionUserReady}
	case reason == v1alpha1.ReasonWaitingForProject && project != "":
		return w.to(beside(order.ProjectKind, project), e), []string{v1alpha1.ConditionProjectReady}
	case reason == v1alpha1.ReasonNoRoleOnProject:
		return w.first(beside(order.RoleAssignmentKind, ""), e, func(o order.Object) bool {
			u, p := order.References(o)
			return u == user && p == project
		}), order.RoleAssignmentKind.Conditions
	case reason == v1alpha1.ReasonReferencedByRoleAssignments:
		return w.holder(from, order.RoleAssignmentKind, e), order.RoleAssignmentKind.Conditions
	case reason == v1alpha1.ReasonReferencedByApplicationCredentials:
		return w.holder(from, order.ApplicationCredentialKind, e), order.ApplicationCredentialKind.Conditions
	case kindOf(from).name == controlPlaneKind && reason == v1alpha1.ReasonWaitingForKORC:
		return from, []string{v1alpha1.ConditionDependenciesReady}
	case kindOf(from).name != controlPlaneKind && planeConditions[reason] != nil:
		return w.to(planeOf(from), e), planeConditions[reason]
	}
	return nil, nil
}

// to is the object of a name. What could not be read is put on record.
func (w world) to(r reference, e *explanation) subject {
	s := w.find(r)
	if s == nil && w.whyUnread(r) != "" {
		e.NotReadable = append(e.NotReadable, r.String()+": "+w.whyUnread(r))
	}
	return s
}

// first is the first order of a kind in a namespace that matches, by name.
func (w world) first(of reference, e *explanation, matches func(order.Object) bool) subject {
	if why := w.whyUnread(of); why != "" {
		e.NotReadable = append(e.NotReadable, fmt.Sprintf("%ss in namespace %s: %s", of.Kind, of.Namespace, why))
	}
	var found subject
	for _, s := range w.subjects {
		o, ok := s.(order.Object)
		if ok && kindOf(s).name == of.Kind && s.GetNamespace() == of.Namespace && matches(o) && (found == nil || s.GetName() < found.GetName()) {
			found = s
		}
	}
	return found
}

// holder is an order that holds the deletion of another and is itself being deleted: what keeps it is
// what keeps both. One that nobody deleted is no lead, it is the answer.
func (w world) holder(held subject, by order.Kind, e *explanation) subject {
	heldUser, heldProject := held.GetName(), held.GetName()
	if o, ok := held.(*v1alpha1.KeystoneRoleAssignment); ok {
		heldUser, heldProject = order.References(o)
	}
	holds := func(o order.Object) bool {
		user, project := order.References(o)
		switch kindOf(held).name {
		case order.UserKind.Name:
			return user == heldUser
		case order.ProjectKind.Name:
			return project == heldProject
		}
		return user == heldUser && project == heldProject
	}
	of := reference{Kind: by.Name, Namespace: held.GetNamespace()}
	if stays := w.first(of, e, func(o order.Object) bool { return holds(o) && o.GetDeletionTimestamp().IsZero() }); stays != nil {
		return nil
	}
	return w.first(of, &explanation{}, holds)
}
