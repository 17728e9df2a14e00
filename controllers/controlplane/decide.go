package controlplane

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/korc"
)

// observation is what a pass found. The decisions below are made of it and of nothing else.
type observation struct {
	// authURL is where Keystone is, empty when this cluster cannot reach it. externalURL is the same
	// for a Keystone of somebody else's, and empty for a managed one.
	authURL, externalURL string
	// missing are the kinds of other projects that are not served.
	missing []dependencies.Kind
	// store is the reason of SecretStoreReady, and storeWhy its message.
	store, storeWhy string
	storeErr        error

	// password and bundle say in words what is missing of what the admin's cloud is made of.
	password, bundle string
	// lost tells that the password or the bundle is missing and so is the cloud that was made of it.
	lost bool
	// cloudErr is why the admin's cloud could not be read or written.
	cloudErr error
	// login is the last login with the cloud.
	login login
	// imports are K-ORC's, of the admin's domain and of the admin.
	imports []imported
}

// login is how the last login as the administrator ended.
type login struct {
	// asked is false until the operator has logged in, or tried to, since it started.
	asked bool
	class keystone.Class
	// answered tells whether Keystone, or what stands at its address, sent an answer.
	answered bool
	message  string
}

// imported is one of K-ORC's imports.
type imported struct {
	// what names it in a sentence.
	what  string
	state order.ChildState
	// mismatch says that K-ORC imported something else than the ControlPlane names today.
	mismatch string
	err      error
}

// decideDependencies is the condition DependenciesReady.
func decideDependencies(o observation) *order.Outcome {
	if len(o.missing) == 0 {
		return order.Done(v1alpha1.ReasonKindsServed, "the API server serves all kinds of K-ORC and External Secrets Operator that orders need")
	}
	return order.Wait(v1alpha1.ReasonKindsMissing, 0, "%s. The operator goes on by itself once they are served", dependencies.Describe(o.missing))
}

// decideStore is the condition SecretStoreReady.
func decideStore(o observation) *order.Outcome {
	switch {
	case o.storeErr != nil:
		return order.Fail(v1alpha1.ReasonControlPlaneError, o.storeErr)
	case o.store == v1alpha1.ReasonSecretStoreValid:
		return order.Done(o.store, "the store takes pushes")
	}
	return order.Wait(o.store, 0, "%s", o.storeWhy)
}

// decideReachable is the condition KeystoneReachable: whether Keystone answered when it was last
// asked. A refusal is an answer. What presents a wrong certificate may be anybody, so it is none.
func decideReachable(o observation) *order.Outcome {
	switch {
	case !o.login.asked:
		return &order.Outcome{
			Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonWaitingForAdminCredential,
			Message: "Keystone is asked once there is something to log in with",
		}
	case o.login.class == keystone.TLSVerificationFailed:
		return order.Wait(v1alpha1.ReasonTLSVerificationFailed, order.WaitShort, "Keystone at %s: %s", o.authURL, o.login.message)
	case o.login.class == keystone.OK, o.login.answered && refuses(o.login.class):
		return order.Done(v1alpha1.ReasonKeystoneAnswers, "Keystone at %s answers", o.authURL)
	}
	return order.Wait(v1alpha1.ReasonEndpointUnreachable, order.WaitShort,
		"Keystone at %s gives no usable answer: %s; the operator asks again by itself", o.authURL, o.login.message)
}

// refusals are the answers that take AdminCredentialReady away, with its reason then and with what to
// do. Everything else that goes wrong is no verdict on the credential: a blip does not stop the house.
var refusals = map[keystone.Class]struct{ reason, advice string }{
	keystone.AuthenticationFailed: {v1alpha1.ReasonAuthenticationFailed,
		"correct the password in the Secret of spec.korc.adminCredential.passwordSecretRef, or the user, project and domain beside it"},
	keystone.Forbidden: {v1alpha1.ReasonAuthenticationFailed,
		"look in Keystone whether the user is locked or its password expired, and at spec.korc.adminCredential"},
	keystone.TLSVerificationFailed: {v1alpha1.ReasonTLSVerificationFailed,
		"name a Secret whose key ca.crt verifies the certificate in caBundleSecretRef (spec.services.keystone.external in mode External, else spec.services.keystone), or correct the URL"},
	keystone.CatalogEndpointMismatch: {v1alpha1.ReasonCatalogEndpointMismatch,
		"correct spec.region or spec.services.keystone.external.endpointType, or Keystone's catalog"},
	keystone.InvalidRequest: {v1alpha1.ReasonControlPlaneError,
		"correct spec.services.keystone and spec.korc.adminCredential"},
}

func refuses(class keystone.Class) bool {
	_, ok := refusals[class]
	return ok
}

// decideAdmin is the condition AdminCredentialReady. held tells whether it is True now: then only a
// definite refusal, or a ControlPlane that nobody can log in with any more, takes it away. As long as
// the cloud that is there logs in, orders go on, even when the Secret it was made of is gone.
func decideAdmin(held bool, o observation) *order.Outcome {
	if held && o.authURL != "" && !o.lost && !order.IsForeign(o.cloudErr) && !refuses(o.login.class) {
		return accepted(o)
	}
	for _, row := range []struct {
		applies bool
		outcome func() *order.Outcome
	}{
		{o.authURL == "", func() *order.Outcome {
			return order.Wait(v1alpha1.ReasonKeystoneNotPublished, 0,
				"Keystone is on another cluster and not published; set spec.services.keystone.publicEndpoint or gateway.hostname")
		}},
		{o.password != "", func() *order.Outcome {
			return order.Wait(v1alpha1.ReasonWaitingForAdminPassword, order.WaitShort, "%s", o.password)
		}},
		{o.bundle != "", func() *order.Outcome {
			return order.Wait(v1alpha1.ReasonWaitingForCABundle, order.WaitShort, "%s", o.bundle)
		}},
		{o.cloudErr != nil, func() *order.Outcome { return failed(o.cloudErr) }},
		{o.login.class != keystone.OK, o.notLoggedIn},
		{true, o.notImported},
	} {
		if row.applies {
			if outcome := row.outcome(); outcome != nil {
				return outcome
			}
		}
	}
	return accepted(o)
}

// notLoggedIn is the outcome of a login that did not succeed, nil when none was tried.
func (o observation) notLoggedIn() *order.Outcome {
	if !o.login.asked {
		return nil
	}
	if refusal, ok := refusals[o.login.class]; ok {
		return order.Wait(refusal.reason, order.WaitShort, "Keystone at %s: %s; %s", o.authURL, o.login.message, refusal.advice)
	}
	return order.Wait(v1alpha1.ReasonEndpointUnreachable, order.WaitShort,
		"Keystone at %s gives no usable answer: %s; check spec.services.keystone and the way there, the operator asks again by itself", o.authURL, o.login.message)
}

// notImported is the outcome for the first import that is not Available, nil when all are.
func (o observation) notImported() *order.Outcome {
	if missing := o.importKindsMissing(); len(missing) > 0 {
		return order.Wait(v1alpha1.ReasonWaitingForKORC, order.WaitShort, "%s", dependencies.Describe(missing))
	}
	for _, i := range o.imports {
		switch {
		case i.err != nil:
			return failed(i.err)
		case i.mismatch != "":
			return order.Wait(v1alpha1.ReasonAdminImportFailed, order.WaitShort, "%s", i.mismatch)
		case i.state.UnlatchError == nil && i.state.Progress == korc.Terminal:
			return order.Wait(v1alpha1.ReasonAdminImportFailed, order.WaitShort,
				"K-ORC gave up on %s: %s: %s", i.what, i.state.Reason, i.state.Message)
		case i.state.UnlatchError != nil || i.state.Progress != korc.Available:
			return order.WaitOnKORC(o.externalURL, v1alpha1.ReasonWaitingForKORC, i.waits(), i.state)
		}
	}
	return nil
}

// failed is the outcome of a read or write that failed. A foreign object stays foreign until somebody
// does something about it, which is no error of this pass.
func failed(err error) *order.Outcome {
	if order.IsForeign(err) {
		return order.Wait(v1alpha1.ReasonControlPlaneError, order.WaitShort, "%s", err.Error())
	}
	return order.Fail(v1alpha1.ReasonControlPlaneError, err)
}

func (o observation) importKindsMissing() []dependencies.Kind {
	return slices.DeleteFunc(slices.Clone(o.missing), func(kind dependencies.Kind) bool {
		return kind.GroupVersionKind != domainKind && kind.GroupVersionKind != userKind
	})
}

func (i imported) waits() string {
	if i.state.Message == "" {
		return fmt.Sprintf("K-ORC has not looked at %s yet; is it running?", i.what)
	}
	return fmt.Sprintf("K-ORC has not imported %s yet", i.what)
}

// accepted is True, and names what is wrong beside the credential: what the next change of the
// password, or the next order, would stumble over.
func accepted(o observation) *order.Outcome {
	concerns := []string{o.password, o.bundle}
	if o.cloudErr != nil {
		concerns = append(concerns, o.cloudErr.Error())
	}
	if outcome := o.notImported(); outcome != nil {
		concerns = append(concerns, outcome.Message)
	}
	concerns = slices.DeleteFunc(concerns, func(concern string) bool { return concern == "" })
	message := fmt.Sprintf("Keystone at %s accepts the administrator", o.authURL)
	if len(concerns) > 0 {
		message = fmt.Sprintf("Keystone at %s accepted the administrator, and orders go on with that. But: %s", o.authURL, strings.Join(concerns, "; "))
	}
	outcome := order.Done(v1alpha1.ReasonAdminCredentialAccepted, "%s", message)
	if len(concerns) > 0 {
		outcome.After = order.WaitShort
		outcome.Err = o.cloudErr
	}
	return outcome
}
