package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/metrics"
)

const namespace = "tenant-a"

// TestPublisher runs the publisher on a real API server, against receivers that fail when they are told to.
func TestPublisher(t *testing.T) {
	config := dependenciestest.StartAPIServer(t, "../../..")
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "..", "..", "config", "crd", "agentprimitives")}, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
	kube := newKube(t, config)
	if err := kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, *world){
		"publishes_and_closes_on_every_channel":            publishesAndCloses,
		"asks_nobody_where_no_person_can_help":             asksNobody,
		"asks_nobody_when_the_time_is_over":                asksNobodyLate,
		"leaves_the_card_of_somebody_else_alone":           leavesForeignCards,
		"says_when_there_is_nobody_to_ask":                 saysNoRecipient,
		"says_when_the_link_would_lead_nowhere":            saysNoURL,
		"says_when_every_channel_refuses":                  saysRefused,
		"publishes_on_one_channel_while_another_fails":     publishesOnOne,
		"records_again_and_does_not_send_again":            recordsAgain,
		"waits_for_a_message_of_another_process":           waitsForAnother,
		"does_not_send_on_a_stale_view":                    staleView,
		"closes_the_card_of_a_request_that_is_gone":        closesVanished,
		"records_a_delivery_after_the_request_has_settled": recordsSettled,
		"posts_to_an_incoming_webhook_twice_at_most":       postsTwiceAtMost,
		"ends_trying_to_close":                             endsClosing,
		"is_stopped_after_every_step":                      stoppedAfterEveryStep,
	} {
		t.Run(name, func(t *testing.T) { test(t, newWorld(t, kube)) })
	}
}

func newKube(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kube, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// world is a request, its receivers, and a publisher that can be stopped and started again.
type world struct {
	*testing.T
	kube    client.WithWatch
	clock   *clocktesting.FakeClock
	slack   *faultySlack
	hook    *faultySlack
	events  *events.FakeRecorder
	remote  *faultyReceiver
	request *v1alpha1.CredentialUpdateRequest
	// config is that of the publishers to come.
	config Config
	noURL  bool
	*Publisher
	logged strings.Builder
}

func newWorld(t *testing.T, kube client.WithWatch) *world {
	w := &world{
		T: t, kube: kube, clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), events: events.NewFakeRecorder(100),
		slack: newFaultySlack(t), hook: newFaultySlack(t), remote: newFaultyReceiver(t),
	}
	w.config = Config{Slack: w.slack.app(t), Webhook: &WebhookConfig{URL: w.remote.URL}, Event: true}
	w.file(v1alpha1.DeterminationRejectedVerified)
	w.start(nil)
	return w
}

// file creates an Open request of a determination.
func (w *world) file(determination string) {
	w.Helper()
	request := sample()
	request.UID, request.Name, request.GenerateName = "", "", "cur-"
	status := request.Status
	if err := w.kube.Create(w.Context(), request); err != nil {
		w.Fatal(err)
	}
	w.request = request
	w.status(func(s *v1alpha1.CredentialUpdateRequestStatus) {
		*s = status
		s.Determination = determination
		s.OpenedAt = &metav1.Time{Time: w.clock.Now()}
	})
}

// status writes the status as the operator does.
func (w *world) status(change func(*v1alpha1.CredentialUpdateRequestStatus)) {
	w.Helper()
	w.read()
	original := w.request.DeepCopy()
	change(&w.request.Status)
	if err := w.kube.Status().Patch(w.Context(), w.request, client.MergeFrom(original)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) settle(phase string) {
	w.Helper()
	w.status(func(s *v1alpha1.CredentialUpdateRequestStatus) { s.Phase, s.Reason = phase, "The reason of "+phase+"." })
}

func (w *world) read() {
	w.Helper()
	if err := w.kube.Get(w.Context(), client.ObjectKeyFromObject(w.request), w.request); err != nil {
		w.Fatal(err)
	}
}

// start makes a publisher without any memory, as a new process is. Its effects go through a plug.
func (w *world) start(p *plug) {
	if p == nil {
		p = &plug{}
	}
	servers := guard(w.T, w.slack.URL, w.hook.URL, w.remote.URL)
	kube := interceptor.NewClient(w.kube, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if p.out {
				return errOut
			}
			return c.Get(ctx, key, o, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return p.effect(func() error { return c.Create(ctx, o, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return p.effect(func() error { return c.SubResource(sub).Patch(ctx, o, patch, options...) })
		},
	})
	settings := Settings{
		Client: kube, Events: w.events, Clock: w.clock, Messages: metrics.NewCardMessages(),
		ProviderTitle: func(id string) string { return strings.ToUpper(id) },
		Link: func(r *v1alpha1.CredentialUpdateRequest) (string, error) {
			return fmt.Sprintf("https://cards.example.com/link?token=%s", r.UID), nil
		},
		Channels: w.config.Channels(Environment{
			Client: kube, Clock: w.clock, Instance: "a-test", Source: "https://cards.example.com",
			Egress: tripper(func(r *http.Request) (response *http.Response, err error) {
				err = p.effect(func() error {
					response, err = servers.RoundTrip(r) //nolint:bodyclose // the caller closes it
					return err
				})
				if err != nil {
					return nil, err
				}
				return response, nil
			}),
		}),
	}
	if w.noURL {
		settings.Link = nil
	}
	w.Publisher = New(settings)
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// plug is pulled at one of the effects that a process has on others: before it, or after it and before the
// process knows. From then on nothing works.
type plug struct {
	at    int // the first effect is 1; 0 never
	after bool
	seen  int
	out   bool
}

var errOut = errors.New("the plug is out")

func (p *plug) effect(do func() error) error {
	if p.out {
		return errOut
	}
	if p.seen++; p.seen == p.at {
		p.out = true
		if p.after {
			_ = do() // nobody learns what became of it
		}
		return errOut
	}
	return do()
}

// pass reconciles once.
func (w *world) pass() (reconcile.Result, error) {
	logger := funcr.New(func(prefix, args string) { w.logged.WriteString(prefix + args + "\n") }, funcr.Options{})
	return w.Reconcile(log.IntoContext(w.Context(), logger), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w.request)})
}

// converge reconciles until nothing is left to do, and lets the time pass that it is told to wait.
func (w *world) converge() {
	w.Helper()
	var err error
	for range 20 {
		var result reconcile.Result
		if result, err = w.pass(); err == nil && result.RequeueAfter == 0 {
			return
		}
		if err != nil {
			w.logged.WriteString(err.Error() + "\n")
		}
		w.clock.Step(max(result.RequeueAfter, time.Second))
	}
	w.Fatalf("it does not come to rest: %v", err)
}

func (w *world) condition(kind string) metav1.Condition {
	w.Helper()
	w.read()
	c := meta.FindStatusCondition(w.request.Status.Conditions, kind)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

func (w *world) wantCard(status metav1.ConditionStatus, reason string) metav1.Condition {
	w.Helper()
	c := w.condition(v1alpha1.ConditionCardDelivered)
	if c.Status != status || c.Reason != reason {
		w.Errorf("CardDelivered is %+v, want %s/%s", c, status, reason)
	}
	return c
}

// wantSent counts what the receivers hold.
func (w *world) wantSent(slackMessages, remote, asEvents int) {
	w.Helper()
	if len(w.slack.posted) != slackMessages || len(w.remote.distinct()) != remote || len(w.cards()) != asEvents {
		w.Errorf("there are %d messages in Slack, %d CloudEvents and %d Events; want %d, %d, %d", len(w.slack.posted), len(w.remote.distinct()), len(w.cards()), slackMessages, remote, asEvents)
	}
}

// cards are the Events of this request that are cards.
func (w *world) cards() []eventsv1.Event {
	w.Helper()
	list := &eventsv1.EventList{}
	if err := w.kube.List(w.Context(), list, client.InNamespace(namespace)); err != nil {
		w.Fatal(err)
	}
	var found []eventsv1.Event
	for _, e := range list.Items {
		if e.Regarding.UID == w.request.UID {
			found = append(found, e)
		}
	}
	return found
}

// transitions are the Events about CardDelivered.
func (w *world) transitions() []string {
	var found []string
	for {
		select {
		case e := <-w.events.Events:
			found = append(found, e)
		default:
			return found
		}
	}
}

func publishesAndCloses(t *testing.T, w *world) {
	w.converge()
	w.wantSent(1, 1, 1)
	w.wantCard(metav1.ConditionTrue, v1alpha1.ReasonPublished)
	if ref := w.request.Status.InteractionRef; ref != fmt.Sprintf("event:card-%s-asked slack:C0123456789/1700000000.000000 webhook:%s", w.request.UID, w.request.UID) {
		t.Errorf("interactionRef is %q", ref)
	}
	link := fmt.Sprintf("https://cards.example.com/link?token=%s", w.request.UID)
	if !strings.Contains(w.slack.posted[0].blocks, link) || !strings.Contains(w.cards()[0].Note, link) {
		t.Errorf("the link is not on the cards: %s, %s", w.slack.posted[0].blocks, w.cards()[0].Note)
	}
	w.converge()
	w.wantSent(1, 1, 1)
	before := w.request.ResourceVersion
	if w.read(); w.request.ResourceVersion != before {
		t.Error("a pass that has nothing to do writes")
	}

	w.settle(v1alpha1.PhaseFulfilled)
	w.converge()
	w.converge()
	w.wantSent(1, 2, 2)
	if m := w.slack.posted[0]; !m.closed || w.slack.updates != 1 || strings.Contains(m.blocks, link) || strings.Contains(m.blocks, w.request.Spec.Why) || !strings.Contains(m.blocks, "has changed") {
		t.Errorf("the message became %+v after %d edits", m, w.slack.updates)
	}
	w.wantCard(metav1.ConditionTrue, v1alpha1.ReasonPublished)
	for _, channel := range []string{"Slack", "Webhook", "Event"} {
		if c := w.condition(ConditionPrefix + channel); c.Reason != string(StateClosed) || c.Status != metav1.ConditionTrue {
			t.Errorf("%s is %+v", channel, c)
		}
	}
	if len(w.memories) != 0 {
		t.Errorf("%d requests are remembered that are over", len(w.memories))
	}
	if events := w.transitions(); len(events) != 0 {
		t.Errorf("Events complain: %v", events)
	}
	for _, text := range []string{w.logged.String(), fmt.Sprintf("%+v", w.request.Status)} {
		leaks(t, "log or status", text)
		if strings.Contains(text, "token=") {
			t.Errorf("the link is in log or status: %s", text)
		}
	}
}

func asksNobody(t *testing.T, w *world) {
	for _, determination := range []string{v1alpha1.DeterminationHealingByRotation, v1alpha1.DeterminationUnverified, "", "OfANewerVersion"} {
		w.file(determination)
		w.converge()
		w.wantSent(0, 0, 0)
		if len(w.request.Status.Conditions) != 0 {
			t.Errorf("%q got %+v", determination, w.request.Status.Conditions)
		}
	}
	for _, phase := range []string{v1alpha1.PhasePending, v1alpha1.PhaseCollapsed, v1alpha1.PhaseRefused, v1alpha1.PhaseExpired, "Novel"} {
		w.file(v1alpha1.DeterminationRejectedVerified)
		w.settle(phase)
		w.converge()
		w.wantSent(0, 0, 0)
	}
}

func asksNobodyLate(_ *testing.T, w *world) {
	w.clock.Step(credupdate.AskWindow)
	w.converge()
	w.wantSent(0, 0, 0)
}

func leavesForeignCards(t *testing.T, w *world) {
	w.status(func(s *v1alpha1.CredentialUpdateRequestStatus) { s.InteractionRef = "somebody-elses" })
	w.converge()
	w.settle(v1alpha1.PhaseFulfilled)
	w.converge()
	w.wantSent(0, 0, 0)
	if w.read(); w.request.Status.InteractionRef != "somebody-elses" || len(w.request.Status.Conditions) > 0 {
		t.Errorf("it became %+v", w.request.Status)
	}
}

func saysNoRecipient(t *testing.T, w *world) {
	w.config = Config{}
	w.start(nil)
	w.converge()
	w.wantCard(metav1.ConditionFalse, v1alpha1.ReasonNoRecipient)
	w.start(nil)
	w.converge()
	if events := w.transitions(); len(events) != 1 || !strings.Contains(events[0], "Warning NoRecipient") {
		t.Errorf("one Event was expected, not %q", events)
	}
	if w.request.Status.InteractionRef != "" {
		t.Errorf("a card is claimed: %q", w.request.Status.InteractionRef)
	}
}

func saysNoURL(t *testing.T, w *world) {
	w.noURL = true
	w.start(nil)
	w.converge()
	w.converge()
	w.wantCard(metav1.ConditionFalse, v1alpha1.ReasonExternalURLUnconfigured)
	if events := w.transitions(); len(events) != 1 || !strings.Contains(events[0], "Warning ExternalURLUnconfigured") {
		t.Errorf("one Event was expected, not %q", events)
	}
	w.noURL = false
	w.start(nil)
	w.converge()
	w.wantCard(metav1.ConditionTrue, v1alpha1.ReasonPublished)
	w.wantSent(1, 1, 1)
}

func saysRefused(t *testing.T, w *world) {
	w.config = Config{Slack: w.slack.app(t)}
	w.start(nil)
	w.slack.refuses = "channel_not_found"
	for range 3 {
		if _, err := w.pass(); err == nil || !strings.Contains(err.Error(), "channel_not_found") {
			t.Fatalf("a pass says %v", err)
		}
	}
	if c := w.wantCard(metav1.ConditionFalse, v1alpha1.ReasonNoRecipient); !strings.Contains(c.Message, "channel_not_found") {
		t.Errorf("it says %q", c.Message)
	}
	if events := w.transitions(); len(events) != 1 {
		t.Errorf("one Event was expected, not %q", events)
	}
	w.slack.refuses = ""
	w.converge()
	w.wantCard(metav1.ConditionTrue, v1alpha1.ReasonPublished)
	w.wantSent(1, 0, 0)
}

func publishesOnOne(t *testing.T, w *world) {
	w.slack.breaks(failing, failing)
	if _, err := w.pass(); err == nil {
		t.Error("a channel that fails is no error")
	}
	w.wantSent(0, 1, 1)
	if c := w.wantCard(metav1.ConditionTrue, v1alpha1.ReasonPublished); strings.Contains(c.Message, "Slack") {
		t.Errorf("it says %q", c.Message)
	}
	if c := w.condition(ConditionPrefix + "Slack"); c.Reason != string(StateNotSent) || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "503") {
		t.Errorf("Slack's ledger is %+v", c)
	}
	w.converge()
	w.wantSent(1, 1, 1)
	if c := w.wantCard(metav1.ConditionTrue, v1alpha1.ReasonPublished); !strings.Contains(c.Message, "Slack") {
		t.Errorf("it says %q", c.Message)
	}
}

func recordsAgain(t *testing.T, w *world) {
	w.config = Config{Slack: w.hook.hook(t)}
	w.start(nil)
	patches := 0
	kube := w.Client
	w.Client = interceptor.NewClient(w.kube, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, _ client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if patches++; patches > 1 && patches < 5 {
				return errors.New("the API server has an outage")
			}
			return kube.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	})
	w.converge()
	if patches < 5 || len(w.hook.posted) != 1 {
		t.Errorf("after %d patches there are %d messages", patches, len(w.hook.posted))
	}
	w.wantCard(metav1.ConditionTrue, v1alpha1.ReasonPublished)
}

func waitsForAnother(t *testing.T, w *world) {
	other := w.Publisher
	w.config = Config{Slack: w.slack.app(t)}
	w.read()
	if err := (&pass{Publisher: other, request: w.request}).patch(t.Context(), true, func() { writeEntry(w.request, "Slack", StateSending, "", w.clock.Now()) }); err != nil {
		t.Fatal(err)
	}
	w.start(nil)
	if result, err := w.pass(); err != nil || result.RequeueAfter != inFlight {
		t.Errorf("it comes back after %s, %v", result.RequeueAfter, err)
	}
	if w.slack.questions+len(w.slack.posted) > 0 {
		t.Error("it does not wait")
	}
	w.settle(v1alpha1.PhaseExpired)
	if result, err := w.pass(); err != nil || result.RequeueAfter != inFlight {
		t.Errorf("about the end it comes back after %s, %v", result.RequeueAfter, err)
	}
	w.converge()
	w.wantSent(0, 0, 0) // it was not there, so there is nothing to close
	if c := w.condition(ConditionPrefix + "Slack"); c.Reason != string(StateClosed) {
		t.Errorf("Slack's ledger is %+v", c)
	}
}

func staleView(t *testing.T, w *world) {
	w.read()
	old := w.request.DeepCopy()
	w.converge()
	w.start(nil)
	w.Client = interceptor.NewClient(w.kube, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			old.DeepCopyInto(o.(*v1alpha1.CredentialUpdateRequest))
			return nil
		},
	})
	if _, err := w.pass(); err == nil {
		t.Error("a stale view is as good as a fresh one")
	}
	w.wantSent(1, 1, 1)
	if w.slack.questions != 0 {
		t.Error("it sent on a stale view")
	}
}

func closesVanished(t *testing.T, w *world) {
	w.converge()
	if err := w.kube.Delete(t.Context(), w.request); err != nil {
		t.Fatal(err)
	}
	w.slack.breaks(failing)
	if _, err := w.pass(); err == nil {
		t.Error("a card that cannot be closed is no error")
	}
	if result, err := w.pass(); err != nil || result.RequeueAfter != 0 {
		t.Fatalf("then it says %v", err)
	}
	w.wantSent(1, 2, 2)
	if m := w.slack.posted[0]; !m.closed || !strings.Contains(m.blocks, "session has ended") {
		t.Errorf("the message became %+v", m)
	}
	if len(w.memories) != 0 {
		t.Error("what is gone is remembered")
	}
}

func recordsSettled(t *testing.T, w *world) {
	w.config = Config{Slack: w.hook.hook(t)}
	p := &plug{}
	w.start(p)
	p.at = 3 // intent, message, record
	if _, err := w.pass(); err == nil {
		t.Fatal("the record was written")
	}
	*p = plug{}
	w.settle(v1alpha1.PhaseExpired)
	w.converge()
	w.wantCard(metav1.ConditionTrue, v1alpha1.ReasonPublished)
	if len(w.hook.posted) != 2 || !strings.Contains(w.hook.posted[1].blocks, "is over") {
		t.Errorf("there are %d messages", len(w.hook.posted))
	}
}

func postsTwiceAtMost(t *testing.T, w *world) {
	w.config = Config{Slack: w.hook.hook(t)}
	w.start(nil)
	w.hook.breaks(loseAnswer, loseAnswer, loseAnswer, loseAnswer)
	w.converge()
	w.converge()
	if len(w.hook.posted) != 2 || strings.Contains(w.hook.posted[0].blocks, "see this twice") || !strings.Contains(w.hook.posted[1].blocks, "see this twice") {
		t.Fatalf("there are %d messages", len(w.hook.posted))
	}
	w.wantCard(metav1.ConditionUnknown, ReasonOutcomeUnknown)
	if w.request.Status.InteractionRef != "" {
		t.Error("a card is claimed of which nobody knows")
	}
	if events := w.transitions(); len(events) != 1 {
		t.Errorf("one Event was expected, not %q", events)
	}
	w.hook.breaks()
	w.settle(v1alpha1.PhaseExpired)
	w.converge()
	w.converge()
	if len(w.hook.posted) != 3 || !strings.Contains(w.hook.posted[2].blocks, "is over") {
		t.Errorf("there are %d messages after the end", len(w.hook.posted))
	}
	leaks(t, "the log", w.logged.String())
}

func endsClosing(t *testing.T, w *world) {
	w.config = Config{Slack: w.slack.app(t)}
	w.start(nil)
	w.converge()
	w.settle(v1alpha1.PhaseFulfilled)
	w.slack.breaks(failing, failing)
	if _, err := w.pass(); err == nil {
		t.Error("Slack's outage is no error")
	}
	w.clock.Step(credupdate.AskWindow + closeWindow)
	w.converge()
	if c := w.condition(ConditionPrefix + "Slack"); c.Reason != string(StateClosed) || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "could not be told") {
		t.Errorf("Slack's ledger is %+v", c)
	}
}

// stoppedAfterEveryStep stops the process at each of its effects, before it and after it, starts another one, and
// counts what people see.
func stoppedAfterEveryStep(t *testing.T, w *world) {
	for name, config := range map[string]Config{
		"app":      {Slack: w.slack.app(t)},
		"incoming": {Slack: w.hook.hook(t)},
		"webhook":  {Webhook: &WebhookConfig{URL: w.remote.URL}},
		"event":    {Event: true},
		"all":      {Slack: w.slack.app(t), Webhook: &WebhookConfig{URL: w.remote.URL}, Event: true},
	} {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				ends := false
				for _, after := range []bool{false, true} {
					w := newWorld(t, w.kube)
					// The servers are this world's own.
					switch {
					case name == "incoming":
						config.Slack = w.hook.hook(t)
					case config.Slack != nil:
						config.Slack = w.slack.app(t)
					}
					if config.Webhook != nil {
						config.Webhook = &WebhookConfig{URL: w.remote.URL}
					}
					w.config = config
					p := &plug{at: at, after: after}
					w.start(p)
					w.life(p)
					ends = !p.out
					w.judge(t, fmt.Sprintf("stopped at effect %d, after it %t", at, after), name)
				}
				if ends {
					if at < 5 {
						t.Errorf("there are only %d effects to stop at", at-1)
					}
					return
				}
			}
		})
	}
}

// life publishes a request and closes it. When the plug is pulled, another process goes on a little later.
func (w *world) life(p *plug) {
	w.Helper()
	until := func() {
		w.Helper()
		for range 3 {
			if result, err := w.pass(); p.out {
				w.clock.Step(time.Second)
				w.start(nil)
				break
			} else if err == nil && result.RequeueAfter == 0 {
				break
			}
		}
		w.converge()
	}
	until()
	w.wantCard(metav1.ConditionTrue, v1alpha1.ReasonPublished)
	w.settle(v1alpha1.PhaseFulfilled)
	until()
	w.converge()
}

func (w *world) judge(t *testing.T, how, name string) {
	t.Helper()
	if c := w.condition(v1alpha1.ConditionCardDelivered); c.Status != metav1.ConditionTrue || w.request.Status.InteractionRef == "" {
		t.Errorf("%s: CardDelivered is %+v, interactionRef %q", how, c, w.request.Status.InteractionRef)
	}
	for _, c := range w.request.Status.Conditions {
		if strings.HasPrefix(c.Type, ConditionPrefix) && c.Reason != string(StateClosed) {
			t.Errorf("%s: %s is left %s", how, c.Type, c.Reason)
		}
	}
	app, remote, asEvents := w.config.Slack != nil && name != "incoming", w.config.Webhook != nil, w.config.Event
	if app && (len(w.slack.posted) != 1 || !w.slack.posted[0].closed) {
		t.Errorf("%s: Slack holds %d messages", how, len(w.slack.posted))
	}
	if remote && len(w.remote.distinct()) != 2 {
		t.Errorf("%s: the receiver keeps %d CloudEvents", how, len(w.remote.distinct()))
	}
	if asEvents && len(w.cards()) != 2 {
		t.Errorf("%s: there are %d Events", how, len(w.cards()))
	}
	if name == "incoming" {
		var asked, again, ended int
		for _, m := range w.hook.posted {
			switch {
			case strings.Contains(m.blocks, "see this twice"):
				again++
			case strings.Contains(m.blocks, "has changed"):
				ended++
			default:
				asked++
			}
		}
		if asked+again < 1 || asked > 1 || again > 1 || ended > 1 {
			t.Errorf("%s: people saw the card %d times, the repetition %d times, and the end %d times", how, asked, again, ended)
		}
	}
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	m.Run()
}
