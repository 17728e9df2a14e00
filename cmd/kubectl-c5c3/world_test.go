// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// now is the time of the tests that need no API server.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }

// testPlugin is a plugin on a terminal without colours, and what it prints.
func testPlugin() (p *plugin, out, notes *bytes.Buffer) {
	streams, _, out, notes := genericiooptions.NewTestIOStreams()
	p = newPlugin(streams)
	p.now = func() time.Time { return now }
	return p, out, notes
}

// change makes an object differ from one that is well.
type change func(subject)

// says reports a condition as not True, and Ready with it.
func says(kind, reason, message string) change {
	return saysStatus(kind, metav1.ConditionFalse, reason, message)
}

func saysStatus(kind string, status metav1.ConditionStatus, reason, message string) change {
	return func(s subject) {
		setCondition(s, kind, status, reason, message)
		if kind != v1alpha1.ConditionReady {
			setCondition(s, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotAllReady, kind+": "+reason)
		}
	}
}

// setCondition sets a condition that changed five minutes ago and is of the object's generation.
func setCondition(s subject, kind string, status metav1.ConditionStatus, reason, message string) {
	c := metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.GetGeneration(), LastTransitionTime: *at(-5 * time.Minute),
	}
	conditions := s.GetConditions()
	for i := range *conditions {
		if (*conditions)[i].Type == kind {
			(*conditions)[i] = c
			return
		}
	}
	*conditions = append(*conditions, c)
}

func deleting(s subject) {
	s.SetDeletionTimestamp(at(-time.Minute))
	s.SetFinalizers([]string{"c5c3.io/test"})
}

// outdated has the operator's report be on the generation before.
func outdated(s subject) { s.SetGeneration(s.GetGeneration() + 1) }

func unreported(s subject) { *s.GetConditions() = nil }

// fulfilled makes an object one that the operator is done with.
func fulfilled[S subject](s S, namespace, name string, changes []change) S {
	s.SetNamespace(namespace)
	s.SetName(name)
	s.SetGeneration(1)
	s.SetCreationTimestamp(*at(-72 * time.Hour))
	for _, kind := range kindOf(s).conditions {
		setCondition(s, kind, metav1.ConditionTrue, "Fine", "")
	}
	setCondition(s, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllReady, "")
	switch o := any(s).(type) {
	case order.Object:
		o.SetObservedGeneration(1)
	case *v1alpha1.ControlPlane:
		o.Status.ObservedGeneration = 1
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func planeRef() v1alpha1.ControlPlaneRefSpec {
	return v1alpha1.ControlPlaneRefSpec{Name: "cp", Namespace: "openstack"}
}

func aPlane(changes ...change) *v1alpha1.ControlPlane {
	cp := &v1alpha1.ControlPlane{}
	cp.Spec.NamespaceAssignments = []v1alpha1.NamespaceAssignment{{Namespace: "tenant-a", AllowedRoles: []string{"member"}}}
	return fulfilled(cp, "openstack", "cp", changes)
}

func aUser(changes ...change) *v1alpha1.KeystoneUser {
	o := &v1alpha1.KeystoneUser{Spec: v1alpha1.KeystoneUserSpec{ControlPlaneRef: planeRef()}}
	o.Status.UserID, o.Status.PasswordGeneration, o.Status.SecretName = "u1", 1, "workflow-credentials"
	return fulfilled(o, "tenant-a", "workflow", changes)
}

func aProject(changes ...change) *v1alpha1.KeystoneProject {
	o := &v1alpha1.KeystoneProject{Spec: v1alpha1.KeystoneProjectSpec{ControlPlaneRef: planeRef()}}
	o.Status.ProjectID, o.Status.ProjectName = "p1", "workflow-project"
	return fulfilled(o, "tenant-a", "workflow-project", changes)
}

func aRole(changes ...change) *v1alpha1.KeystoneRoleAssignment {
	o := &v1alpha1.KeystoneRoleAssignment{Spec: v1alpha1.KeystoneRoleAssignmentSpec{
		ControlPlaneRef: planeRef(), UserRef: v1alpha1.OrderRef{Name: "workflow"}, ProjectRef: v1alpha1.OrderRef{Name: "workflow-project"}, Role: "member",
	}}
	o.Status.RoleID = "r1"
	return fulfilled(o, "tenant-a", "workflow-member", changes)
}

func aCredential(changes ...change) *v1alpha1.KeystoneApplicationCredential {
	o := &v1alpha1.KeystoneApplicationCredential{Spec: v1alpha1.KeystoneApplicationCredentialSpec{
		ControlPlaneRef: planeRef(), UserRef: v1alpha1.OrderRef{Name: "workflow"}, ProjectRef: v1alpha1.OrderRef{Name: "workflow-project"},
	}}
	o.Status = v1alpha1.KeystoneApplicationCredentialStatus{
		CredentialID: "c1", CredentialGeneration: 1, SecretName: "workflow-appcred-credentials",
		LastRotation: at(-time.Hour), NextRotation: at(time.Hour), CredentialExpiresAt: at(2 * time.Hour),
	}
	return fulfilled(o, "tenant-a", "workflow-appcred", changes)
}
