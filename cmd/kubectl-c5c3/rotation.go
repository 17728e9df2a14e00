// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// request is what asking an order for a rotation comes to.
type request struct {
	// Field is the field of spec that is raised.
	Field string `json:"field"`
	// From is the generation that is delivered, 0 for none yet, and To the one that is asked for.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// UnderWay: the spec asks for it already, so nothing is to be written.
	UnderWay bool `json:"underWay,omitempty"`
	// Refused says why nothing is asked for; empty when something is.
	Refused string `json:"refused,omitempty"`
	// Until is when a refusal ends by the clock.
	Until *time.Time `json:"until,omitempty"`
	// Caution is what whoever asks should know.
	Caution string `json:"caution,omitempty"`
}

// planRotation decides what to ask an order for, and whether. It refuses what the operator would only
// put off without saying so: raising a generation is silent, and can't be taken back.
func planRotation(o order.Object, now time.Time) request {
	r := generations(o)
	switch {
	case !o.GetDeletionTimestamp().IsZero():
		r.Refused = "the order is being deleted"
		return r
	case frozen(o) != nil:
		r.Refused = "the order is frozen until its ControlPlane consents to the namespace again: " + frozen(o).Message
		return r
	}
	if c, ok := o.(*v1alpha1.KeystoneApplicationCredential); ok && c.Status.PreviousCredentialDeleteAt != nil {
		r.graceRunning(c.Status, now)
		return r
	}
	failed := failing(o)
	switch {
	case failed:
		// The generation that failed is the one that was asked for or the one after the delivered. Only a
		// higher one gives it up; the same again would go on trying.
		r.To = max(r.To, r.asked(o)) + 1
		r.Caution = "the generation that failed is given up; if its cause is not gone, this one fails too"
	case r.From == 0:
		r.Refused = "nothing was delivered yet, so there is nothing to rotate"
	case r.asked(o) >= r.To:
		r.To, r.UnderWay = r.asked(o), true
	}
	if own := conditionCalled(o, kindOf(o).conditions[0]); r.Refused == "" && !failed && own != nil && own.Status != metav1.ConditionTrue {
		r.Caution = fmt.Sprintf("the rotation begins when %s holds again: it is %s: %s", own.Type, own.Reason, own.Message)
	}
	return r
}

// generations are those of an order's status; To is the next.
func generations(o order.Object) request {
	r := request{Field: "credentialGeneration"}
	switch o := o.(type) {
	case *v1alpha1.KeystoneUser:
		r.Field, r.From = "passwordGeneration", o.Status.PasswordGeneration
	case *v1alpha1.KeystoneApplicationCredential:
		r.From = o.Status.CredentialGeneration
	}
	r.To = r.From + 1
	return r
}

// asked is the generation that an order's spec asks for.
func (r request) asked(o order.Object) int64 {
	switch o := o.(type) {
	case *v1alpha1.KeystoneUser:
		return o.DeclaredPasswordGeneration()
	case *v1alpha1.KeystoneApplicationCredential:
		return o.DeclaredCredentialGeneration()
	}
	return 0
}

// ask raises the generation in the order's spec.
func (r request) ask(o order.Object) {
	switch o := o.(type) {
	case *v1alpha1.KeystoneUser:
		o.Spec.PasswordGeneration = r.To
	case *v1alpha1.KeystoneApplicationCredential:
		o.Spec.CredentialGeneration = r.To
	}
}

// graceRunning refuses a rotation within a grace period: the operator starts none, so that there are
// never more than two credentials, and would only begin it some time after the end of it.
func (r *request) graceRunning(status v1alpha1.KeystoneApplicationCredentialStatus, now time.Time) {
	at := status.PreviousCredentialDeleteAt.Time
	superseded := fmt.Sprintf("generation %d (%s)", status.PreviousCredentialGeneration, status.PreviousCredentialID)
	if at.After(now) {
		r.Until = &at
		r.Refused = fmt.Sprintf("%s is in its grace period, and no rotation begins before it is gone: its deletion is %s", superseded, until(now, at))
		return
	}
	r.Refused = fmt.Sprintf("the grace period of %s is over, and no rotation begins before Keystone confirms that it is gone", superseded)
}

// frozen is the condition that says that an order is frozen; nil when it is not.
func frozen(o order.Object) *metav1.Condition {
	for i, c := range *o.GetConditions() {
		if c.Reason == v1alpha1.ReasonNamespaceNotAssigned {
			return &(*o.GetConditions())[i]
		}
	}
	return nil
}

// failing tells whether a generation of a credential does not come to work.
func failing(o order.Object) bool {
	c := conditionCalled(o, v1alpha1.ConditionCredentialReady)
	return c != nil && c.Reason == v1alpha1.ReasonCredentialFailed
}

// delivered tells whether the Secret carries a generation that was asked for in a metadata.generation of
// the order. DeliveryReady has to be judged on that one: on an older one it tells of the Secret before.
func delivered(o order.Object, asked request, generation int64) bool {
	ready := conditionCalled(o, v1alpha1.ConditionDeliveryReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration < generation || generations(o).From < asked.To {
		return false
	}
	switch o := o.(type) {
	case *v1alpha1.KeystoneUser:
		return o.Status.SecretName != ""
	case *v1alpha1.KeystoneApplicationCredential:
		return o.Status.SecretName != ""
	}
	return false
}
