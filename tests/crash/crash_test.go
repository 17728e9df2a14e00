package crash

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/c5c3/c5c3-operator/controllers/order"
)

// TestOperatorStopsAfterAnyWrite plays a life for each write of the operator's and stops it after that one.
func TestOperatorStopsAfterAnyWrite(t *testing.T) {
	everyWrite(t, onAPIServer(t), stopped)
}

// TestAnyWriteOrItsAnswerIsLost plays a life for each write of the operator's and each way to lose it.
func TestAnyWriteOrItsAnswerIsLost(t *testing.T) {
	everyWrite(t, inMemory(t), answerLost, answerLostThenStopped, writeLost)
}

// everyWrite disturbs each write of a life once in each way.
func everyWrite(t *testing.T, on cluster, ways ...interruption) {
	t.Helper()
	began := time.Now()
	calm := on.life(t)
	want := calm.live()
	generation := calm.generation
	writes := calm.interrupter.count()
	t.Logf("an undisturbed life has %d writes and took %s", writes, time.Since(began).Round(time.Millisecond))

	t.Run("write", func(t *testing.T) {
		for _, how := range ways {
			for k := 1; k <= writes; k++ {
				t.Run(fmt.Sprintf("%03d/%s", k, how), func(t *testing.T) {
					t.Parallel()
					l := on.life(t)
					l.interrupter.how, l.interrupter.at = how, k
					got := l.live()
					l.same(want, got)
					if l.generation != generation {
						l.fail("it ends with generation %d, undisturbed with %d", l.generation, generation)
					}
					if stops := how == stopped || how == answerLostThenStopped && k < writes; stops != (l.stops > 0) {
						l.fail("the operator stopped %d times", l.stops)
					}
				})
			}
		}
	})
	for _, how := range ways {
		t.Logf("%s: %d of %d k's tried in %s", how, writes, writes, time.Since(began).Round(time.Second))
	}
}

// same compares the state before the teardown with the undisturbed one.
func (l *life) same(want, got []string) {
	l.tb.Helper()
	for _, line := range got {
		if !slices.Contains(want, line) {
			l.fail("before the teardown there is %q, and undisturbed there is not:\n%v", line, want)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			l.fail("before the teardown there is no %q, and undisturbed there is", line)
		}
	}
}

// TestCacheLags plays lives whose operator's cache lacks the last versions of everything, or of one kind.
func TestCacheLags(t *testing.T) {
	on := inMemory(t)
	want := on.life(t).live()
	kinds := []string{"", "Secret", "PushSecret", "User", "Project", "Role", "ApplicationCredential"}
	for _, kind := range order.Kinds {
		kinds = append(kinds, kind.Name)
	}
	for _, kind := range kinds {
		for _, n := range []int{1, 3, 10} {
			t.Run(fmt.Sprintf("by_%d_of_%s", n, kind), func(t *testing.T) {
				t.Parallel()
				l := on.life(t)
				l.lag = func(gvk schema.GroupVersionKind) int {
					if kind == "" || gvk.Kind == kind {
						return n
					}
					return 0
				}
				l.same(want, l.live())
			})
		}
	}
	t.Logf("a cache that lags: %d lives", 3*len(kinds))
}
