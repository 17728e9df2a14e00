package order

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

const claimCollision = v1alpha1.ReasonServiceAccountCollision

func userClaim(name, child string) Claim {
	return Claim{Name: name, Noun: "user", Domain: "cp-domain-default", Child: child, Objects: &orcv1alpha1.UserList{}, Collision: claimCollision}
}

// claimant is a pass of an order whose children live in namespace openstack.
func claimant(base *Base, c client.Client) *Pass {
	order := &v1alpha1.KeystoneUser{}
	order.Namespace, order.Name = "tenant-a", "workflow"
	order.Spec.ControlPlaneRef = v1alpha1.ControlPlaneRefSpec{Name: "cp", Namespace: "openstack"}
	return &Pass{Base: base, Kind: UserKind, Key: KeyOf("", order), Order: order, Management: c, Live: c}
}

func korcScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := testScheme(t)
	if err := orcv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func managedUser(name, userName, domain string) *orcv1alpha1.User {
	user := &orcv1alpha1.User{}
	user.Namespace, user.Name = "openstack", name
	user.Spec.Resource = &orcv1alpha1.UserResourceSpec{}
	if userName != "" {
		user.Spec.Resource.Name = ptr.To(orcv1alpha1.OpenStackName(userName))
	}
	if domain != "" {
		user.Spec.Resource.DomainRef = ptr.To(orcv1alpha1.KubernetesNameRef(domain))
	}
	return user
}

func TestClaim(t *testing.T) {
	imported := managedUser("probe", "robot", "cp-domain-default")
	imported.Spec.Resource = nil
	elsewhere := managedUser("theirs", "robot", "cp-domain-default")
	elsewhere.Namespace = "another-plane"
	project := &orcv1alpha1.Project{}
	project.Namespace, project.Name = "openstack", "theirs"
	project.Spec.Resource = &orcv1alpha1.ProjectResourceSpec{Name: ptr.To(orcv1alpha1.KeystoneName("robot")), DomainRef: ptr.To(orcv1alpha1.KubernetesNameRef("cp-domain-default"))}

	for name, c := range map[string]struct {
		there   client.Object
		refused bool
	}{
		"nobody_has_it":                              {nil, false},
		"another_has_it":                             {managedUser("theirs", "robot", "cp-domain-default"), true},
		"another_has_it_in_another_spelling":         {managedUser("theirs", "Röbot", "cp-domain-default"), true},
		"another_has_it_by_its_own_name":             {managedUser("robot", "", "cp-domain-default"), true},
		"another_has_a_longer_one":                   {managedUser("theirs", "robot2", "cp-domain-default"), false},
		"another_has_it_in_another_domain":           {managedUser("theirs", "robot", "other-domain"), false},
		"another_has_it_in_another_planes_namespace": {elsewhere, false},
		"the_object_that_is_to_take_it":              {managedUser("mine", "robot", "cp-domain-default"), false},
		"an_import":                                  {imported, false},
		"a_project":                                  {project, false},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(korcScheme(t))
			if c.there != nil {
				builder = builder.WithObjects(c.there)
			}
			taken := false
			outcome := claimant(&Base{}, builder.Build()).Claim(t.Context(), userClaim("robot", "mine"), func() *Outcome { taken = true; return nil })
			if refused := outcome != nil; refused != c.refused || taken == c.refused {
				t.Fatalf("the outcome is %+v, taken %t", outcome, taken)
			}
			if c.refused && (outcome.Reason != claimCollision || strings.Contains(outcome.Message, "theirs")) {
				t.Errorf("refused with %+v", outcome)
			}
		})
	}
	t.Run("what_take_says_is_the_outcome", func(t *testing.T) {
		p := claimant(&Base{}, fake.NewClientBuilder().WithScheme(korcScheme(t)).Build())
		want := Wait("Some", 0, "reason")
		if got := p.Claim(t.Context(), userClaim("robot", "mine"), func() *Outcome { return want }); got != want {
			t.Errorf("got %+v", got)
		}
	})
}

// TestClaim_goes_to_one_of_two_that_ask_at_once starts the second claim while the first one is between
// its question and its object.
func TestClaim_goes_to_one_of_two_that_ask_at_once(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(korcScheme(t)).Build()
	base := &Base{}
	second := make(chan *Outcome, 1)
	create := func(name string) *Outcome {
		if err := c.Create(t.Context(), managedUser(name, "robot", "cp-domain-default")); err != nil {
			t.Error(err)
		}
		return nil
	}
	first := claimant(base, c).Claim(t.Context(), userClaim("robot", "first"), func() *Outcome {
		go func() {
			second <- claimant(base, c).Claim(t.Context(), userClaim("Robot", "second"), func() *Outcome { return create("second") })
		}()
		// The second one must not get through by now. Were it let through, it would, well within this.
		select {
		case outcome := <-second:
			t.Errorf("the second claim ended inside the first one: %+v", outcome)
			second <- outcome
		case <-time.After(200 * time.Millisecond):
		}
		return create("first")
	})
	if first != nil {
		t.Errorf("the first claim ended with %+v", first)
	}
	if outcome := <-second; outcome == nil || outcome.Reason != claimCollision {
		t.Errorf("the second claim ended with %+v", outcome)
	}
}

func TestMark(t *testing.T) {
	mark := func(kind Kind, key Key, uid string) string {
		order := &v1alpha1.KeystoneUser{}
		order.SetUID(types.UID(uid))
		return (&Pass{Kind: kind, Key: key, Order: order}).Mark()
	}
	key := Key{Namespace: "tenant-a", Name: "robot"}
	if got := mark(UserKind, key, "u"); got != "KeystoneUser tenant-a/robot (uid u)" {
		t.Errorf("%q", got)
	}
	edge := Key{Cluster: "edge", Namespace: "tenant-a", Name: "robot"}
	if got := mark(ProjectKind, edge, "u"); got != "KeystoneProject tenant-a/robot on cluster edge (uid u)" {
		t.Errorf("%q", got)
	}

	// The longest that admission lets through still fits K-ORC, and stays one order's own.
	long := strings.Repeat("a", 63)
	uid := strings.Repeat("0", 36)
	longest := Key{Cluster: long, Namespace: long, Name: long}
	seen := map[string]bool{}
	for _, got := range []string{
		mark(UserKind, longest, uid),
		mark(ProjectKind, longest, uid),
		mark(ProjectKind, longest, strings.Repeat("1", 36)),
		mark(ProjectKind, Key{Cluster: long[:62] + "b", Namespace: long, Name: long}, uid),
		mark(ProjectKind, Key{Cluster: long, Namespace: long[:62] + "b", Name: long}, uid),
	} {
		if len(got) > maxMarkLength || seen[got] {
			t.Errorf("%d bytes, seen before %t: %q", len(got), seen[got], got)
		}
		seen[got] = true
	}
}
