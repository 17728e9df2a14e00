package dependencies

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fakeDiscovery serves the kinds it holds; an API version in broken gives no answer.
type fakeDiscovery struct {
	served []schema.GroupVersionKind
	broken map[string]bool
}

func (f *fakeDiscovery) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	if f.broken[version] {
		return nil, errors.New("the API server is busy")
	}
	list := &metav1.APIResourceList{GroupVersion: version}
	for _, gvk := range f.served {
		if gvk.GroupVersion().String() == version {
			list.APIResources = append(list.APIResources, metav1.APIResource{Kind: gvk.Kind})
		}
	}
	if len(list.APIResources) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	return list, nil
}

func (f *fakeDiscovery) remove(gvk schema.GroupVersionKind) {
	f.served = slices.DeleteFunc(f.served, func(other schema.GroupVersionKind) bool { return other == gvk })
}

func everything() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, kind := range Kinds {
		all = append(all, kind.GroupVersionKind)
	}
	return all
}

func TestTracker_starts_a_watch_once_each_time_a_kind_appears(t *testing.T) {
	var (
		ctx       = t.Context()
		domain    = Kinds[0].GroupVersionKind
		discovery = &fakeDiscovery{}
		tracker   = NewTracker(discovery, logr.Discard())
		started   int
		changes   int
		forgotten []schema.GroupVersionKind
		broken    error
	)
	refresh := func() {
		t.Helper()
		if err := tracker.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Fatalf("%s: %d, want %d", what, got, want)
		}
	}
	tracker.WhenServed(domain, func() error {
		if broken == nil {
			started++
		}
		return broken
	})
	tracker.OnChange(func(context.Context) { changes++ })

	discovery.served = everything()
	refresh()
	expect("starts before the manager runs", started, 0)
	expect("missing kinds", len(tracker.Missing()), 0)

	tracker.begin(func(gvk schema.GroupVersionKind) { forgotten = append(forgotten, gvk) })
	refresh()
	refresh()
	expect("starts once it runs", started, 1)
	expect("changes without one", changes, 0)

	discovery.remove(domain)
	refresh()
	expect("changes after the kind went", changes, 1)
	expect("forgotten kinds", len(forgotten), 1)
	if tracker.Serves(domain) || len(tracker.Missing()) != 1 || forgotten[0] != domain {
		t.Fatalf("Domain is gone, but missing is %v, forgotten %v", tracker.Missing(), forgotten)
	}

	discovery.served, broken = everything(), errors.New("not now")
	refresh()
	expect("starts that failed", started, 1)
	broken = nil
	refresh()
	refresh()
	expect("starts after the kind is back", started, 2)
	expect("changes after the kind is back", changes, 2)

	late := 0
	tracker.WhenServed(domain, func() error { late++; return nil })
	expect("starts of who comes when the kind is served", late, 1)
}

func TestTracker_takes_no_kind_away_without_an_answer(t *testing.T) {
	discovery := &fakeDiscovery{served: everything()}
	tracker := NewTracker(discovery, logr.Discard())
	if err := tracker.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	discovery.broken = map[string]bool{Kinds[0].GroupVersion().String(): true}
	if err := tracker.Refresh(t.Context()); err == nil {
		t.Error("the failure is not told")
	}
	if missing := tracker.Missing(); len(missing) != 0 {
		t.Errorf("missing: %v", missing)
	}
}

func TestTracker_does_not_miss_an_optional_kind(t *testing.T) {
	discovery := &fakeDiscovery{served: everything()}
	optional := Kinds[5].GroupVersionKind
	discovery.remove(optional)
	tracker := NewTracker(discovery, logr.Discard())
	if err := tracker.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if optional.Kind != "RoleAssignment" || tracker.Serves(optional) || len(tracker.Missing()) != 0 {
		t.Errorf("%s served: %v, missing: %v", optional.Kind, tracker.Serves(optional), tracker.Missing())
	}
}

func TestTracker_serves_what_is_nobody_elses(t *testing.T) {
	tracker := NewTracker(&fakeDiscovery{}, logr.Discard())
	if !tracker.Serves(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
		t.Error("Kubernetes' own kinds are always there")
	}
}

func TestConcerns(t *testing.T) {
	for name, want := range map[string]bool{
		"domains.openstack.k-orc.cloud":    true,
		"secretstores.external-secrets.io": true,
		"keystoneusers.c5c3.io":            false,
		"widgets.my.external-secrets.io":   false,
		"external-secrets.io":              false,
	} {
		if got := concerns(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
