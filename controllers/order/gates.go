package order

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// gates are the checks before anything happens for an order, in the contract's order. The finalizer
// (between the assignment and the admin credential) is the scaffold's own.
func (p *Pass) gates(ctx context.Context) *Outcome {
	return Run(p, []Step[*Pass]{
		{"cluster name", (*Pass).clusterNameGate},
		{"control plane", func(p *Pass) *Outcome { return p.controlPlaneGate(ctx) }},
		{"namespace assignment", (*Pass).assignmentGate},
	})
}

func (p *Pass) clusterNameGate() *Outcome {
	if len(p.Key.Cluster) <= MaxClusterNameLength {
		return nil
	}
	return Wait(v1alpha1.ReasonClusterNameTooLong, 0,
		"the name of target cluster %q is longer than the %d characters a label value carries; register the cluster under a shorter name", p.Key.Cluster, MaxClusterNameLength)
}

func (p *Pass) controlPlaneGate(ctx context.Context) *Outcome {
	controlPlane, err := p.getControlPlane(ctx)
	switch {
	case err != nil:
		return Fail(p.Kind.ErrorReason, err)
	case controlPlane != nil:
		p.ControlPlane = controlPlane
		return nil
	case p.Key.Cluster != "":
		// A target cluster must not learn which ControlPlanes exist: the answer is the same as
		// for one that did not assign the namespace.
		return p.notAssigned()
	}
	ref := p.Order.GetControlPlaneRef()
	return Wait(v1alpha1.ReasonControlPlaneNotFound, WaitShort,
		"there is no ControlPlane %s/%s; correct spec.controlPlaneRef (delete and re-create the order) or create the ControlPlane", ref.Namespace, ref.Name)
}

func (p *Pass) assignmentGate() *Outcome {
	p.Assignment = p.ControlPlane.Assignment(p.Key.Namespace, p.Key.Cluster)
	if p.Assignment == nil {
		return p.notAssigned()
	}
	return nil
}

func (p *Pass) notAssigned() *Outcome {
	ref := p.Order.GetControlPlaneRef()
	return Wait(v1alpha1.ReasonNamespaceNotAssigned, WaitLong,
		"ControlPlane %s/%s does not assign namespace %q on %s (spec.namespaceAssignments); the order is frozen: nothing is created, rotated, repaired or removed until the entry is there. Ask whoever runs the ControlPlane to add it",
		ref.Namespace, ref.Name, p.Key.Namespace, p.ClusterPhrase())
}

// ClusterPhrase names the order's cluster in a sentence.
func (p *Pass) ClusterPhrase() string {
	if p.Key.Cluster == "" {
		return "the management cluster"
	}
	return fmt.Sprintf("target cluster %q", p.Key.Cluster)
}

// adminCredentialGate waits until the operator gets into Keystone.
func (p *Pass) adminCredentialGate() *Outcome {
	condition := meta.FindStatusCondition(p.ControlPlane.Status.Conditions, v1alpha1.ConditionAdminCredentialReady)
	switch {
	case condition == nil:
		return Wait(v1alpha1.ReasonWaitingForAdminCredential, WaitShort,
			"ControlPlane %s/%s has not been reconciled yet", p.ControlPlane.Namespace, p.ControlPlane.Name)
	case condition.Status != metav1.ConditionTrue:
		return Wait(v1alpha1.ReasonWaitingForAdminCredential, WaitShort,
			"ControlPlane %s/%s: AdminCredentialReady is %s: %s: %s", p.ControlPlane.Namespace, p.ControlPlane.Name, condition.Status, condition.Reason, condition.Message)
	}
	return nil
}
