package keystoneuser

import (
	"context"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
)

// backupPath is the last part of the document's path in the store.
const backupPath = "credentials"

// deliver backs up and delivers the password that Keystone accepted last. While the next one is under
// way, the Secret keeps that one, and is repaired to it.
func (s *pass) deliver(ctx context.Context) *order.Outcome {
	status := &s.user.Status
	accepted := status.PasswordGeneration
	if accepted == 0 {
		return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, 0,
			"nothing is delivered before Keystone has accepted a password of the user; see UserReady")
	}
	password, err := s.SecretValue(ctx, s.passwordName(accepted), passwordKey)
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonDeliveryError, err)
	case len(password) == 0:
		return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, order.WaitShort,
			"Secret %s/%s with the accepted password is gone; the next generation replaces it", s.ChildNamespace(), s.passwordName(accepted))
	}
	delivery, outcome := s.document(password)
	if outcome != nil {
		return outcome
	}
	if outcome := s.Backup(ctx, delivery); outcome != nil {
		return outcome
	}
	if outcome := s.Deliver(ctx, delivery); outcome != nil {
		return outcome
	}
	status.SecretName, status.SecretKeys = s.DeliveredName(), delivery.SecretKeys()
	if next := s.current(); next > accepted {
		return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, 0,
			"Secret %s/%s carries password generation %d; generation %d follows when Keystone has accepted it, see UserReady",
			s.Key.Namespace, s.DeliveredName(), accepted, next)
	}
	return order.Done(v1alpha1.ReasonDelivered, "Secret %s/%s carries password generation %d", s.Key.Namespace, s.DeliveredName(), accepted)
}

// document renders what is delivered. It names no project: the token is unscoped, and a consumer adds
// the project it has a role on.
func (s *pass) document(password []byte) (order.Delivery, *order.Outcome) {
	cp := s.ControlPlane
	authURL := order.AuthURL(cp, s.Key.Cluster)
	if authURL == "" {
		return order.Delivery{}, order.Wait(v1alpha1.ReasonKeystoneNotPublished, order.WaitRefused,
			"ControlPlane %s/%s publishes Keystone nowhere that %s reaches; set spec.services.keystone.publicEndpoint or its gateway", cp.Namespace, cp.Name, s.ClusterPhrase())
	}
	document, err := clouds.Render(order.CloudName, clouds.Cloud{
		AuthURL:      authURL,
		RegionName:   order.Region(cp),
		EndpointType: order.EndpointType(cp),
		Password:     s.passwordAuth(password),
	})
	if err != nil {
		return order.Delivery{}, order.Fail(v1alpha1.ReasonDeliveryError, err)
	}
	return order.Delivery{
		BackupPath: backupPath,
		Source: map[string][]byte{
			order.CloudsKey:    document,
			passwordKey:        password,
			"username":         []byte(s.user.EffectiveUserName()),
			"user_domain_name": []byte(order.AdminDomain(cp)),
			"auth_url":         []byte(authURL),
			"region_name":      []byte(order.Region(cp)),
		},
		Delivered: map[string][]byte{order.CloudsKey: document, passwordKey: password},
	}, nil
}

func (s *pass) passwordAuth(password []byte) *clouds.PasswordAuth {
	return &clouds.PasswordAuth{
		Username:       s.user.EffectiveUserName(),
		UserDomainName: order.AdminDomain(s.ControlPlane),
		Password:       string(password),
	}
}
