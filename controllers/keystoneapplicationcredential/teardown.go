package keystoneapplicationcredential

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// Teardown ends an order in two phases. The first ends every credential in Keystone, with the mint
// document kept, because K-ORC deletes with it. The second removes what is left.
func (reconciler) Teardown(ctx context.Context, p *order.Pass) bool {
	s := &state{Pass: p, order: p.Order.(*v1alpha1.KeystoneApplicationCredential), children: map[int64]child{}}
	if p.ControlPlane == nil {
		return s.tearDownBlind(ctx)
	}
	outcome := order.Run(s, []order.Step[*state]{
		{Name: "user and project", Do: func(s *state) *order.Outcome { return s.refreshMintDocument(ctx) }},
		{Name: "credentials", Do: func(s *state) *order.Outcome { return s.removeCredentials(ctx) }},
		{Name: "proof", Do: func(s *state) *order.Outcome { return s.proveRevocation(ctx) }},
		{Name: "secrets", Do: func(s *state) *order.Outcome { return s.removeSecrets(ctx) }},
		{Name: "rest", Do: func(s *state) *order.Outcome { return s.removeRest(ctx) }},
	})
	if outcome != nil {
		p.Report(v1alpha1.ConditionCredentialReady, outcome)
	}
	return outcome == nil
}

// refreshMintDocument rebuilds the document while the user's and the project's orders live, so that a
// password that changes meanwhile strands nothing. Where they are gone the document stays as it is.
func (s *state) refreshMintDocument(ctx context.Context) *order.Outcome {
	user, project := &v1alpha1.KeystoneUser{}, &v1alpha1.KeystoneProject{}
	for object, name := range map[client.Object]string{user: s.order.Spec.UserRef.Name, project: s.order.Spec.ProjectRef.Name} {
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.Key.Namespace, Name: name}, object)
		if err != nil && !apierrors.IsNotFound(err) {
			return order.Fail(v1alpha1.ReasonCredentialError, err)
		}
	}
	s.user, s.project = user, project
	if user.Name == "" || project.Name == "" {
		return nil
	}
	exists := &corev1.Secret{ObjectMeta: s.ChildMeta(mintCloudChild)}
	if found, err := s.Read(ctx, exists); err != nil || !found {
		// Nothing was minted, or the second phase has begun.
		return nil
	}
	if outcome := s.writeMintDocument(ctx); outcome != nil {
		s.Log().Info("the document that credentials are deleted with could not be rebuilt", "cause", outcome.Message)
	}
	return nil
}

// removeCredentials deletes the backup and every K-ORC ApplicationCredential, and waits until none is
// listed. The Secrets of the generations stay: they are the record that Keystone's word is due.
func (s *state) removeCredentials(ctx context.Context) *order.Outcome {
	if _, err := s.Sweep(ctx, &externalsecrets.PushSecretList{}); err != nil {
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	}
	if err := s.Delete(ctx, s.sourceSecret()); err != nil {
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	}
	left, err := s.Sweep(ctx, &orcv1alpha1.ApplicationCredentialList{})
	if err != nil {
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	}
	if left > 0 {
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
			"K-ORC is deleting %d application credential(s) in Keystone%s", left, s.korcWords(ctx))
	}
	return nil
}

// korcWords repeats what K-ORC says of a credential that it does not get deleted.
func (s *state) korcWords(ctx context.Context) string {
	children, err := s.Children(ctx, &orcv1alpha1.ApplicationCredentialList{})
	if err != nil {
		return ""
	}
	for _, object := range children {
		state := s.Settle(ctx, object.(*orcv1alpha1.ApplicationCredential))
		if state.Message != "" {
			return fmt.Sprintf("; it says of %s: %s", object.GetName(), state.Message)
		}
	}
	return ""
}

// proveRevocation asks Keystone whether it still holds a credential of the order's, and revokes what
// it does. K-ORC's word is not enough: it releases its finalizer when Keystone fails. An order for
// which nothing is on record never minted anything, and nobody needs to be asked.
func (s *state) proveRevocation(ctx context.Context) *order.Outcome {
	secrets, err := s.generationSecrets(ctx)
	if err != nil {
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	}
	if len(secrets) == 0 && s.order.Status.CredentialID == "" {
		return nil
	}
	gone, err := s.revokeAll(ctx)
	switch {
	case err != nil:
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
			"Keystone has not confirmed that the order's credentials are gone; the deletion goes on when it answers: %v", err)
	case !gone:
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, soon, "Keystone still lists a credential that the operator just revoked; it is asked again")
	}
	if s.order.Status.CredentialID != "" {
		s.Eventf(corev1.EventTypeNormal, order.EventCredentialRevoked, "Teardown", "Keystone confirms that no credential of this order is left")
		s.order.Status.CredentialID = ""
	}
	return nil
}

// revokeAll revokes what Keystone holds under the order's names and tells whether nothing is left.
func (s *state) revokeAll(ctx context.Context) (gone bool, err error) {
	session, err := s.Admin(ctx)
	if err != nil {
		return false, err
	}
	users, err := s.userIDs(ctx, session)
	if err != nil {
		return false, err
	}
	for _, user := range users {
		found, err := session.Proof(ctx, user, s.Child(credentialPrefix))
		if err != nil {
			return false, err
		}
		for name, credential := range found {
			if err := session.DeleteApplicationCredential(ctx, user, credential.ID); err != nil {
				return false, err
			}
			s.RevocationRepaired(
				"Keystone still held application credential %s (%s) that K-ORC had let go of; the operator revoked it", credential.ID, name)
		}
		if len(found) == 0 {
			continue
		}
		if found, err = session.Proof(ctx, user, s.Child(credentialPrefix)); err != nil || len(found) > 0 {
			return false, err
		}
	}
	return true, nil
}

// userIDs finds the Keystone user that the credentials belong to: by K-ORC's object of it, or by the
// name in the mint document. Both live in the ControlPlane's namespace (see keystoneUser). A user that
// Keystone does not have took its credentials along.
func (s *state) userIDs(ctx context.Context, session *keystone.Session) ([]string, error) {
	korcUser, err := order.KORCUser(ctx, s.Live, s.ChildNamespace(), s.UserKey(s.order.Spec.UserRef.Name))
	if err == nil && korcUser.Status.ID != nil {
		return []string{*korcUser.Status.ID}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	name, err := s.mintedUser(ctx)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = s.order.Spec.UserRef.Name
	}
	users, err := session.FindUsers(ctx, name, s.ControlPlane.Status.DomainID)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, user := range users {
		ids = append(ids, user.ID)
	}
	return ids, nil
}

// generationSecrets are the names of the Secrets that keep generations on record.
func (s *state) generationSecrets(ctx context.Context) ([]string, error) {
	secrets, err := s.Children(ctx, &corev1.SecretList{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, secret := range secrets {
		if strings.HasPrefix(secret.GetName(), s.Child(secretPrefix)) {
			names = append(names, secret.GetName())
		}
	}
	return names, nil
}

func (s *state) removeSecrets(ctx context.Context) *order.Outcome {
	left, err := s.Sweep(ctx, &corev1.SecretList{}, s.Child(mintCloudChild))
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	case left > 0:
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, soon, "the secrets of revoked credentials are being removed")
	}
	return nil
}

// removeRest is the second phase: the mint document and the Secret beside the order. It also waits
// for the backup to be purged.
func (s *state) removeRest(ctx context.Context) *order.Outcome {
	if err := s.DeleteDelivered(ctx); err != nil {
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	}
	secrets, err := s.Sweep(ctx, &corev1.SecretList{})
	if err != nil {
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	}
	pushes, err := s.Sweep(ctx, &externalsecrets.PushSecretList{})
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	case pushes > 0:
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, order.WaitShort,
			"the credentials are revoked; External Secrets Operator has yet to purge the backup (PushSecret %s/%s)", s.ChildNamespace(), s.Child(order.BackupChild))
	case secrets > 0:
		return order.Wait(v1alpha1.ReasonWaitingForRevocation, soon, "the last children are being removed")
	}
	return nil
}

// tearDownBlind deletes what is there when the ControlPlane is gone: nobody is left who could reach
// Keystone. Failures are logged and do not hold the order, and what could not be proven is listed.
func (s *state) tearDownBlind(ctx context.Context) bool {
	var unproven []string
	credentials, err := s.Children(ctx, &orcv1alpha1.ApplicationCredentialList{})
	if err != nil {
		s.Log().Error(err, "tearing down without a ControlPlane")
	}
	for _, credential := range credentials {
		unproven = append(unproven, "application credential "+credential.GetName())
	}
	if s.order.Status.CredentialID != "" && len(unproven) == 0 {
		unproven = append(unproven, "application credential "+s.order.Status.CredentialID)
	}
	for _, list := range []client.ObjectList{&externalsecrets.PushSecretList{}, &orcv1alpha1.ApplicationCredentialList{}, &corev1.SecretList{}} {
		if _, err := s.Sweep(ctx, list); err != nil {
			s.Log().Error(err, "tearing down without a ControlPlane")
		}
	}
	if err := s.DeleteDelivered(ctx); err != nil {
		s.Log().Error(err, "tearing down without a ControlPlane")
	}
	s.OrphanWarning(unproven)
	return true
}
