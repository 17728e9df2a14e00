package crash

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/c5c3/c5c3-operator/controllers/keystoneapplicationcredential"
	"github.com/c5c3/c5c3-operator/controllers/keystoneproject"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/keystoneuser"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// interruption is what becomes of one write of the operator's, to Kubernetes or to Keystone.
type interruption string

const (
	// undisturbed: nothing does.
	undisturbed interruption = "undisturbed"
	// stopped: the operator stops when the write is done, and a fresh one starts.
	stopped interruption = "stopped after the write"
	// answerLost: the write is done, and the operator reads a broken connection.
	answerLost interruption = "answer lost"
	// answerLostThenStopped: the same, and the operator stops when its next write is done.
	answerLostThenStopped interruption = "answer lost, stopped after the next write"
	// writeLost: the operator reads a broken connection, and nothing was written.
	writeLost interruption = "write lost"
)

// operatorStopped unwinds the pass of an operator that stops.
type operatorStopped struct{}

// interrupter counts the operator's writes and disturbs one of them. Keystone's handler and the passes share
// it, hence the lock.
type interrupter struct {
	mu sync.Mutex
	// how the write of number at is disturbed; writes count from 1.
	how    interruption
	at     int
	writes int
	// follow stops the operator after the next write.
	follow bool
	dead   bool
	note   func(string)
}

// before tells whether a write is to be lost, and ends an operator that is dead already.
func (i *interrupter) before() (lost bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.dead {
		panic(operatorStopped{})
	}
	if i.how == writeLost && i.writes+1 == i.at {
		i.writes++
		return true
	}
	return false
}

// after counts a write that was done, and tells whether its answer is lost. The operator is dead
// afterwards if it is to stop.
func (i *interrupter) after(what string) (lost bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.writes++
	i.note(fmt.Sprintf("  write %d: %s", i.writes, what))
	if i.follow {
		i.follow, i.dead = false, true
	}
	if i.writes != i.at {
		return false
	}
	switch i.how {
	case stopped:
		i.dead = true
	case answerLostThenStopped:
		i.follow = true
		return true
	case answerLost:
		return true
	case undisturbed, writeLost:
	}
	return false
}

func (i *interrupter) stopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.dead
}

func (i *interrupter) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.writes
}

// revive is for the operator that starts next.
func (i *interrupter) revive() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.dead, i.follow = false, false
}

// brokenConnection is what the client of an API server returns when the connection breaks.
func brokenConnection() error {
	return &url.Error{Op: "Patch", URL: "https://api.invalid", Err: syscall.ECONNRESET}
}

// write does one write to Kubernetes.
func (i *interrupter) write(what string, do func() error) error {
	if i.before() {
		return brokenConnection()
	}
	if err := do(); err != nil {
		return err
	}
	lost := i.after(what)
	if i.stopped() {
		panic(operatorStopped{})
	}
	if lost {
		return brokenConnection()
	}
	return nil
}

// writes are the operator's writes to Kubernetes, counted and disturbed, and its live reads, which a dead
// operator makes none of.
func (i *interrupter) client(c client.WithWatch) client.WithWatch {
	what := func(verb string, o client.Object) string { return fmt.Sprintf("%s %T %s", verb, o, o.GetName()) }
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			i.aliveOrUnwind()
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			i.aliveOrUnwind()
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return i.write(what("create", o), func() error { return c.Create(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return i.write(what("patch", o), func() error { return c.Patch(ctx, o, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return i.write(what("patch "+sub+" of", o), func() error { return c.SubResource(sub).Patch(ctx, o, patch, options...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			named := o.(interface {
				GetName() string
				GetKind() string
			})
			return i.write("apply "+named.GetKind()+" "+named.GetName(), func() error { return c.Apply(ctx, o, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return i.write(what("delete", o), func() error { return c.Delete(ctx, o, options...) })
		},
		// The operator has no other verbs; one that it is given must be counted here too.
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			panic("the harness does not count updates yet")
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			panic("the harness does not count updates of a subresource yet")
		},
	})
}

func (i *interrupter) aliveOrUnwind() {
	if i.stopped() {
		panic(operatorStopped{})
	}
}

const userAgent = "c5c3-operator"

func byOperator(r *http.Request) bool { return strings.HasPrefix(r.UserAgent(), userAgent) }

// changes tells whether a request is to change something in Keystone. A login changes nothing that the
// operator could rely on.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasSuffix(r.URL.Path, "/auth/tokens")
}

// fault breaks the connection of requests of a dead operator, and of a write that is to be lost.
func (i *interrupter) fault(w http.ResponseWriter, r *http.Request) bool {
	if !byOperator(r) {
		return false
	}
	if i.stopped() || changes(r) && i.before() {
		ordertest.Reset(w)
		return true
	}
	return false
}

// delivery counts the operator's writes to Keystone.
func (i *interrupter) delivery(r *http.Request, status int) ordertest.Delivery {
	if byOperator(r) && changes(r) && status < 300 && i.after(r.Method+" "+r.URL.Path) {
		return ordertest.Lost
	}
	return ordertest.Answered
}

// operator is one process of the operator's: whatever it keeps in memory goes with it.
type operator struct {
	bases map[string]*order.Base
}

var steps = map[string]order.Steps{
	order.UserKind.Name:                  keystoneuser.Steps(),
	order.ProjectKind.Name:               keystoneproject.Steps(),
	order.RoleAssignmentKind.Name:        keystoneroleassignment.Steps(),
	order.ApplicationCredentialKind.Name: keystoneapplicationcredential.Steps(),
}

// startOperator starts a fresh operator. Its cache is filled when it starts to work.
func (l *life) startOperator() {
	l.interrupter.revive()
	l.synced = l.history.length
	env := order.Environment{
		Manager: ordertest.FakeManager{Cached: l.cached(), Live: l.interrupter.client(l.raw), Events: l.events},
		Keystone: keystone.New(keystone.Config{
			Now: l.clock.Now, UserAgent: userAgent, Timeout: l.patience,
		}),
		Clock: l.clock, Late: releasedKinds{},
		// Audits come at random moments; no k would be the same k twice.
		AuditInterval: 0,
	}
	l.operator = &operator{bases: map[string]*order.Base{}}
	for _, kind := range order.Kinds {
		l.operator.bases[kind.Name] = env.NewBase(kind)
	}
}

// cached is the client of the operator: it reads what its cache has by now, and writes to the API server.
func (l *life) cached() client.Client {
	return view{
		Client: l.interrupter.client(l.recorded), history: l.history, own: true,
		moment: func(kind schema.GroupVersionKind) int {
			return max(l.synced, l.history.length-l.lag(kind))
		},
	}
}

// pass lets the operator look at one order. It starts a fresh one when the operator stops meanwhile.
func (l *life) pass(kind order.Kind, name types.NamespacedName) {
	l.tb.Helper()
	result, err, crashed := l.operator.pass(l, kind, name)
	switch {
	case crashed:
		l.note("the operator stopped in a pass over %s %s", kind.Name, name.Name)
		l.stops++
		l.startOperator()
		l.due[kind.Name] = l.clock.Now()
	case err != nil:
		l.note("%s %s: %v", kind.Name, name.Name, err)
		l.due[kind.Name] = l.clock.Now().Add(time.Second)
	case result.RequeueAfter > 0:
		l.due[kind.Name] = l.clock.Now().Add(result.RequeueAfter)
	default:
		delete(l.due, kind.Name)
	}
	l.check()
}

//nolint:revive // the error is the reconciler's result, and crashed is what became of all of it
func (o *operator) pass(l *life, kind order.Kind, name types.NamespacedName) (result reconcile.Result, err error, crashed bool) {
	defer func() {
		if thrown := recover(); thrown != nil {
			if _, ok := thrown.(operatorStopped); !ok {
				panic(thrown)
			}
			crashed = true
		}
	}()
	request := mcreconcile.Request{Request: reconcile.Request{NamespacedName: name}}
	result, err = o.bases[kind.Name].Reconcile(log.IntoContext(l.ctx, logr.Discard()), request, steps[kind.Name])
	return result, err, l.interrupter.stopped()
}

// releasedKinds are the kinds that an API server with K-ORC v2.6.0 and ESO serves.
type releasedKinds struct{}

// Serves implements order.Served.
func (releasedKinds) Serves(gvk schema.GroupVersionKind) bool { return gvk != korcapi.GroupVersionKind }

// WhenServed implements order.LateStarter.
func (releasedKinds) WhenServed(schema.GroupVersionKind, func() error) {}
