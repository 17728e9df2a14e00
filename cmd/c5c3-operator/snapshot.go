package main

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/metrics"
)

// snapshotTimeout bounds one snapshot. A cache that is filled answers in no time; one that is not must
// not hold a scrape until Prometheus gives it up, and with it all other metrics.
const snapshotTimeout = 5 * time.Second

// snapshots takes metrics.Snapshots from the manager's cache.
type snapshots struct {
	cache client.Reader
	// elected is closed once this replica leads. Two replicas that both report an order would have it
	// counted twice.
	elected <-chan struct{}
	log     logr.Logger
}

// take is metrics.State's Take.
func (s snapshots) take() (metrics.Snapshot, bool) {
	select {
	case <-s.elected:
	default:
		return metrics.Snapshot{}, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	snapshot, err := s.read(ctx)
	if err != nil {
		s.log.Error(err, "the state of orders is missing from the metrics")
		return metrics.Snapshot{}, false
	}
	return snapshot, true
}

// read lists from the cache without copying, since nothing is changed: tens of thousands of objects are
// not to be copied for each scrape.
func (s snapshots) read(ctx context.Context) (metrics.Snapshot, error) {
	var snapshot metrics.Snapshot
	credentials, err := s.liveCredentials(ctx)
	if err != nil {
		return snapshot, err
	}
	for _, kind := range order.Kinds {
		list := kind.NewList()
		if err := s.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return snapshot, err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			snapshot.Orders = append(snapshot.Orders, observe(kind, item.(order.Object), credentials)) // the kind's own list
			return nil
		})
		if err != nil {
			return snapshot, err
		}
	}
	planes := &v1alpha1.ControlPlaneList{}
	if err := s.cache.List(ctx, planes, client.UnsafeDisableDeepCopy); err != nil {
		return snapshot, err
	}
	for i := range planes.Items {
		snapshot.ControlPlanes = append(snapshot.ControlPlanes, observePlane(&planes.Items[i]))
	}
	return snapshot, nil
}

// liveCredentials counts what K-ORC reports, by order; nil while its kind is not served.
func (s snapshots) liveCredentials(ctx context.Context) (map[order.Key]int, error) {
	list := &orcv1alpha1.ApplicationCredentialList{}
	err := s.cache.List(ctx, list, client.UnsafeDisableDeepCopy, client.HasLabels{order.ApplicationCredentialKind.NameLabel()})
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	count := map[order.Key]int{}
	for i := range list.Items {
		if key, ok := order.ApplicationCredentialKind.KeyFromLabels(list.Items[i].Labels); ok && list.Items[i].Status.ID != nil {
			count[key]++
		}
	}
	return count, nil
}

// observe is what the metrics say of one order.
func observe(kind order.Kind, o order.Object, credentials map[order.Key]int) metrics.Order {
	conditions := *o.GetConditions()
	seen := metrics.Order{
		Kind: kind.Name, Namespace: o.GetNamespace(), Name: o.GetName(),
		Reason: firstReason(kind, conditions), Deleting: !o.GetDeletionTimestamp().IsZero(),
		LiveCredentials: -1,
	}
	seen.Frozen = seen.Reason == v1alpha1.ReasonNamespaceNotAssigned || seen.Reason == v1alpha1.ReasonRoleNotAllowed
	if seen.Reason != metrics.AllReady {
		seen.NotReadySince = o.GetCreationTimestamp().Time
		if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
			seen.NotReadySince = ready.LastTransitionTime.Time
		}
	}
	if delivery := meta.FindStatusCondition(conditions, v1alpha1.ConditionDeliveryReady); delivery != nil && delivery.Reason == v1alpha1.ReasonBackupNotSynced {
		seen.BackupBehindSince = delivery.LastTransitionTime.Time
	}
	switch o := o.(type) {
	case *v1alpha1.KeystoneUser:
		seen.Delivers, seen.NextRotation = true, timeOf(o.Status.NextRotation)
	case *v1alpha1.KeystoneApplicationCredential:
		seen.Delivers, seen.NextRotation = true, timeOf(o.Status.NextRotation)
		seen.CredentialExpiry, seen.RevocationDue = timeOf(o.Status.CredentialExpiresAt), timeOf(o.Status.PreviousCredentialDeleteAt)
		if credentials != nil {
			seen.LiveCredentials = credentials[order.KeyOf("", o)]
		}
	}
	// Everything of an order that is being deleted is due from then on, unless others still need it.
	if seen.Deleting && seen.Reason == v1alpha1.ReasonWaitingForRevocation && seen.RevocationDue.IsZero() {
		seen.RevocationDue = o.GetDeletionTimestamp().Time
	}
	return seen
}

// firstReason is the reason of the first condition that does not hold, in the order in which Ready
// judges them.
func firstReason(kind order.Kind, conditions []metav1.Condition) string {
	for _, condition := range kind.Conditions {
		switch found := meta.FindStatusCondition(conditions, condition); {
		case found == nil:
			return metrics.NotReconciled
		case found.Status != metav1.ConditionTrue:
			return found.Reason
		}
	}
	return metrics.AllReady
}

func observePlane(cp *v1alpha1.ControlPlane) metrics.ControlPlane {
	seen := metrics.ControlPlane{Namespace: cp.Namespace, Name: cp.Name, Conditions: map[string]bool{}}
	for _, condition := range cp.Status.Conditions {
		if condition.Status != metav1.ConditionUnknown {
			seen.Conditions[condition.Type] = condition.Status == metav1.ConditionTrue
		}
	}
	return seen
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
