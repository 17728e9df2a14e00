package order

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// KORCObject is one of K-ORC's objects.
type KORCObject interface {
	client.Object
	orcv1alpha1.ObjectWithConditions
}

// ChildState is what K-ORC says of a child.
type ChildState struct {
	// Progress is Terminal only for what is not a transport failure: those are cleared, and read
	// as Pending.
	Progress korc.Progress
	// Reason and Message are K-ORC's own.
	Reason, Message string
	// UnlatchError says why a latched transport failure could not be cleared.
	UnlatchError error
	// Transport tells whether K-ORC blames the way to Keystone.
	Transport bool
}

// Settler reads what K-ORC says of its objects and clears what K-ORC latched.
type Settler struct {
	// Client writes to the management cluster.
	Client client.Client
	// Now is the time of the pass.
	Now time.Time
	// ComeBack asks for another pass after a while.
	ComeBack func(time.Duration)
	// Log names the pass.
	Log logr.Logger
}

func (p *Pass) settler() Settler {
	return Settler{Client: p.Management, Now: p.Now, ComeBack: p.ComeBack, Log: p.log}
}

// Settle reads K-ORC's conditions on a child, see Settler.Settle.
func (p *Pass) Settle(ctx context.Context, child KORCObject) ChildState {
	return p.settler().Settle(ctx, child)
}

// Unlatch makes K-ORC look again, see Settler.Unlatch.
func (p *Pass) Unlatch(ctx context.Context, child KORCObject) error {
	return p.settler().Unlatch(ctx, child)
}

// AuditChild makes K-ORC look at a child again when an audit is due and Keystone, asked as the
// administrator, holds something else than K-ORC says. It tells whether K-ORC was told to. No answer from
// Keystone is no finding: the ControlPlane reports the outage, and the next audit asks again.
func (p *Pass) AuditChild(ctx context.Context, child KORCObject, drifted func(*keystone.Session) (bool, error)) (bool, error) {
	if !p.AuditDue() {
		return false, nil
	}
	session, err := p.Admin(ctx)
	if err != nil {
		return false, nil //nolint:nilerr // as above
	}
	if found, err := drifted(session); err != nil || !found {
		return false, nil //nolint:nilerr // as above
	}
	return true, p.Unlatch(ctx, child)
}

// Settle reads K-ORC's conditions on a child and clears a latched failure to talk to Keystone: a
// broken connection, or a certificate that K-ORC does not trust. K-ORC never retries those; deleting
// and recreating the child instead could destroy a namesake, since K-ORC's delete without status.id
// looks the resource up by name.
//
// The certificate is cleared although trying again alone does not mend it. Whoever mends the CA bundle
// mends it in one place, and would otherwise have to find every child that K-ORC gave up on meanwhile.
// Each try is a handshake in which K-ORC says nothing.
func (s Settler) Settle(ctx context.Context, child KORCObject) ChildState {
	progress, reason, message := korc.State(child.GetConditions(), child.GetGeneration())
	state := ChildState{Progress: progress, Reason: reason, Message: message, Transport: korc.IsTransport(message)}
	if progress != korc.Terminal || !state.Transport && !korc.IsUntrusted(message) {
		return state
	}
	state.Progress = korc.Pending
	state.UnlatchError = s.Unlatch(ctx, child)
	return state
}

// Unlatch removes the Progressing condition of a child, which makes K-ORC look again. It does so
// at once the first time, and later only every half minute to a minute (korc.UnlatchDue). A cause that another
// pass may not meet is no error.
func (s Settler) Unlatch(ctx context.Context, child KORCObject) error {
	due, at := korc.UnlatchDue(child.GetAnnotations()[korc.UnlatchedAtAnnotation], string(child.GetUID()), s.Now)
	if !due {
		s.ComeBack(at.Sub(s.Now))
		return nil
	}
	before := child.DeepCopyObject().(KORCObject)
	conditions := slices.DeleteFunc(slices.Clone(child.GetConditions()), func(c metav1.Condition) bool {
		return c.Type == orcv1alpha1.ConditionProgressing
	})
	if err := setConditions(child, conditions); err != nil {
		return err
	}
	lock := client.MergeFromWithOptimisticLock{}
	if err := s.Client.Status().Patch(ctx, child, client.MergeFromWithOptions(before, lock), FieldManager); err != nil {
		return s.lenient(fmt.Errorf("clearing the latched condition of %T %s/%s: %w", child, child.GetNamespace(), child.GetName(), err))
	}
	before = child.DeepCopyObject().(KORCObject)
	annotations := child.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[korc.UnlatchedAtAnnotation] = s.Now.UTC().Format(time.RFC3339)
	child.SetAnnotations(annotations)
	if err := s.Client.Patch(ctx, child, client.MergeFrom(before), FieldManager); err != nil {
		return s.lenient(fmt.Errorf("stamping %T %s/%s: %w", child, child.GetNamespace(), child.GetName(), err))
	}
	s.Log.Info("cleared a condition that K-ORC had latched", "child", child.GetName())
	s.ComeBack(WaitShort)
	return nil
}

// lenient drops an error that the next pass may not meet again, and asks for that pass.
func (s Settler) lenient(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) {
		s.ComeBack(waitConflict)
		return nil
	}
	return err
}

func setConditions(child KORCObject, conditions []metav1.Condition) error {
	switch child := child.(type) {
	case *orcv1alpha1.User:
		child.Status.Conditions = conditions
	case *orcv1alpha1.Project:
		child.Status.Conditions = conditions
	case *orcv1alpha1.Domain:
		child.Status.Conditions = conditions
	case *orcv1alpha1.Role:
		child.Status.Conditions = conditions
	case *orcv1alpha1.ApplicationCredential:
		child.Status.Conditions = conditions
	case interface{ SetConditions([]metav1.Condition) }:
		child.SetConditions(conditions)
	default:
		return fmt.Errorf("clearing the latched condition of %T: the kind is not known", child)
	}
	return nil
}

// WaitOnChild is the outcome for a child of the order that is not Available yet, see WaitOnKORC.
func (p *Pass) WaitOnChild(reason, what string, state ChildState) *Outcome {
	return WaitOnKORC(ExternalURL(p.ControlPlane), reason, what, state)
}

// WaitOnKORC is the outcome for an object of K-ORC's that is not Available yet. With the URL of an
// external Keystone, the cause replaces the reason of the wait when K-ORC's message tells one: whoever
// runs that Keystone is somebody else, and needs to be told what to fix.
func WaitOnKORC(externalURL, reason, what string, state ChildState) *Outcome {
	message := what
	if state.Message != "" {
		message = fmt.Sprintf("%s: %s", what, state.Message)
	}
	if state.UnlatchError != nil {
		return Wait(v1alpha1.ReasonTransportErrorRetryFailed, WaitShort,
			"%s; clearing K-ORC's latched error failed: %v", message, state.UnlatchError)
	}
	if cause, ok := korc.ExternalCause(state.Message); ok && externalURL != "" {
		return Wait(cause, WaitShort, "external Keystone at %s: %s", externalURL, state.Message)
	}
	if state.Transport {
		message += " (Keystone is not reachable from K-ORC; it is tried again)"
	}
	return Wait(reason, WaitShort, "%s", message)
}

// causes are the answers of Keystone, and the lack of one, whose names are also reasons.
var causes = map[keystone.Class]string{
	keystone.AuthenticationFailed:    v1alpha1.ReasonAuthenticationFailed,
	keystone.Forbidden:               v1alpha1.ReasonAuthenticationFailed,
	keystone.TLSVerificationFailed:   v1alpha1.ReasonTLSVerificationFailed,
	keystone.CatalogEndpointMismatch: v1alpha1.ReasonCatalogEndpointMismatch,
	keystone.EndpointUnreachable:     v1alpha1.ReasonEndpointUnreachable,
}

// WaitOnKeystone is the outcome of a question that the operator put to Keystone itself and that failed
// with err. The cause replaces the reason as in WaitOnKORC. An error that is not Keystone's, of a child
// that cannot be read for one, names no cause.
func (p *Pass) WaitOnKeystone(reason string, err error, format string, args ...any) *Outcome {
	message := fmt.Sprintf(format, args...) + ": " + err.Error()
	var failure *keystone.Error
	if url := ExternalURL(p.ControlPlane); url != "" && errors.As(err, &failure) {
		if cause, ok := causes[failure.Class]; ok {
			return Wait(cause, WaitShort, "external Keystone at %s: %s", url, message)
		}
	}
	return Wait(reason, WaitShort, "%s", message)
}
