package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits that admission and the reconcilers share.
const (
	// MaxNameLength is the longest name of an order, in bytes. The name is carried as a label
	// value on every child, and a label value holds 63 bytes.
	MaxNameLength = 63

	// DefaultRotationInterval is the time between two scheduled rotations of an application
	// credential whose order names none.
	DefaultRotationInterval = 720 * time.Hour

	// DefaultGracePeriod is how long a superseded application credential stays in Keystone when
	// its order does not say.
	DefaultGracePeriod = 24 * time.Hour

	// MinRotationInterval is the shortest interval of a schedule that is on.
	MinRotationInterval = time.Minute

	// MaxRotationInterval is the longest interval of a schedule. It keeps the mint time plus the
	// interval plus the grace period inside the range of a Go duration.
	MaxRotationInterval = 87600 * time.Hour
)

// ControlPlaneRefSpec names the ControlPlane an order is placed with. Both halves are immutable:
// an order moves to another ControlPlane by being deleted and created again.
type ControlPlaneRefSpec struct {
	// name of the ControlPlane.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// namespace of the ControlPlane. Empty means the order's own namespace.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// OrderRef names another order in the same namespace and on the same cluster.
type OrderRef struct {
	// name of the order.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
}

// Duration is a Go duration string such as "720h" or "90s". It is a pointer wherever it is
// optional, so that an absent value and "0s" stay apart.
type Duration = metav1.Duration

// Order is what the four order kinds have in common for generic code.
// +kubebuilder:object:generate=false
type Order interface {
	metav1.Object

	// GetControlPlaneRef returns the reference with an empty namespace resolved to the order's own.
	GetControlPlaneRef() ControlPlaneRefSpec
	// GetConditions returns a pointer to the conditions in status.
	GetConditions() *[]metav1.Condition
	// GetObservedGeneration returns the generation the status describes, -1 before the first pass.
	GetObservedGeneration() int64
	// SetObservedGeneration records the generation the status describes.
	SetObservedGeneration(int64)
}

func resolveControlPlaneRef(ref ControlPlaneRefSpec, own string) ControlPlaneRefSpec {
	if ref.Namespace == "" {
		ref.Namespace = own
	}
	return ref
}

func atLeastOne(generation int64) int64 {
	return max(generation, 1)
}

func durationOr(d *Duration, fallback time.Duration) time.Duration {
	if d == nil {
		return fallback
	}
	return d.Duration
}

// Resolved returns the interval and the grace period with their defaults. The reconciler calls it
// because an order may have been stored by an API server that applied none.
func (r CredentialRotationSpec) Resolved() (interval, gracePeriod time.Duration) {
	return durationOr(r.Interval, DefaultRotationInterval), durationOr(r.GracePeriod, DefaultGracePeriod)
}

// Resolved returns the interval with its default, 0 (off).
func (r PasswordRotationSpec) Resolved() time.Duration { return durationOr(r.Interval, 0) }
