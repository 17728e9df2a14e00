package crash

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
)

// aWhile is how long a fault lasts: long enough for every retry to meet it more than once.
const aWhile = 2 * time.Minute

// moment is a point of the life at which a fault can begin.
type moment struct {
	name  string
	phase string
	when  func(*life) bool
}

var (
	atMint     = moment{"mint", phaseMint, nil}
	atRotation = moment{"rotation", phaseRotation, nil}
	// beforeSwitch: the successor is in Keystone, and the order has not switched to it.
	beforeSwitch = moment{"before the switch", phaseRotation, func(l *life) bool { return len(l.held()) == 2 && l.credential().Status.CredentialGeneration == 1 }}
	// beforeDelivery: the order has switched, and the Secret has not.
	beforeDelivery = moment{"before the delivery", phaseRotation, func(l *life) bool { return l.credential().Status.CredentialGeneration == 2 && !l.carries(2) }}
	atGrace        = moment{"grace", phaseGrace, nil}
	atRevocation   = moment{"revocation", phaseGrace, func(l *life) bool {
		at := l.credential().Status.PreviousCredentialDeleteAt
		return at != nil && !l.clock.Now().Before(at.Time)
	}}
	atPassword = moment{"password", phasePassword, nil}
	// atDeadPassword: the password was changed by hand, and the order is told so.
	atDeadPassword = moment{"dead password", phaseDeadPassword, nil}
	atTeardown     = moment{"teardown", phaseTeardown, nil}
	// revoked: the credential order is half torn down.
	revoked = moment{"teardown, credential revoked", phaseTeardown, func(l *life) bool { return len(l.held()) == 0 }}

	everyMoment = []moment{atMint, atRotation, beforeSwitch, beforeDelivery, atGrace, atRevocation, atPassword, atDeadPassword, atTeardown, revoked}
)

// fault is a row of the table.
type fault struct {
	name    string
	moments []moment
	disturbance
	// impatient shortens the time that everybody waits for an answer, on the real clock.
	impatient bool
}

func always(do func(http.ResponseWriter, *http.Request) bool) func(*life, http.ResponseWriter, *http.Request) bool {
	return func(_ *life, w http.ResponseWriter, r *http.Request) bool { return do(w, r) }
}

func faults() []fault {
	busy := []string{"Retry-After", "30"}
	rows := []fault{
		{name: "HTTP 500", disturbance: disturbance{fault: always(ordertest.Refused(500, "An unexpected error prevented the server from fulfilling your request."))}},
		{name: "HTTP 502 of a proxy", disturbance: disturbance{fault: always(ordertest.Proxied(502))}},
		{name: "HTTP 503", disturbance: disturbance{fault: always(ordertest.Refused(503, "The service is unavailable."))}},
		{name: "HTTP 503 of a proxy", disturbance: disturbance{fault: always(ordertest.Proxied(503))}},
		{name: "HTTP 404 of a proxy", disturbance: disturbance{fault: always(ordertest.Proxied(404))}},
		{name: "HTTP 429 with Retry-After", disturbance: disturbance{fault: always(ordertest.Refused(429, "Too many requests.", busy...))}},
		{name: "timeout", impatient: true, disturbance: disturbance{fault: always(ordertest.Silent), lasts: 20 * time.Second}},
		{name: "connection reset", disturbance: disturbance{fault: always(func(w http.ResponseWriter, _ *http.Request) bool { ordertest.Reset(w); return true })}},
		{name: "answers lost", disturbance: disturbance{delivery: func(*http.Request) ordertest.Delivery { return ordertest.Lost }}},
		{name: "answers truncated", disturbance: disturbance{delivery: func(*http.Request) ordertest.Delivery { return ordertest.Truncated }}},
		{name: "answers to changes lost", disturbance: disturbance{delivery: func(r *http.Request) ordertest.Delivery {
			if changes(r) {
				return ordertest.Lost
			}
			return ordertest.Answered
		}}},
		{name: "HTTP 409 on create", disturbance: disturbance{fault: onlyIf(creates, ordertest.Refused(409, "Conflict occurred attempting to store it."))}},
		{name: "HTTP 404 on a user just created", moments: []moment{atMint}, disturbance: disturbance{
			fault: onlyIf(aboutUser, ordertest.Refused(404, "Could not find user.")),
		}},
		{name: "HTTP 401 for the ordered user's password", disturbance: disturbance{
			fault: onlyIf(userLogsIn, ordertest.Refused(401, "The request you have made requires authentication.")),
		}},
		{name: "HTTP 401 for the administrator", disturbance: disturbance{
			fault: onlyIf(adminLogsIn, ordertest.Refused(401, "The request you have made requires authentication.")),
		}},
		{name: "an older push reported late", disturbance: disturbance{
			starts: func(l *life) { l.eso.Late = true }, stops: func(l *life) { l.eso.Late = false },
		}},
		{name: "the store gone", disturbance: disturbance{starts: (*life).closeStore, stops: (*life).openStore}},
		{name: "Keystone's clock 10 minutes ahead", disturbance: disturbance{starts: func(l *life) { l.skew = 10 * time.Minute }, lasts: time.Second}},
		{name: "Keystone's clock 10 minutes behind", disturbance: disturbance{starts: func(l *life) { l.skew = -10 * time.Minute }, lasts: time.Second}},
	}
	for _, verdict := range verdicts {
		rows = append(rows, fault{name: "K-ORC: " + verdict.name, moments: verdict.moments, disturbance: disturbance{
			wedged: func(_ *life, object client.Object) (string, string) {
				if verdict.needsID && !hasID(object) {
					return "", ""
				}
				return verdict.reason, verdict.message
			},
			starts: func(l *life) { l.wedge(verdict.reason, verdict.message, verdict.needsID) },
			stops:  verdict.repair,
		}})
	}
	return rows
}

// verdicts are what K-ORC can be stuck with, in its own words. It reports them on everything it looks at,
// and on what it was done with.
var verdicts = []struct {
	name, reason, message string
	moments               []moment
	// needsID: K-ORC says so only of a resource that it had.
	needsID bool
	// repair is what a person has to do, because nothing tells the operator that the verdict is wrong.
	repair func(*life)
}{
	{name: "transient error", reason: orcv1alpha1.ConditionReasonTransientError,
		message: "Expected HTTP response code [200] when accessing [GET http://keystone/v3/users/u], but got 503 instead: Service Unavailable"},
	{name: "waiting", reason: orcv1alpha1.ConditionReasonProgressing, message: "Waiting for Secret/something to be created"},
	{name: "a reset connection, given up", reason: orcv1alpha1.ConditionReasonInvalidConfiguration,
		message: `invalid configuration creating resource: Post "http://keystone/v3/x": read tcp 10.0.0.1:1->10.0.0.2:5000: read: connection reset by peer`},
	{name: "an endpoint that refuses connections, given up", reason: orcv1alpha1.ConditionReasonInvalidConfiguration,
		message: `invalid configuration updating resource: Patch "http://keystone/v3/x": dial tcp 10.0.0.2:5000: connect: connection refused`},
	{name: "deleted from OpenStack, given up", reason: orcv1alpha1.ConditionReasonUnrecoverableError, message: "resource has been deleted from OpenStack",
		needsID: true},
	{name: "a conflict, given up", reason: orcv1alpha1.ConditionReasonInvalidConfiguration,
		message: "invalid configuration creating resource: Expected HTTP response code [201] when accessing [POST http://keystone/v3/x], but got 409 instead: Conflict", repair: (*life).unwedge},
	{name: "a bad request, given up", reason: orcv1alpha1.ConditionReasonInvalidConfiguration,
		message: "invalid configuration creating resource: Expected HTTP response code [201] when accessing [POST http://keystone/v3/x], but got 400 instead: Invalid input", repair: (*life).unwedge},
	{name: "several matches, given up", reason: orcv1alpha1.ConditionReasonInvalidConfiguration,
		message: "found more than one matching OpenStack resource during adoption", repair: (*life).unwedge},
}

// wedge writes a verdict on every object that K-ORC has to do with, as during an outage.
func (l *life) wedge(reason, message string, needsID bool) {
	l.tb.Helper()
	status := metav1.ConditionFalse
	if reason == orcv1alpha1.ConditionReasonTransientError || reason == orcv1alpha1.ConditionReasonProgressing {
		status = metav1.ConditionTrue
	}
	l.eachOfKORC(func(object client.Object, conditions *[]metav1.Condition) bool {
		return (!needsID || hasID(object)) && meta.SetStatusCondition(conditions, metav1.Condition{
			Type: orcv1alpha1.ConditionProgressing, Status: status, Reason: reason, Message: message, ObservedGeneration: object.GetGeneration(),
		})
	})
}

// hasID tells whether K-ORC knows an id in Keystone.
func hasID(object client.Object) bool {
	switch object := object.(type) {
	case *orcv1alpha1.User:
		return object.Status.ID != nil
	case *orcv1alpha1.Project:
		return object.Status.ID != nil
	case *orcv1alpha1.Role:
		return object.Status.ID != nil
	case *orcv1alpha1.ApplicationCredential:
		return object.Status.ID != nil
	}
	return false
}

// unwedge removes every verdict, as a person does who mended the cause.
func (l *life) unwedge() {
	l.tb.Helper()
	l.eachOfKORC(func(_ client.Object, conditions *[]metav1.Condition) bool {
		progressing := meta.FindStatusCondition(*conditions, orcv1alpha1.ConditionProgressing)
		return progressing != nil && progressing.Reason != orcv1alpha1.ConditionReasonSuccess &&
			meta.RemoveStatusCondition(conditions, orcv1alpha1.ConditionProgressing)
	})
}

func (l *life) eachOfKORC(change func(client.Object, *[]metav1.Condition) bool) {
	l.tb.Helper()
	for _, list := range listed() {
		l.must(l.people.List(l.ctx, list, client.InNamespace(l.plane)))
		for _, object := range items(list) {
			var conditions *[]metav1.Condition
			before := object.DeepCopyObject().(client.Object)
			switch object := object.(type) {
			case *orcv1alpha1.User:
				conditions = &object.Status.Conditions
			case *orcv1alpha1.Project:
				conditions = &object.Status.Conditions
			case *orcv1alpha1.Role:
				conditions = &object.Status.Conditions
			case *orcv1alpha1.ApplicationCredential:
				conditions = &object.Status.Conditions
			default:
				continue
			}
			if change(object, conditions) {
				l.must(l.people.Status().Patch(l.ctx, object, client.MergeFrom(before)))
			}
		}
	}
}

func onlyIf(concerns func(*life, *http.Request) bool, do func(http.ResponseWriter, *http.Request) bool) func(*life, http.ResponseWriter, *http.Request) bool {
	return func(l *life, w http.ResponseWriter, r *http.Request) bool { return concerns(l, r) && do(w, r) }
}

func creates(_ *life, r *http.Request) bool { return r.Method == http.MethodPost && changes(r) }

// aboutUser tells whether a request names the ordered user by its id.
func aboutUser(l *life, r *http.Request) bool {
	user := &orcv1alpha1.User{}
	key := types.NamespacedName{Namespace: l.plane, Name: l.prefix(order.UserKind) + "user"}
	return l.get(key, user) && user.Status.ID != nil && strings.Contains(r.URL.Path, "/users/"+*user.Status.ID)
}

func userLogsIn(_ *life, r *http.Request) bool  { return logsIn(r, names[order.UserKind.Name]) }
func adminLogsIn(_ *life, r *http.Request) bool { return logsIn(r, "admin") }

// logsIn tells whether a request is a login with a user's password.
func logsIn(r *http.Request, user string) bool {
	if !strings.HasSuffix(r.URL.Path, "/auth/tokens") {
		return false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte(`"password"`)) && bytes.Contains(body, []byte(`"name":"`+user+`"`))
}

// TestFaults plays a life for each fault and each moment that it can begin at.
func TestFaults(t *testing.T) {
	on := inMemory(t)
	want := on.life(t).live()
	lives := 0
	t.Run("fault", func(t *testing.T) {
		for _, row := range faults() {
			moments := row.moments
			if moments == nil {
				moments = everyMoment
			}
			for _, at := range moments {
				lives++
				t.Run(row.name+"/"+at.name, func(t *testing.T) {
					t.Parallel()
					l := on.life(t)
					d := row.disturbance
					d.phase, d.when = at.phase, at.when
					if d.lasts == 0 {
						d.lasts = aWhile
					}
					if row.impatient {
						l.patience = 50 * time.Millisecond
						l.korc.HTTP.Timeout = l.patience
						l.startOperator()
					}
					l.disturbance = &d
					l.same(want, l.live())
				})
			}
		}
	})
	t.Logf("faults: %d lives", lives)
}
