package controlplane

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/controllers/order/ordertest"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// converged is an observation in which nothing is wrong; each case changes one thing.
func converged(change func(*observation)) observation {
	o := observation{
		authURL: "http://keystone.test:5000/v3",
		store:   v1alpha1.ReasonSecretStoreValid,
		login:   login{asked: true, class: keystone.OK, answered: true},
		imports: []imported{
			{what: "the domain", state: order.ChildState{Progress: korc.Available}},
			{what: "the administrator", state: order.ChildState{Progress: korc.Available}},
		},
	}
	if change != nil {
		change(&o)
	}
	return o
}

func refused(class keystone.Class) func(*observation) {
	return func(o *observation) {
		o.login = login{asked: true, class: class, answered: class != keystone.TLSVerificationFailed, message: "no"}
	}
}

func unreachable(o *observation) {
	o.login = login{asked: true, class: keystone.EndpointUnreachable, message: "no answer within 15s"}
}

func TestAdminCredentialReady(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	missing := func(kind string) func(*observation) {
		return func(o *observation) {
			o.imports = nil
			for _, k := range dependencies.Kinds {
				if k.Kind == kind {
					o.missing = append(o.missing, k)
				}
			}
		}
	}
	domain := func(state order.ChildState) func(*observation) {
		return func(o *observation) { o.imports = []imported{{what: "the domain", state: state}} }
	}
	for name, c := range map[string]struct {
		change func(*observation)
		// fresh is what is reported when the condition was not True before, held when it was.
		fresh, held       metav1.ConditionStatus
		freshWhy, heldWhy string
	}{
		"all_is_well": {nil, yes, yes, v1alpha1.ReasonAdminCredentialAccepted, v1alpha1.ReasonAdminCredentialAccepted},

		// Definite refusals take it away.
		"a_401_is_a_refusal":                   {refused(keystone.AuthenticationFailed), no, no, v1alpha1.ReasonAuthenticationFailed, v1alpha1.ReasonAuthenticationFailed},
		"a_403_is_a_refusal":                   {refused(keystone.Forbidden), no, no, v1alpha1.ReasonAuthenticationFailed, v1alpha1.ReasonAuthenticationFailed},
		"a_wrong_catalog_is_a_refusal":         {refused(keystone.CatalogEndpointMismatch), no, no, v1alpha1.ReasonCatalogEndpointMismatch, v1alpha1.ReasonCatalogEndpointMismatch},
		"a_wrong_certificate_is_a_refusal":     {refused(keystone.TLSVerificationFailed), no, no, v1alpha1.ReasonTLSVerificationFailed, v1alpha1.ReasonTLSVerificationFailed},
		"a_cloud_that_makes_no_sense_is_wrong": {refused(keystone.InvalidRequest), no, no, v1alpha1.ReasonControlPlaneError, v1alpha1.ReasonControlPlaneError},

		// A blip does not.
		"unreachable_keeps_it":      {unreachable, no, yes, v1alpha1.ReasonEndpointUnreachable, v1alpha1.ReasonAdminCredentialAccepted},
		"a_404_on_login_keeps_it":   {refused(keystone.NotFound), no, yes, v1alpha1.ReasonEndpointUnreachable, v1alpha1.ReasonAdminCredentialAccepted},
		"not_asked_yet_keeps_it":    {func(o *observation) { o.login = login{} }, yes, yes, v1alpha1.ReasonAdminCredentialAccepted, v1alpha1.ReasonAdminCredentialAccepted},
		"an_unreadable_Secret_does": {func(o *observation) { o.cloudErr = errors.New("etcd is slow") }, no, yes, v1alpha1.ReasonControlPlaneError, v1alpha1.ReasonAdminCredentialAccepted},
		"K-ORC_gone_keeps_it":       {missing("Domain"), no, yes, v1alpha1.ReasonWaitingForKORC, v1alpha1.ReasonAdminCredentialAccepted},
		"K-ORC_waiting_keeps_it":    {domain(order.ChildState{Progress: korc.Pending}), no, yes, v1alpha1.ReasonWaitingForKORC, v1alpha1.ReasonAdminCredentialAccepted},
		"K-ORC_giving_up_keeps_it":  {domain(order.ChildState{Progress: korc.Terminal, Reason: "InvalidConfiguration"}), no, yes, v1alpha1.ReasonAdminImportFailed, v1alpha1.ReasonAdminCredentialAccepted},
		"an_unlatch_that_fails_too": {domain(order.ChildState{UnlatchError: errors.New("forbidden")}), no, yes, v1alpha1.ReasonTransportErrorRetryFailed, v1alpha1.ReasonAdminCredentialAccepted},
		"another_domain_imported":   {func(o *observation) { o.imports[0].mismatch = "it was Default" }, no, yes, v1alpha1.ReasonAdminImportFailed, v1alpha1.ReasonAdminCredentialAccepted},

		// What is missing for the next document.
		"the_cloud_outlives_the_password_Secret": {func(o *observation) { o.password = "Secret a/b does not exist" }, no, yes, v1alpha1.ReasonWaitingForAdminPassword, v1alpha1.ReasonAdminCredentialAccepted},
		"the_cloud_outlives_the_CA_Secret":       {func(o *observation) { o.bundle = "Secret a/b does not exist" }, no, yes, v1alpha1.ReasonWaitingForCABundle, v1alpha1.ReasonAdminCredentialAccepted},
		"neither_CA_Secret_nor_a_bundle_in_the_cloud": {func(o *observation) { o.bundle, o.lost = "Secret a/b does not exist", true },
			no, no, v1alpha1.ReasonWaitingForCABundle, v1alpha1.ReasonWaitingForCABundle},
		"neither_password_nor_cloud": {func(o *observation) { o.password, o.lost = "Secret a/b does not exist", true },
			no, no, v1alpha1.ReasonWaitingForAdminPassword, v1alpha1.ReasonWaitingForAdminPassword},
		"a_refused_cloud_and_no_password_waits_for_it": {func(o *observation) {
			refused(keystone.AuthenticationFailed)(o)
			o.password = "Secret a/b does not exist"
		}, no, no, v1alpha1.ReasonWaitingForAdminPassword, v1alpha1.ReasonWaitingForAdminPassword},
		"a_foreign_Secret_is_not_used": {func(o *observation) { o.cloudErr = &order.ForeignError{Kind: "Secret", Namespace: "a", Name: "b"} },
			no, no, v1alpha1.ReasonControlPlaneError, v1alpha1.ReasonControlPlaneError},
		"a_Keystone_that_is_published_nowhere": {func(o *observation) { o.authURL = "" }, no, no, v1alpha1.ReasonKeystoneNotPublished, v1alpha1.ReasonKeystoneNotPublished},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []struct {
				held   bool
				status metav1.ConditionStatus
				reason string
			}{{false, c.fresh, c.freshWhy}, {true, c.held, c.heldWhy}} {
				got := decideAdmin(before.held, converged(c.change))
				if got.Status != before.status || got.Reason != before.reason {
					t.Errorf("held=%v: got %s/%s (%s), want %s/%s", before.held, got.Status, got.Reason, got.Message, before.status, before.reason)
				}
				if got.Status != yes && got.Message == "" {
					t.Errorf("held=%v: %s does not say what is wrong", before.held, got.Reason)
				}
			}
		})
	}
}

func TestAdminCredentialReady_shows_an_external_Keystones_cause_in_place_of_its_wait_on_KORC(t *testing.T) {
	for cause, message := range ordertest.Causes {
		struggling := converged(func(o *observation) {
			o.imports = []imported{{what: "the domain", state: order.ChildState{Progress: korc.Pending, Reason: "TransientError", Message: message}}}
		})
		if got := decideAdmin(false, struggling); got.Reason != v1alpha1.ReasonWaitingForKORC || !strings.Contains(got.Message, message) {
			t.Errorf("a managed Keystone's %s reads %s: %s", cause, got.Reason, got.Message)
		}
		struggling.externalURL = struggling.authURL
		if got := decideAdmin(false, struggling); got.Reason != cause || got.Message != "external Keystone at "+struggling.authURL+": "+message {
			t.Errorf("an external Keystone's %s reads %s: %s", cause, got.Reason, got.Message)
		}
		if got := decideAdmin(true, struggling); got.Status != metav1.ConditionTrue || !strings.Contains(got.Message, message) {
			t.Errorf("%s at K-ORC stops the house, or nobody is told: %s/%s: %s", cause, got.Status, got.Reason, got.Message)
		}
	}
}

func TestAdminCredentialReady_says_what_is_wrong_beside_it(t *testing.T) {
	got := decideAdmin(true, converged(func(o *observation) { o.password = "Secret openstack/keystone-admin does not exist" }))
	if !strings.Contains(got.Message, "Secret openstack/keystone-admin does not exist") || got.After == 0 {
		t.Errorf("a password Secret that is gone is neither told nor looked for again: %+v", got)
	}
}

func TestKeystoneReachable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation)
		status metav1.ConditionStatus
		reason string
	}{
		"a_login_is_an_answer":               {nil, metav1.ConditionTrue, v1alpha1.ReasonKeystoneAnswers},
		"a_refusal_is_an_answer":             {refused(keystone.AuthenticationFailed), metav1.ConditionTrue, v1alpha1.ReasonKeystoneAnswers},
		"a_wrong_catalog_is_an_answer":       {refused(keystone.CatalogEndpointMismatch), metav1.ConditionTrue, v1alpha1.ReasonKeystoneAnswers},
		"a_wrong_certificate_is_anybodys":    {refused(keystone.TLSVerificationFailed), metav1.ConditionFalse, v1alpha1.ReasonTLSVerificationFailed},
		"silence_is_none":                    {unreachable, metav1.ConditionFalse, v1alpha1.ReasonEndpointUnreachable},
		"what_was_not_sent_has_no_answer":    {func(o *observation) { o.login = login{asked: true, class: keystone.InvalidRequest} }, metav1.ConditionFalse, v1alpha1.ReasonEndpointUnreachable},
		"nobody_knows_before_the_first_time": {func(o *observation) { o.login = login{} }, metav1.ConditionUnknown, v1alpha1.ReasonWaitingForAdminCredential},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decideReachable(converged(c.change)); got.Status != c.status || got.Reason != c.reason {
				t.Errorf("got %s/%s, want %s/%s", got.Status, got.Reason, c.status, c.reason)
			}
		})
	}
}

func TestDependenciesReady_names_kind_version_and_what_to_install(t *testing.T) {
	got := decideDependencies(converged(func(o *observation) {
		for _, kind := range dependencies.Kinds {
			if !kind.Optional {
				o.missing = append(o.missing, kind)
			}
		}
	}))
	if got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonKindsMissing {
		t.Fatalf("got %s/%s", got.Status, got.Reason)
	}
	for _, part := range []string{
		"Domain, User, Project, Role, ApplicationCredential (openstack.k-orc.cloud/v1alpha1)", "install K-ORC",
		"PushSecret (external-secrets.io/v1alpha1)", "SecretStore, ClusterSecretStore (external-secrets.io/v1)", "install External Secrets Operator",
	} {
		if !strings.Contains(got.Message, part) {
			t.Errorf("the message lacks %q: %s", part, got.Message)
		}
	}
	if done := decideDependencies(converged(nil)); done.Status != metav1.ConditionTrue {
		t.Errorf("nothing is missing and yet: %+v", done)
	}
}
