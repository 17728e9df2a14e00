package order

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// maxMessageLength is the API's limit on a condition's message, in bytes.
const maxMessageLength = 32768

// Pass is one look at one order: what was read, and what is to be reported.
type Pass struct {
	// Base is the controller the pass belongs to.
	Base *Base
	// Kind and Key of the order.
	Kind Kind
	Key  Key
	// Order is the pass's own copy; steps write its status and nothing else.
	Order Object
	// ControlPlane that the order names. It is nil in a teardown whose ControlPlane is gone.
	ControlPlane *v1alpha1.ControlPlane
	// Assignment is the entry that consents to the order. It is nil in a teardown.
	Assignment *v1alpha1.NamespaceAssignment
	// Now is the time of the pass, in whole seconds: status keeps no fractions, and a comparison
	// between a time with and one without would flap.
	Now time.Time

	// Client and Reader work on the order's cluster, from the cache and live.
	Client client.Client
	Reader client.Reader
	// Management and Live work on the management cluster, from the cache and live.
	Management client.Client
	Live       client.Reader

	original Object
	recorder events.EventRecorder
	log      logr.Logger
	after    time.Duration
	err      error
	// persisted is to be done once the status is written.
	persisted []func()
}

// Child returns the name of a child: the order's prefix and a discriminator.
func (p *Pass) Child(discriminator string) string { return p.Kind.Prefix(p.Key) + discriminator }

// Labels are the labels of the order's children.
func (p *Pass) Labels() map[string]string { return p.Kind.Labels(p.Key) }

// ChildNamespace is where the children live: the ControlPlane's namespace.
func (p *Pass) ChildNamespace() string { return p.Order.GetControlPlaneRef().Namespace }

// ChildMeta is the metadata of a child.
func (p *Pass) ChildMeta(discriminator string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: p.Child(discriminator), Namespace: p.ChildNamespace(), Labels: p.Labels()}
}

// Log is the pass's logger; it names the order.
func (p *Pass) Log() logr.Logger { return p.log }

// Report turns an outcome into a condition and a time to come back.
func (p *Pass) Report(condition string, outcome *Outcome) {
	p.ComeBack(outcome.After)
	if outcome.Err != nil {
		p.err = outcome.Err
	}
	if outcome.Status == "" {
		return
	}
	meta.SetStatusCondition(p.Order.GetConditions(), metav1.Condition{
		Type:               condition,
		Status:             outcome.Status,
		Reason:             outcome.Reason,
		Message:            Truncate(outcome.Message),
		ObservedGeneration: p.Order.GetGeneration(),
	})
}

// ReportAll reports one outcome on every condition of the kind.
func (p *Pass) ReportAll(outcome *Outcome) {
	for _, condition := range p.Kind.Conditions {
		p.Report(condition, outcome)
	}
}

// ComeBack asks for another pass after a while. The shortest wish wins; 0 is no wish.
func (p *Pass) ComeBack(after time.Duration) {
	if after > 0 && (p.after == 0 || after < p.after) {
		p.after = after
	}
}

// ComeBackAt asks for another pass at a time. A time that has passed is no wish: what it was for has
// been looked at on this pass.
func (p *Pass) ComeBackAt(at time.Time) {
	if at.After(p.Now) {
		p.ComeBack(at.Sub(p.Now))
	}
}

// WhenPersisted has something done once the status of this pass is written, such as telling what it
// says. A pass that loses the race for the status does not do it; the pass that wins it will.
func (p *Pass) WhenPersisted(do func()) { p.persisted = append(p.persisted, do) }

// Entered tells whether a condition has come to a reason on this pass.
func (p *Pass) Entered(condition, reason string) bool {
	before, now := meta.FindStatusCondition(*p.original.GetConditions(), condition), meta.FindStatusCondition(*p.Order.GetConditions(), condition)
	return now != nil && now.Reason == reason && (before == nil || before.Reason != reason)
}

// Persist writes the status now, when it changed, with an optimistic lock. A pass calls it before it
// does something that only makes sense once the status says so; the scaffold calls it at the end.
func (p *Pass) Persist(ctx context.Context) error {
	p.aggregate()
	p.observe()
	if equality.Semantic.DeepEqual(p.original, p.Order) {
		p.tellPersisted()
		return nil
	}
	before, after := *p.original.GetConditions(), *p.Order.GetConditions()
	written := p.Order.DeepCopyObject().(Object)
	// The lock matters: a pass that worked on a stale order must not take a newer status back.
	patch := client.MergeFromWithOptions(p.original, client.MergeFromWithOptimisticLock{})
	if err := p.Client.Status().Patch(ctx, written, patch, FieldManager); err != nil {
		return fmt.Errorf("writing the status of %s %s/%s: %w", p.Kind.Name, p.Key.Namespace, p.Key.Name, err)
	}
	p.Order.SetResourceVersion(written.GetResourceVersion())
	p.original = p.Order.DeepCopyObject().(Object)
	if thawed(before, after) && p.Order.GetDeletionTimestamp().IsZero() {
		ref := p.Order.GetControlPlaneRef()
		p.Eventf(corev1.EventTypeNormal, EventNamespaceAssigned, "Thaw", "ControlPlane %s/%s consents to namespace %q; the order goes on", ref.Namespace, ref.Name, p.Key.Namespace)
	}
	p.tellPersisted()
	Announce(p.log, ChangedConditions(before, after), func(eventType, reason, action, note string) { p.Eventf(eventType, reason, action, "%s", note) })
	return nil
}

func (p *Pass) tellPersisted() {
	for _, do := range p.persisted {
		do()
	}
	p.persisted = nil
}

// observe records the generation that the status describes: the order's own, unless Ready still
// rests on a condition of an older one. A pass that lost a race, or that persists half way, has not
// judged the change yet; were its generation recorded, kstatus would read an order as finished whose
// change nobody looked at.
func (p *Pass) observe() {
	ready := meta.FindStatusCondition(*p.Order.GetConditions(), v1alpha1.ConditionReady)
	if ready.Status == metav1.ConditionTrue && ready.ObservedGeneration < p.Order.GetGeneration() {
		return
	}
	p.Order.SetObservedGeneration(p.Order.GetGeneration())
}

// RequireFresh makes sure that the pass works on the order that the API server has, before a write
// that a stale one would get wrong: minting twice, or taking a delivered Secret back to an older
// credential. Its outcome is nil when the order is fresh. A stale cache catches up by itself, so the
// conditions are left alone then.
func (p *Pass) RequireFresh(ctx context.Context, reason string) *Outcome {
	current := p.Kind.New()
	if err := p.Reader.Get(ctx, client.ObjectKeyFromObject(p.Order), current); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return &Outcome{}
		}
		return Fail(reason, fmt.Errorf("reading %s %s/%s: %w", p.Kind.Name, p.Key.Namespace, p.Key.Name, err))
	}
	if current.GetResourceVersion() != p.Order.GetResourceVersion() {
		return &Outcome{After: waitConflict}
	}
	return nil
}

// aggregate derives Ready from the kind's own conditions. Its message repeats the first that does
// not hold, so that one column or one line of `kubectl wait` says what is wrong.
func (p *Pass) aggregate() {
	conditions := p.Order.GetConditions()
	ready := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllReady,
		Message: "the order is fulfilled", ObservedGeneration: p.Order.GetGeneration(),
	}
	for _, kind := range p.Kind.Conditions {
		condition := meta.FindStatusCondition(*conditions, kind)
		if condition != nil && condition.Status == metav1.ConditionTrue {
			ready.ObservedGeneration = min(ready.ObservedGeneration, condition.ObservedGeneration)
			continue
		}
		ready.ObservedGeneration = p.Order.GetGeneration()
		ready.Status, ready.Reason = metav1.ConditionFalse, v1alpha1.ReasonNotAllReady
		ready.Message = kind + " is not reported yet"
		if condition != nil {
			ready.Message = fmt.Sprintf("%s: %s: %s", kind, condition.Reason, condition.Message)
		}
		break
	}
	ready.Message = Truncate(ready.Message)
	meta.SetStatusCondition(conditions, ready)
}

// expected tells whether a reason is a wait that every order goes through. Such a wait is no
// warning: an Event stream in which every order begins with warnings is one that nobody reads.
func expected(reason string) bool {
	return strings.HasPrefix(reason, "Waiting") || strings.HasPrefix(reason, "Probing") ||
		strings.HasPrefix(reason, "Referenced") || reason == v1alpha1.ReasonBackupNotSynced
}

// finish persists the status and says when to come back.
func (p *Pass) finish(ctx context.Context) (reconcile.Result, error) {
	if err := p.Persist(ctx); err != nil {
		if outcome := Fail("", err); outcome.Err == nil {
			return reconcile.Result{RequeueAfter: outcome.After}, nil
		}
		if client.IgnoreNotFound(err) == nil {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	if p.err != nil {
		return reconcile.Result{}, p.err
	}
	if p.Key.Cluster != "" {
		// No watch wakes an order on a target cluster for what happens on the management cluster.
		p.ComeBack(WaitRefused)
	}
	return reconcile.Result{RequeueAfter: p.after}, nil
}

// Truncate cuts a condition's message to what the API takes.
func Truncate(message string) string { return firstBytes(message, maxMessageLength) }

// firstBytes cuts text to a number of bytes, never inside a rune.
func firstBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[:limit]
	for len(text) > 0 {
		if r, size := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || size > 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}
