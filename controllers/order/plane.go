package order

import (
	"context"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

// CloudName is the entry of every clouds.yaml that the operator writes.
const CloudName = "c5c3"

// Keys of the Secrets around a ControlPlane.
const (
	CloudsKey   = orcv1alpha1.CloudCredentialsConfigSecretKey
	CACertKey   = orcv1alpha1.CloudCredencialsCASecretKey
	CABundleKey = "ca.crt"
)

// DefaultSecretStore is the store that backups go to when a ControlPlane names none.
const DefaultSecretStore = "openbao-tenant-store"

// AdminCloudName is the Secret with the admin's password cloud, which every K-ORC child of a
// ControlPlane authenticates with. A password outlives what an application credential would not: a
// child's delete still gets in after credentials were revoked.
func AdminCloudName(cp *v1alpha1.ControlPlane) string { return cp.Name + "-admin-password-cloud" }

// DomainImportName is K-ORC's import of the domain that orders create in.
func DomainImportName(cp *v1alpha1.ControlPlane) string { return cp.Name + "-domain-default" }

// UserImportName is K-ORC's import of the administrator.
func UserImportName(cp *v1alpha1.ControlPlane) string { return cp.Name + "-user-admin" }

// AdminDomain is the domain of the administrator and of all orders.
func AdminDomain(cp *v1alpha1.ControlPlane) string {
	return valueOr(cp.Spec.KORC.AdminCredential.DomainName, "Default")
}

// AdminUserName is the administrator's name.
func AdminUserName(cp *v1alpha1.ControlPlane) string {
	return valueOr(cp.Spec.KORC.AdminCredential.UserName, "admin")
}

// AdminProjectName is the project of the administrator's sessions.
func AdminProjectName(cp *v1alpha1.ControlPlane) string {
	return valueOr(cp.Spec.KORC.AdminCredential.ProjectName, "admin")
}

// Region is what delivered documents name.
func Region(cp *v1alpha1.ControlPlane) string { return valueOr(cp.Spec.Region, "RegionOne") }

// AdminCloudRef is the reference of a managed K-ORC child to the admin's password cloud.
func AdminCloudRef(cp *v1alpha1.ControlPlane) orcv1alpha1.CloudCredentialsReference {
	return orcv1alpha1.CloudCredentialsReference{SecretName: AdminCloudName(cp), CloudName: CloudName}
}

// External tells whether the Keystone is one that this cluster does not run.
func External(cp *v1alpha1.ControlPlane) bool {
	return cp.Spec.Services.Keystone.Mode == v1alpha1.KeystoneExternal && cp.Spec.Services.Keystone.External != nil
}

// ExternalURL is where an external Keystone is, empty for a managed one and without a ControlPlane.
func ExternalURL(cp *v1alpha1.ControlPlane) string {
	if cp == nil || !External(cp) {
		return ""
	}
	return cp.Spec.Services.Keystone.External.AuthURL
}

// AuthURL is the identity endpoint for somebody on a cluster; the management cluster's name is
// empty. It is empty when that cluster cannot reach Keystone: a managed one that is published
// nowhere.
func AuthURL(cp *v1alpha1.ControlPlane, cluster string) string {
	service := cp.Spec.Services.Keystone
	home := ""
	if service.TargetClusterRef != nil {
		home = service.TargetClusterRef.Name
	}
	switch {
	case External(cp):
		return service.External.AuthURL
	case cluster == home:
		return fmt.Sprintf("http://%s-keystone.%s.svc:5000/v3", cp.Name, valueOr(service.Namespace, cp.Namespace))
	case service.PublicEndpoint != "":
		return service.PublicEndpoint
	case service.Gateway != nil:
		return "https://" + service.Gateway.Hostname + "/v3"
	}
	return ""
}

// EndpointType is the catalog interface the operator and K-ORC use.
func EndpointType(cp *v1alpha1.ControlPlane) string {
	if External(cp) {
		return valueOr(string(cp.Spec.Services.Keystone.External.EndpointType), clouds.EndpointTypePublic)
	}
	return clouds.EndpointTypeInternal
}

// CABundleRef names the Secret whose key ca.crt verifies Keystone, nil for the system's roots.
func CABundleRef(cp *v1alpha1.ControlPlane) *v1alpha1.SecretReference {
	if External(cp) {
		return cp.Spec.Services.Keystone.External.CABundleSecretRef
	}
	return cp.Spec.Services.Keystone.CABundleSecretRef
}

// CABundle reads the bundle that verifies Keystone. It is nil without an error when the
// ControlPlane names none. missing says in words for a condition why a named bundle is not there.
//
// One without a single certificate counts as missing. K-ORC would trust the system's roots in its place
// without a word (v2.6.0, internal/scope/provider.go), and send a password to whoever they vouch for.
// A block among others that does not parse is left out, by K-ORC and the operator alike: bundles that
// distributions make hold certificates that Go refuses.
func CABundle(ctx context.Context, live client.Reader, cp *v1alpha1.ControlPlane) (bundle []byte, missing string, err error) {
	ref := CABundleRef(cp)
	if ref == nil {
		return nil, "", nil
	}
	secret := &corev1.Secret{}
	err = live.Get(ctx, types.NamespacedName{Namespace: cp.Namespace, Name: ref.Name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("Secret %s/%s, which ControlPlane %s names as its CA bundle, does not exist; create it with the key %s", cp.Namespace, ref.Name, cp.Name, CABundleKey), nil
	case err != nil:
		return nil, "", fmt.Errorf("reading the CA bundle Secret %s/%s: %w", cp.Namespace, ref.Name, err)
	case len(secret.Data[CABundleKey]) == 0:
		return nil, fmt.Sprintf("Secret %s/%s, which ControlPlane %s names as its CA bundle, has no key %s", cp.Namespace, ref.Name, cp.Name, CABundleKey), nil
	case !x509.NewCertPool().AppendCertsFromPEM(secret.Data[CABundleKey]):
		return nil, fmt.Sprintf("key %s of Secret %s/%s, which ControlPlane %s names as its CA bundle, holds no PEM certificate that can be read", CABundleKey, cp.Namespace, ref.Name, cp.Name), nil
	}
	return secret.Data[CABundleKey], "", nil
}

// StoreRef is the store that backups of a ControlPlane go to.
func StoreRef(cp *v1alpha1.ControlPlane) v1alpha1.SecretStoreReference {
	if ref := cp.Spec.SecretStoreRef; ref != nil {
		return v1alpha1.SecretStoreReference{Name: ref.Name, Kind: valueOr(ref.Kind, "SecretStore")}
	}
	return v1alpha1.SecretStoreReference{Name: DefaultSecretStore, Kind: "SecretStore"}
}

// StoreReady tells whether the store takes pushes, and in words for a condition why not.
func StoreReady(ctx context.Context, reader client.Reader, cp *v1alpha1.ControlPlane) (ready bool, why string, err error) {
	reason, why, err := StoreState(ctx, reader, cp)
	return err == nil && reason == v1alpha1.ReasonSecretStoreValid, why, err
}

// StoreState judges the store that backups go to: the reason is SecretStoreValid when it takes
// pushes, else SecretStoreNotFound or SecretStoreNotReady, and why says in words for a condition what
// is wrong.
func StoreState(ctx context.Context, reader client.Reader, cp *v1alpha1.ControlPlane) (reason, why string, err error) {
	ref := StoreRef(cp)
	var store interface {
		client.Object
		externalsecrets.Store
	} = &externalsecrets.SecretStore{}
	key := types.NamespacedName{Namespace: cp.Namespace, Name: ref.Name}
	where := ref.Kind + " " + key.String()
	if ref.Kind == externalsecrets.ClusterSecretStoreKind {
		store, key.Namespace = &externalsecrets.ClusterSecretStore{}, ""
		where = ref.Kind + " " + key.Name
	}
	err = reader.Get(ctx, key, store)
	switch {
	case apierrors.IsNotFound(err):
		return v1alpha1.ReasonSecretStoreNotFound, where + " does not exist; create it or name another in the ControlPlane's spec.secretStoreRef", nil
	case isNotServed(err):
		return v1alpha1.ReasonSecretStoreNotReady, "the API server does not serve " + ref.Kind + " (external-secrets.io/v1); install External Secrets Operator", nil
	case err != nil:
		return "", "", fmt.Errorf("reading %s: %w", where, err)
	}
	ready, message := externalsecrets.StoreReady(store)
	if ready {
		return v1alpha1.ReasonSecretStoreValid, "", nil
	}
	return v1alpha1.ReasonSecretStoreNotReady, where + " " + message, nil
}

// AdminCloud reads the admin's password cloud, as the ControlPlane controller wrote it, and the CA
// bundle in it.
func AdminCloud(ctx context.Context, reader client.Reader, cp *v1alpha1.ControlPlane) (clouds.Cloud, []byte, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: cp.Namespace, Name: AdminCloudName(cp)}
	if err := reader.Get(ctx, key, secret); err != nil {
		return clouds.Cloud{}, nil, fmt.Errorf("reading the admin password cloud %s: %w", key, err)
	}
	parsed, err := clouds.Parse(secret.Data[CloudsKey])
	if err != nil {
		return clouds.Cloud{}, nil, fmt.Errorf("parsing the admin password cloud %s: %w", key, err)
	}
	cloud, ok := parsed[CloudName]
	if !ok {
		return clouds.Cloud{}, nil, fmt.Errorf("the admin password cloud %s has no cloud %q", key, CloudName)
	}
	return cloud, secret.Data[CACertKey], nil
}

// AdminKey names a ControlPlane's admin session in the cache of sessions.
func AdminKey(cp *v1alpha1.ControlPlane) string { return string(cp.UID) }

// Admin logs in to the ControlPlane's Keystone as its administrator, or hands out the session that
// is there.
func (p *Pass) Admin(ctx context.Context) (*keystone.Session, error) {
	cloud, bundle, err := AdminCloud(ctx, p.Management, p.ControlPlane)
	if err != nil {
		return nil, err
	}
	return p.Base.Keystone.Admin(ctx, AdminKey(p.ControlPlane), cloud, bundle)
}

func valueOr(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
