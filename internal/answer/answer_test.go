package answer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// world is a cluster in memory with an open request, and a provider over HTTP.
type world struct {
	t *testing.T
	answertest.Open
	provider *answertest.Provider
	client   client.WithWatch
	clock    *testingclock.FakePassiveClock
	desk     *Desk
	// before is called before each call to the API server, with "verb kind", and fails it with what it returns.
	before func(call string) error
	writes int
}

// newWorld makes one, with a change to it.
func newWorld(t *testing.T, change func(*world)) *world {
	t.Helper()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := &world{t: t, Open: answertest.NewOpen(now), provider: answertest.NewProvider(t), clock: testingclock.NewFakePassiveClock(now.Add(time.Minute))}
	if change != nil {
		change(w)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, agents.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&agents.CredentialUpdateRequest{})
	for _, object := range w.Objects() {
		if object.GetName() != "" { // a test takes an object away by its name
			builder.WithObjects(object)
		}
	}
	w.client = builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if err := w.fault("get", o); err != nil {
				return err
			}
			return c.Get(ctx, k, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			w.writes++
			if err := w.fault("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			t.Error("something is created")
			return errors.New("created")
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			t.Error("something is written whole")
			return errors.New("updated")
		},
	}).Build()
	w.desk = &Desk{Client: w.client, Catalog: w.provider.Catalog, Prober: w.provider.Prober, Clock: w.clock}
	return w
}

func (w *world) fault(verb string, o client.Object) error {
	if w.before == nil {
		return nil
	}
	kind := "Other"
	switch o.(type) {
	case *corev1.Secret:
		kind = "Secret"
	case *agents.CredentialUpdateRequest:
		kind = "Request"
	case *agents.AgentIdentity:
		kind = "Identity"
	}
	return w.before(verb + " " + kind)
}

func (w *world) answer(value string, confirm bool) (Outcome, error) {
	w.t.Helper()
	outcome, err := w.desk.Answer(w.t.Context(), answertest.RequestKey, w.Request.UID, Submission{Value: value, Confirm: confirm})
	if trimmed := strings.TrimSpace(value); err != nil && len(trimmed) > 2 && strings.Contains(err.Error(), trimmed) {
		w.t.Errorf("the error holds the value: %v", err)
	}
	return outcome, err
}

// stored is what the Secret holds, read past the faults.
func (w *world) stored() map[string]string {
	w.t.Helper()
	before := w.before
	w.before = nil
	defer func() { w.before = before }()
	secret := &corev1.Secret{}
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: answertest.Namespace, Name: answertest.Secret}, secret); err != nil {
		return nil
	}
	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return data
}

var untouched = map[string]string{answertest.Key: answertest.Old, "other": "left-alone"}

func TestAnswer_stores_exactly_one_key(t *testing.T) {
	w := newWorld(t, nil)
	outcome, err := w.answer(" "+answertest.Good+"\r\n", false)
	if err != nil || outcome.Probe != verdict.ProbeValid {
		t.Fatalf("it is answered with %+v, %v", outcome, err)
	}
	want := map[string]string{answertest.Key: answertest.Good, "other": "left-alone"}
	if got := w.stored(); !maps.Equal(got, want) || w.writes != 1 {
		t.Errorf("after %d writes it holds %v", w.writes, got)
	}
	// Until the operator has seen it, another one would undo it.
	if _, err := w.answer(answertest.Bad, true); ReasonOf(err) != AlreadyChanged {
		t.Errorf("a second answer is answered with %v", err)
	}
}

func TestAnswer_refuses(t *testing.T) {
	controller := true
	owner := func(apiVersion, kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "o", UID: "u", Controller: &controller}}
	}
	phase := func(phase string) func(*world) { return func(w *world) { w.Request.Status.Phase = phase } }
	for name, c := range map[string]struct {
		change func(*world)
		want   Reason
		says   string
	}{
		"a request that is gone":                  {func(w *world) { w.Request.Name = "" }, NotFound, "does not exist"},
		"a request that is going":                 {func(w *world) { going(w.Request) }, NotFound, "does not exist"},
		"one nobody looked at":                    {phase(""), Undetermined, "not determined"},
		"a pending one":                           {phase(agents.PhasePending), Undetermined, "not determined"},
		"a follower":                              {func(w *world) { w.follows("canonical") }, Elsewhere, `"canonical"`},
		"a fulfilled one":                         {phase(agents.PhaseFulfilled), Settled, "nothing left to do"},
		"an expired one":                          {phase(agents.PhaseExpired), Settled, "expired"},
		"a refused one":                           {phase(agents.PhaseRefused), Settled, "refused"},
		"a phase of tomorrow":                     {phase("Dreaming"), Settled, "Dreaming"},
		"one whose time is over":                  {func(w *world) { w.clock.SetTime(w.Request.Status.OpenedAt.Add(credupdate.AskWindow)) }, Expired, "time is over"},
		"one that heals by rotation":              {determined(agents.DeterminationHealingByRotation), AsksNobody, "without a person"},
		"a determination of tomorrow":             {determined("Hunch"), AsksNobody, "Hunch"},
		"one without a Secret":                    {func(w *world) { w.Request.Status.CredentialSecretRef = nil }, Undetermined, "which Secret"},
		"one without a credential":                {func(w *world) { w.Request.Status.ResolvedCredential = nil }, Undetermined, "which Secret"},
		"an OAuth bundle":                         {func(w *world) { w.Request.Status.CredentialSecretKey = "" }, NotEnterable, "authorized anew"},
		"a Secret of another namespace":           {func(w *world) { w.Request.Status.CredentialSecretRef.Namespace = "kube-system" }, Moved, "another namespace"},
		"an identity of another namespace":        {func(w *world) { w.Request.Status.ResolvedCredential.Namespace = "tenant-b" }, Moved, "no such credential"},
		"an identity of no known kind":            {func(w *world) { w.Request.Status.ResolvedCredential.IdentityKind = "Pod" }, NotEnterable, `"Pod"`},
		"a person's identity, which is no copy":   {func(w *world) { w.Request.Status.ResolvedCredential.IdentityKind = agents.KindUserIdentity }, NotEnterable, "UserIdentity"},
		"an identity that is gone":                {func(w *world) { w.Identity.Name = "" }, Moved, "no such credential"},
		"an identity without the credential":      {func(w *world) { w.Identity.Spec.Credentials[0].Name = "x" }, Moved, "no such credential"},
		"a credential that became another Secret": {func(w *world) { w.Identity.Spec.Credentials[0].Static.SecretRef.Name = "x" }, Moved, "another Secret"},
		"a credential that became another key":    {func(w *world) { w.Identity.Spec.Credentials[0].Static.SecretRef.Key = "other" }, Moved, "another Secret"},
		"a credential that became a minted one":   {func(w *world) { w.Identity.Spec.Credentials[0].Type = agents.CredentialFederated }, NotEnterable, "federated"},
		"a forged key":                            {func(w *world) { w.Request.Status.CredentialSecretKey = "other" }, Moved, "another Secret"},
		"a Secret that is gone":                   {func(w *world) { w.Secret.Name = "" }, SecretMissing, "does not exist"},
		"a key that is gone":                      {func(w *world) { delete(w.Secret.Data, answertest.Key) }, SecretMissing, "no key"},
		"an immutable Secret":                     {func(w *world) { w.Secret.Immutable = &controller }, Immutable, "immutable"},
		"a Secret with the operator's label":      {func(w *world) { w.Secret.Labels = map[string]string{order.ManagedByLabel: order.ManagedByValue} }, Delivered, "Rotate the order"},
		"a Secret that an order controls":         {func(w *world) { w.Secret.OwnerReferences = owner("c5c3.io/v1alpha1", "KeystoneApplicationCredential") }, Delivered, "Rotate the order"},
		"a credential that somebody has changed":  {func(w *world) { w.Secret.Data[answertest.Key] = []byte("tok_999999999999") }, AlreadyChanged, "already"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.change)
			before := w.stored()
			_, err := w.answer(answertest.Good, true)
			if ReasonOf(err) != c.want || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it is answered with %q (%v), want %q (%s)", ReasonOf(err), err, c.want, c.says)
			}
			if ReasonOf(err).Again() {
				t.Error("another value is asked for")
			}
			if got := w.stored(); !maps.Equal(got, before) || w.writes != 0 || w.provider.Asked.Load() != 0 {
				t.Errorf("%d writes and %d questions to the provider made it %v", w.writes, w.provider.Asked.Load(), got)
			}
			if _, asked := w.desk.Question(t.Context(), answertest.RequestKey, w.Request.UID); ReasonOf(asked) != c.want {
				t.Errorf("it is shown with %v", asked)
			}
		})
	}
}

// going has an object being deleted, which a finalizer holds.
func going(o client.Object) {
	o.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	o.SetFinalizers([]string{"example.com/held"})
}

func determined(determination string) func(*world) {
	return func(w *world) { w.Request.Status.Determination = determination }
}

func (w *world) follows(name string) {
	w.Request.Status.Phase = agents.PhaseCollapsed
	w.Request.Status.CollapsedInto = &agents.ObjectReference{Namespace: answertest.Namespace, Name: name}
}

func TestAnswer_refuses_the_request_of_another_life(t *testing.T) {
	w := newWorld(t, nil)
	if _, err := w.desk.Answer(t.Context(), answertest.RequestKey, "of-another", Submission{Value: answertest.Good}); ReasonOf(err) != NotFound {
		t.Errorf("it is answered with %v", err)
	}
	if question, err := w.desk.Question(t.Context(), answertest.RequestKey, "of-another"); question != nil || ReasonOf(err) != NotFound {
		t.Errorf("it is shown as %+v, %v", question, err)
	}
}

func TestAnswer_judges_values(t *testing.T) {
	for name, c := range map[string]struct {
		value, provider string
		want            Reason
	}{
		"empty":                              {"", "git", Malformed},
		"white space":                        {" \t\n", "git", Malformed},
		"of another provider":                {"ghp_111111111111", "git", Malformed},
		"more than a token":                  {answertest.Good + "0", "git", Malformed},
		"with a zero-width space":            {"a\u200bb", "quiet", Malformed},
		"with a line break in it":            {"a\nb", "quiet", Malformed},
		"two words":                          {"Bearer abc", "quiet", Malformed},
		"too long":                           {strings.Repeat("a", MaxValue+1), "quiet", Malformed},
		"the stored one":                     {answertest.Old, "git", Unchanged},
		"the stored one with space":          {" " + answertest.Old + "\n", "git", Unchanged},
		"any token, the provider not asking": {"a-token", "quiet", ""},
		"anything, the provider unknown":     {"-----BEGIN KEY-----\nabc\n-----END KEY-----", "nobody", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world) { w.Request.Status.ResolvedCredential.ProviderID = c.provider })
			// A confirmation is about the provider's word and nothing else.
			outcome, err := w.answer(c.value, true)
			if ReasonOf(err) != c.want || (err == nil) != (c.want == "") {
				t.Fatalf("it is answered with %v, want %q", err, c.want)
			}
			if c.want == "" {
				if got := w.stored()[answertest.Key]; got != c.value || outcome.Probe != verdict.ProbeUnsupported {
					t.Errorf("stored is %q after %+v", got, outcome)
				}
				return
			}
			if !c.want.Again() || !maps.Equal(w.stored(), untouched) || w.provider.Asked.Load() != 0 {
				t.Errorf("it holds %v, and the provider was asked %d times", w.stored(), w.provider.Asked.Load())
			}
		})
	}
}

func TestAnswer_asks_the_provider(t *testing.T) {
	answers := func(status int, message string) func(*answertest.Provider) {
		return func(p *answertest.Provider) { p.Answers(status, message) }
	}
	for name, c := range map[string]struct {
		provider func(*answertest.Provider)
		probe    verdict.Probe
		held     bool // without a confirmation
	}{
		"that accepts":           {answers(200, ""), verdict.ProbeValid, false},
		"that refuses":           {answers(401, "Bad credentials"), verdict.ProbeRejected, true},
		"that forbids":           {answers(403, "SSO"), verdict.ProbeForbidden, true},
		"that is broken":         {answers(503, ""), verdict.ProbeIndeterminate, false},
		"that limits the rate":   {answers(403, "rate limit"), verdict.ProbeIndeterminate, false},
		"that hangs up":          {func(p *answertest.Provider) { p.Handle(hangUp) }, verdict.ProbeIndeterminate, false},
		"that quotes the value":  {answers(401, "no such token "+answertest.Bad), verdict.ProbeRejected, true},
		"that plays with marks":  {answers(401, "a\u202eb"), verdict.ProbeRejected, true},
		"that answers something": {answers(302, ""), verdict.ProbeIndeterminate, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			c.provider(w.provider)
			outcome, err := w.answer(answertest.Bad, false)
			if c.held {
				if ReasonOf(err) != Unconfirmed || outcome.Probe != c.probe || !maps.Equal(w.stored(), untouched) || strings.ContainsRune(err.Error(), '\u202e') {
					t.Fatalf("it is answered with %v and holds %v", err, w.stored())
				}
				outcome, err = w.answer(answertest.Bad, true)
			}
			if err != nil || outcome.Probe != c.probe || w.stored()[answertest.Key] != answertest.Bad {
				t.Errorf("it is answered with %+v, %v and holds %v", outcome, err, w.stored())
			}
		})
	}
}

// hangUp breaks the connection off.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// A probe that was broken off says nothing of the value, and must not have it stored.
func TestAnswer_stores_nothing_for_whoever_left(t *testing.T) {
	w := newWorld(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	w.provider.Handle(func(http.ResponseWriter, *http.Request) { leave() })
	_, err := w.desk.Answer(ctx, answertest.RequestKey, "", Submission{Value: answertest.Good})
	if !errors.Is(err, context.Canceled) || !maps.Equal(w.stored(), untouched) {
		t.Errorf("it is answered with %v and holds %v", err, w.stored())
	}
}

// What happens while the provider thinks counts.
func TestAnswer_looks_again_after_the_provider(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*world)
		want      Reason
	}{
		"the time is over":     {func(w *world) { w.clock.SetTime(w.clock.Now().Add(credupdate.AskWindow)) }, Expired},
		"the request goes":     {func(w *world) { _ = w.client.Delete(w.t.Context(), w.Request.DeepCopy()) }, NotFound},
		"the Secret goes":      {func(w *world) { _ = w.client.Delete(w.t.Context(), w.Secret.DeepCopy()) }, SecretMissing},
		"somebody was faster":  {func(w *world) { w.sets(answertest.Key, "tok_333333333333") }, AlreadyChanged},
		"another key changes":  {func(w *world) { w.sets("other", "new") }, ""},
		"it is emptied":        {func(w *world) { w.sets(answertest.Key, "") }, ""},
		"the same came anyhow": {func(w *world) { w.sets(answertest.Key, answertest.Good) }, AlreadyChanged},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.provider.Handle(func(http.ResponseWriter, *http.Request) { c.meanwhile(w) })
			_, err := w.answer(answertest.Good, false)
			if ReasonOf(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("it is answered with %v, want %q", err, c.want)
			}
		})
	}
}

// sets writes a key of the Secret, as somebody else would.
func (w *world) sets(key, value string) {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = answertest.Namespace, answertest.Secret
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"`+key+`":"`+encode(value)+`"}}`))
	before := w.before
	w.before = nil
	defer func() { w.before = before }()
	if err := w.client.Patch(w.t.Context(), secret, patch); err != nil {
		w.t.Error(err)
	}
	w.writes--
}

func TestAnswer_meets_other_writers(t *testing.T) {
	for name, c := range map[string]struct {
		conflicts int
		key       string
		want      Reason
	}{
		"of another key":           {1, "other", ""},
		"of another key, thrice":   {3, "other", ""},
		"of another key, for ever": {99, "other", Busy},
		"of this key":              {1, answertest.Key, AlreadyChanged},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			left := c.conflicts
			w.before = func(call string) error {
				if call == "patch Secret" && left > 0 {
					left--
					w.sets(c.key, "by-another-"+strings.Repeat("x", left))
				}
				return nil
			}
			_, err := w.answer(answertest.Good, false)
			if ReasonOf(err) != c.want || (err == nil) != (c.want == "") {
				t.Fatalf("it is answered with %v, want %q", err, c.want)
			}
			if got := w.stored(); (c.want == "") != (got[answertest.Key] == answertest.Good) || c.key == "other" && !strings.HasPrefix(got["other"], "by-another-") {
				t.Errorf("it holds %v", got)
			}
			if w.provider.Asked.Load() != 1 {
				t.Errorf("the provider was asked %d times", w.provider.Asked.Load())
			}
		})
	}
}

// A failure of the API server's is no refusal: the person is not told something that is not so.
func TestAnswer_passes_failures_on(t *testing.T) {
	away := apierrors.NewInternalError(errors.New("the API server is away"))
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, answertest.Secret, errors.New("no right"))
	for _, call := range []string{"get Request", "get Identity", "get Secret", "patch Secret"} {
		for _, fault := range []*apierrors.StatusError{away, denied} {
			w := newWorld(t, nil)
			w.before = func(made string) error {
				if made == call {
					return fault
				}
				return nil
			}
			_, err := w.answer(answertest.Good, true)
			if err == nil || ReasonOf(err) != "" || apierrors.ReasonForError(err) != fault.ErrStatus.Reason || !maps.Equal(w.stored(), untouched) {
				t.Errorf("%s failing with %v is answered with %v", call, fault, err)
			}
		}
	}
}

// An admission webhook may quote the object in any writing, and other keys of it with the new one.
func TestAnswer_hides_a_value_that_the_API_server_quotes(t *testing.T) {
	const other = "left-alone"
	for _, quoted := range []string{
		answertest.Good, encode(answertest.Good), fmt.Sprintf("%x", answertest.Good), answertest.Good[:len(answertest.Good)-2] + "...", encode(other), other,
	} {
		for _, refused := range []*apierrors.StatusError{
			apierrors.NewBadRequest("admission webhook denied: data " + quoted + " is weak"),
			apierrors.NewForbidden(corev1.Resource("secrets"), "git", errors.New("data "+quoted+" is weak")),
		} {
			w := newWorld(t, nil)
			w.before = func(call string) error {
				if call == "patch Secret" {
					return refused
				}
				return nil
			}
			_, err := w.answer(answertest.Good, false)
			if err == nil || strings.Contains(err.Error(), quoted) {
				t.Errorf("it is answered with %v", err)
			}
			if apierrors.ReasonForError(err) != refused.ErrStatus.Reason || !strings.Contains(err.Error(), string(refused.ErrStatus.Reason)) {
				t.Errorf("the answer does not say that it was %s: %v", refused.ErrStatus.Reason, err)
			}
		}
	}
}

func TestQuestion(t *testing.T) {
	controller := true
	w := newWorld(t, func(w *world) {
		w.Secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "external-secrets.io/v1", Kind: "ExternalSecret", Name: "git", UID: "u", Controller: &controller}}
	})
	question, err := w.desk.Question(t.Context(), answertest.RequestKey, w.Request.UID)
	if err != nil {
		t.Fatal(err)
	}
	if question.Keeper != "ExternalSecret tenant-a/git" || question.Provider.Title != "Git" || question.Subject != "" ||
		!question.Expires.Equal(w.Request.Status.OpenedAt.Add(credupdate.AskWindow)) || question.Request.UID != w.Request.UID {
		t.Errorf("it is %+v", question)
	}
	if w.writes != 0 || w.provider.Asked.Load() != 0 {
		t.Error("looking asked the provider or wrote")
	}
}

// A session's copy of a person's credential is found by the session's name.
func TestAnswer_writes_a_persons_credential_into_the_sessions_copy(t *testing.T) {
	w := newWorld(t, nil)
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: answertest.Namespace, Name: answertest.Session + credupdate.PassthroughSuffix}, Data: map[string][]byte{"git-token": []byte(answertest.Old), "x": []byte("y")}}
	person := &agents.SessionUserIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: answertest.Namespace, Name: answertest.Session}, Spec: agents.IdentitySpec{
		Subject: "alice", Credentials: []agents.IdentityCredential{{Name: "git-token", Type: agents.CredentialStatic}},
	}}
	request := w.Request.DeepCopy()
	request.Status.ResolvedCredential.IdentityKind, request.Status.ResolvedCredential.Name = agents.KindSessionUserIdentity, answertest.Session
	request.Status.CredentialSecretRef.Name, request.Status.CredentialSecretKey = copied.Name, "git-token"
	request.Status.CredentialSecretObservedHash = credupdate.Digest(copied.Data, "git-token")
	plain := fake.NewClientBuilder().WithScheme(w.client.Scheme()).WithObjects(request, copied, person).Build()
	w.desk.Client = plain
	question, err := w.desk.Question(t.Context(), answertest.RequestKey, "")
	if err != nil || question.Subject != "alice" {
		t.Fatalf("it is %+v, %v", question, err)
	}
	if _, err := w.answer(answertest.Good, false); err != nil {
		t.Fatal(err)
	}
	if err := plain.Get(t.Context(), client.ObjectKeyFromObject(copied), copied); err != nil || string(copied.Data["git-token"]) != answertest.Good || string(copied.Data["x"]) != "y" {
		t.Errorf("it holds %q, %v", copied.Data, err)
	}
}
