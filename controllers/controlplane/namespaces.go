package controlplane

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

const (
	// namespaceTimeout bounds one look at one namespace.
	namespaceTimeout = 10 * time.Second
	// namespacesAssigned is how long a list without a fault is believed. Nothing depends on it: it
	// is there for people, and a namespace that goes takes its orders along by itself.
	namespacesAssigned = 10 * time.Minute
)

// mirrorNamespaces writes to status what each entry of spec.namespaceAssignments meets. Namespaces
// are looked up one by one and live: a cache of all namespaces of all clusters, for a list of at most
// 32, would cost more than it saves.
func (p *pass) mirrorNamespaces(ctx context.Context) {
	last := p.memory.namespaces
	if last.generation == p.cp.Generation && p.now.Before(last.again) {
		p.comeBack(last.again.Sub(p.now))
		return
	}
	again := namespacesAssigned
	silent := map[string]bool{}
	rows := make([]v1alpha1.NamespaceAssignmentStatus, 0, len(p.cp.Spec.NamespaceAssignments))
	for _, entry := range p.cp.Spec.NamespaceAssignments {
		cluster := ""
		if entry.TargetClusterRef != nil {
			cluster = entry.TargetClusterRef.Name
		}
		row := v1alpha1.NamespaceAssignmentStatus{Namespace: entry.Namespace, TargetCluster: cluster, Reason: v1alpha1.ReasonClusterUnreachable}
		if !silent[cluster] {
			row = p.mirrorNamespace(ctx, row)
			// A cluster that did not answer is not asked again: 32 timeouts would hold a worker for
			// five minutes.
			silent[cluster] = row.Reason == v1alpha1.ReasonClusterUnreachable
		}
		if row.Reason != v1alpha1.ReasonAssigned {
			again = order.WaitLong
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		rows = nil
	}
	p.cp.Status.NamespaceAssignments = rows
	p.namespaces = &lookedAt{generation: p.cp.Generation, again: p.now.Add(again)}
	p.comeBack(again)
}

func (p *pass) mirrorNamespace(ctx context.Context, row v1alpha1.NamespaceAssignmentStatus) v1alpha1.NamespaceAssignmentStatus {
	cluster, err := p.env.Manager.GetCluster(ctx, multicluster.ClusterName(row.TargetCluster))
	if err != nil {
		row.Reason = v1alpha1.ReasonTargetClusterUnavailable
		return row
	}
	ctx, cancel := context.WithTimeout(ctx, namespaceTimeout)
	defer cancel()
	namespace := &corev1.Namespace{}
	err = cluster.GetAPIReader().Get(ctx, types.NamespacedName{Name: row.Namespace}, namespace)
	switch {
	case apierrors.IsNotFound(err):
		row.ClusterReachable, row.Reason = true, v1alpha1.ReasonNamespaceNotFound
	case err != nil:
		p.log.Info("a namespace could not be read", "namespace", row.Namespace, "cluster", row.TargetCluster, "cause", err.Error())
		row.Reason = v1alpha1.ReasonClusterUnreachable
	case !namespace.DeletionTimestamp.IsZero():
		row.ClusterReachable, row.Reason = true, v1alpha1.ReasonNamespaceTerminating
	default:
		row.ClusterReachable, row.NamespaceExists, row.Reason = true, true, v1alpha1.ReasonAssigned
	}
	return row
}
