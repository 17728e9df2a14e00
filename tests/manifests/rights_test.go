package manifests

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	viewerRole = "c5c3-operator-order-viewer"
	editorRole = "c5c3-operator-order-editor"
	ownerRole  = "c5c3-operator-controlplane-admin"
)

var (
	orders = []string{"keystoneapplicationcredentials", "keystoneprojects", "keystoneroleassignments", "keystoneusers"}
	reads  = []string{"get", "list", "watch"}
	writes = []string{"create", "update", "patch", "delete", "deletecollection"}
)

// TestPeople asks the API server what somebody may do who has one of the roles for people, in the
// namespace of the binding: what docs/security.md says, and nothing else.
func TestPeople(t *testing.T) {
	may := func(verbs []string, resources ...string) map[string][]string {
		rights := map[string][]string{}
		for _, resource := range resources {
			rights[resource] = verbs
		}
		return rights
	}
	all := slices.Concat(reads, writes)
	statuses := []string{"controlplanes/status"}
	for _, resource := range orders {
		statuses = append(statuses, resource+"/status")
	}
	for role, allowed := range map[string][]map[string][]string{
		viewerRole: {may(reads, orders...), may([]string{"get"}, statuses[1:]...)},
		editorRole: {may(all, orders...), may([]string{"get"}, statuses[1:]...)},
		ownerRole:  {may(all, "controlplanes"), may([]string{"get"}, statuses[0])},
	} {
		t.Run(role, func(t *testing.T) {
			person := "somebody-with-" + role
			bind(t, role, person)
			for _, resource := range slices.Concat([]string{"controlplanes"}, orders, statuses) {
				for _, verb := range all {
					want := slices.ContainsFunc(allowed, func(rights map[string][]string) bool { return slices.Contains(rights[resource], verb) })
					if got := mayDo(t, person, tenantNamespace, verb, "c5c3.io", resource); got != want {
						t.Errorf("%s %s: allowed %v, and it should be %v", verb, resource, got, want)
					}
				}
			}
			for _, verb := range all {
				for _, resource := range []string{"secrets", "pods", "serviceaccounts"} {
					if mayDo(t, person, tenantNamespace, verb, "", resource) {
						t.Errorf("%s %s is allowed", verb, resource)
					}
				}
			}
			if mayDo(t, person, operatorNamespace, "get", "c5c3.io", orders[0]) {
				t.Error("a right in one namespace is one in another")
			}
		})
	}
}

// bind gives a person a role in the tenant's namespace, and returns once the API server knows.
func bind(t *testing.T, role, person string) {
	t.Helper()
	err := api.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: person, Namespace: tenantNamespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: person}},
	})
	if err != nil {
		t.Fatal(err)
	}
	known := func() bool {
		return mayDo(t, person, tenantNamespace, "get", "c5c3.io", orders[0]) || mayDo(t, person, tenantNamespace, "get", "c5c3.io", "controlplanes")
	}
	for deadline := time.Now().Add(30 * time.Second); !known(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s may do nothing", person)
		}
	}
}

func mayDo(t *testing.T, person, namespace, verb, group, resource string) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: person,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: group, Version: "*", Resource: resource, Subresource: subresource,
		},
	}}
	if err := api.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// TestPeople_by_default is about Kubernetes' own roles: its controller manager, which no envtest has, adds
// to view, edit and admin what carries these labels.
func TestPeople_by_default(t *testing.T) {
	const prefix = "rbac.authorization.k8s.io/aggregate-to-"
	for role, want := range map[string][]string{viewerRole: {"view"}, editorRole: {"admin", "edit"}, ownerRole: nil, operatorName: nil} {
		var got []string
		for label, value := range object[rbacv1.ClusterRole](t, "ClusterRole", role).Labels {
			if aggregate, ok := strings.CutPrefix(label, prefix); ok && value == "true" {
				got = append(got, aggregate)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s is added to %v, and not to %v", role, got, want)
		}
	}
}

// TestRightsAreDocumented holds the table of docs/security.md against the operator's roles: each right is
// in it, and it promises none that the operator lacks. What each is for is said by hand.
func TestRightsAreDocumented(t *testing.T) {
	rightsAreDocumented(t, "../../docs/security.md", map[string][]rbacv1.PolicyRule{
		"everywhere": object[rbacv1.ClusterRole](t, "ClusterRole", operatorName).Rules,
		"its own":    object[rbacv1.Role](t, "Role", "c5c3-operator-leader-election").Rules,
	})
}

// rightsAreDocumented compares a page's table of rights with rules by where they hold.
func rightsAreDocumented(t *testing.T, page string, granted map[string][]rbacv1.PolicyRule) {
	t.Helper()
	have := map[string][]string{}
	for where, rules := range granted {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					have[where+" "+qualified(resource, group)] = append(have[where+" "+qualified(resource, group)], rule.Verbs...)
				}
			}
		}
	}
	documented := map[string][]string{}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.HasPrefix(strings.TrimSpace(cells[0]), "`") {
			continue
		}
		where, why := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[3])
		if why == "" {
			t.Errorf("no reason is given: %s", line)
		}
		for resource := range strings.SplitSeq(cells[0], ",") {
			key := where + " " + strings.Trim(resource, " `")
			for verb := range strings.SplitSeq(cells[2], ",") {
				documented[key] = append(documented[key], strings.TrimSpace(verb))
			}
		}
	}
	for key, verbs := range have {
		slices.Sort(verbs)
		if slices.Sort(documented[key]); !slices.Equal(verbs, documented[key]) {
			t.Errorf("%s: the roles grant %v, and %s says %v", key, verbs, page, documented[key])
		}
		delete(documented, key)
	}
	for key := range documented {
		t.Errorf("%s: %s has it, and no role grants it", key, page)
	}
}

func qualified(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}
