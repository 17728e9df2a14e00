package keystoneapplicationcredential

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
)

// mintCloudChild is the document that K-ORC creates and deletes every credential with.
const mintCloudChild = "mint-cloud"

// writeMintDocument writes the password cloud of the ordered user, scoped to the project. It goes
// before any other write of the pass. K-ORC needs a password session of the user itself: only a user
// may create its own application credentials, a restricted credential may not create any, and the
// token's project is the credential's.
func (s *state) writeMintDocument(ctx context.Context) *order.Outcome {
	bundle, missing, err := order.CABundle(ctx, s.Live, s.ControlPlane)
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	case missing != "":
		return order.Wait(v1alpha1.ReasonWaitingForCABundle, order.WaitShort, "%s", missing)
	}
	s.bundle = bundle
	if s.project.Status.ProjectName == "" {
		return order.Wait(v1alpha1.ReasonWaitingForProject, order.WaitShort, "KeystoneProject %q reports no project name yet", s.project.Name)
	}
	secret := s.UserChild(s.user.Name, fmt.Sprintf("password-v%d", s.user.Status.PasswordGeneration))
	password, err := s.SecretValue(ctx, secret, "password")
	switch {
	case err != nil:
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	case len(password) == 0:
		return order.Wait(v1alpha1.ReasonWaitingForUser, order.WaitShort,
			"the password of generation %d of KeystoneUser %q is not available (Secret %s/%s); its order replaces a lost one",
			s.user.Status.PasswordGeneration, s.user.Name, s.ChildNamespace(), secret)
	}
	document, err := clouds.Render(order.CloudName, clouds.Cloud{
		AuthURL:      order.AuthURL(s.ControlPlane, ""),
		RegionName:   order.Region(s.ControlPlane),
		EndpointType: order.EndpointType(s.ControlPlane),
		CACert:       clouds.BundleName(bundle),
		Password: &clouds.PasswordAuth{
			Username:          s.user.EffectiveUserName(),
			UserDomainName:    order.AdminDomain(s.ControlPlane),
			Password:          string(password),
			ProjectName:       s.project.Status.ProjectName,
			ProjectDomainName: order.AdminDomain(s.ControlPlane),
		},
	})
	if err != nil {
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	}
	data := map[string][]byte{order.CloudsKey: document}
	if len(bundle) > 0 {
		data[order.CACertKey] = bundle
	}
	if err := s.ApplySecret(ctx, mintCloudChild, data); err != nil {
		return order.Fail(v1alpha1.ReasonCredentialError, err)
	}
	return nil
}

// mintCloudRef is how K-ORC finds the document.
func (s *state) mintCloudRef() orcv1alpha1.CloudCredentialsReference {
	return orcv1alpha1.CloudCredentialsReference{SecretName: s.Child(mintCloudChild), CloudName: order.CloudName}
}

// mintedUser reads who the mint document logs in as, empty when there is no document.
func (s *state) mintedUser(ctx context.Context) (string, error) {
	secret := &corev1.Secret{ObjectMeta: s.ChildMeta(mintCloudChild)}
	found, err := s.Read(ctx, secret)
	if err != nil || !found {
		return "", err
	}
	parsed, err := clouds.Parse(secret.Data[order.CloudsKey])
	if err != nil {
		return "", err
	}
	if cloud := parsed[order.CloudName]; cloud.Password != nil {
		return cloud.Password.Username, nil
	}
	return "", nil
}
