package order

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// discard records no Events.
type discard struct{}

func (discard) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

func planeWith(keystone v1alpha1.KeystoneServiceSpec) *v1alpha1.ControlPlane {
	return &v1alpha1.ControlPlane{
		ObjectMeta: metav1.ObjectMeta{Name: "cp", Namespace: "openstack"},
		Spec:       v1alpha1.ControlPlaneSpec{Services: v1alpha1.ServicesSpec{Keystone: keystone}},
	}
}

func TestAuthURL(t *testing.T) {
	const (
		inCluster = "http://cp-keystone.openstack.svc:5000/v3"
		outside   = "https://keystone.example.com/v3"
		gateway   = "https://gateway.example.com/v3"
	)
	var (
		external  = &v1alpha1.ExternalKeystone{AuthURL: outside}
		published = &v1alpha1.GatewaySpec{Hostname: "gateway.example.com"}
		onEdge    = &v1alpha1.ClusterReference{Name: "edge"}
	)
	// The columns are the consumer's cluster: the management cluster, edge, and another one. Empty
	// means that nothing may be delivered there.
	cases := map[string]struct {
		keystone               v1alpha1.KeystoneServiceSpec
		management, edge, core string
	}{
		"nothing_said_is_a_managed_one_here":             {v1alpha1.KeystoneServiceSpec{}, inCluster, "", ""},
		"managed_here":                                   {v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneManaged}, inCluster, "", ""},
		"managed_in_a_namespace_of_its_own":              {v1alpha1.KeystoneServiceSpec{Namespace: "identity"}, "http://cp-keystone.identity.svc:5000/v3", "", ""},
		"managed_here_with_a_public_endpoint":            {v1alpha1.KeystoneServiceSpec{PublicEndpoint: outside}, inCluster, outside, outside},
		"managed_here_behind_a_gateway":                  {v1alpha1.KeystoneServiceSpec{Gateway: published}, inCluster, gateway, gateway},
		"the_public_endpoint_goes_before_the_gateway":    {v1alpha1.KeystoneServiceSpec{PublicEndpoint: outside, Gateway: published}, inCluster, outside, outside},
		"managed_on_edge":                                {v1alpha1.KeystoneServiceSpec{TargetClusterRef: onEdge}, "", inCluster, ""},
		"managed_on_edge_with_a_public_endpoint":         {v1alpha1.KeystoneServiceSpec{TargetClusterRef: onEdge, PublicEndpoint: outside}, outside, inCluster, outside},
		"managed_on_edge_behind_a_gateway":               {v1alpha1.KeystoneServiceSpec{TargetClusterRef: onEdge, Gateway: published}, gateway, inCluster, gateway},
		"external":                                       {v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneExternal, External: external}, outside, outside, outside},
		"external_is_the_same_whatever_else_is_there":    {v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneExternal, External: external, PublicEndpoint: "https://other/v3", Gateway: published, TargetClusterRef: onEdge}, outside, outside, outside},
		"external_in_mode_Managed_is_read_by_nobody":     {v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneManaged, External: external}, inCluster, "", ""},
		"mode_External_without_a_url_is_no_external_one": {v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneExternal}, inCluster, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cp := planeWith(c.keystone)
			for cluster, want := range map[string]string{"": c.management, "edge": c.edge, "core": c.core} {
				if got := AuthURL(cp, cluster); got != want {
					t.Errorf("a consumer on %q gets %q, want %q", cluster, got, want)
				}
			}
		})
	}
}

func TestEndpointType(t *testing.T) {
	external := func(kind v1alpha1.EndpointType) v1alpha1.KeystoneServiceSpec {
		return v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneExternal, External: &v1alpha1.ExternalKeystone{AuthURL: "https://k/v3", EndpointType: kind}}
	}
	for name, c := range map[string]struct {
		keystone v1alpha1.KeystoneServiceSpec
		want     string
	}{
		"a_managed_one_is_used_inside":                     {v1alpha1.KeystoneServiceSpec{}, "internal"},
		"an_external_one_is_used_at_its_public_interface":  {external(""), "public"},
		"an_external_one_may_ask_for_its_internal_one":     {external(v1alpha1.EndpointInternal), "internal"},
		"an_external_one_may_ask_for_its_admin_interface":  {external(v1alpha1.EndpointAdmin), "admin"},
		"a_managed_one_ignores_what_an_external_one_wants": {v1alpha1.KeystoneServiceSpec{External: external(v1alpha1.EndpointAdmin).External}, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EndpointType(planeWith(c.keystone)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCABundle(t *testing.T) {
	ours, theirs := &v1alpha1.SecretReference{Name: "ours"}, &v1alpha1.SecretReference{Name: "theirs"}
	external := func(ref *v1alpha1.SecretReference) *v1alpha1.ExternalKeystone {
		return &v1alpha1.ExternalKeystone{AuthURL: "https://k/v3", CABundleSecretRef: ref}
	}
	t.Run("belongs_to_the_mode", func(t *testing.T) {
		for name, c := range map[string]struct {
			keystone v1alpha1.KeystoneServiceSpec
			want     *v1alpha1.SecretReference
		}{
			"managed_without": {v1alpha1.KeystoneServiceSpec{}, nil},
			"managed":         {v1alpha1.KeystoneServiceSpec{CABundleSecretRef: ours}, ours},
			"external":        {v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneExternal, External: external(theirs)}, theirs},
			"external_does_not_borrow_the_managed_one": {v1alpha1.KeystoneServiceSpec{Mode: v1alpha1.KeystoneExternal, External: external(nil), CABundleSecretRef: ours}, nil},
		} {
			if got := CABundleRef(planeWith(c.keystone)); got != c.want {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	})

	cp := planeWith(v1alpha1.KeystoneServiceSpec{CABundleSecretRef: ours})
	secret := func(namespace string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ours", Namespace: namespace}, Data: data}
	}
	server := httptest.NewTLSServer(nil)
	server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	strange := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")})
	for name, c := range map[string]struct {
		cp      *v1alpha1.ControlPlane
		secrets []client.Object
		bundle  string
		missing string
	}{
		"none_is_named": {planeWith(v1alpha1.KeystoneServiceSpec{}), nil, "", ""},
		"it_is_there":   {cp, []client.Object{secret("openstack", map[string][]byte{"ca.crt": certificate})}, string(certificate), ""},
		// As K-ORC and Go take it.
		"it_holds_something_else_beside": {cp, []client.Object{secret("openstack", map[string][]byte{"ca.crt": slices.Concat([]byte("# ours\n"), strange, certificate)})},
			"# ours\n" + string(strange) + string(certificate), ""},
		"it_is_missing": {cp, nil, "", "Secret openstack/ours, which ControlPlane cp names as its CA bundle, does not exist; create it with the key ca.crt"},
		"it_is_in_another_namespace": {cp, []client.Object{secret("default", map[string][]byte{"ca.crt": certificate})}, "",
			"Secret openstack/ours, which ControlPlane cp names as its CA bundle, does not exist; create it with the key ca.crt"},
		"it_has_no_such_key": {cp, []client.Object{secret("openstack", map[string][]byte{"cacert": certificate})}, "", "Secret openstack/ours, which ControlPlane cp names as its CA bundle, has no key ca.crt"},
		"its_key_is_empty":   {cp, []client.Object{secret("openstack", map[string][]byte{"ca.crt": {}})}, "", "Secret openstack/ours, which ControlPlane cp names as its CA bundle, has no key ca.crt"},
		// K-ORC would trust the system's roots instead.
		"it_is_no_PEM": {cp, []client.Object{secret("openstack", map[string][]byte{"ca.crt": server.Certificate().Raw})}, "",
			"key ca.crt of Secret openstack/ours, which ControlPlane cp names as its CA bundle, holds no PEM certificate that can be read"},
		"its_certificate_is_none": {cp, []client.Object{secret("openstack", map[string][]byte{"ca.crt": strange})}, "",
			"key ca.crt of Secret openstack/ours, which ControlPlane cp names as its CA bundle, holds no PEM certificate that can be read"},
	} {
		t.Run(name, func(t *testing.T) {
			bundle, missing, err := CABundle(t.Context(), fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(c.secrets...).Build(), c.cp)
			if err != nil || string(bundle) != c.bundle || missing != c.missing {
				t.Errorf("bundle %q, missing %q, error %v; want bundle %q, missing %q", bundle, missing, err, c.bundle, c.missing)
			}
		})
	}
	t.Run("a_failing_read_is_an_error_and_not_a_missing_bundle", func(t *testing.T) {
		broken := fake.NewClientBuilder().WithScheme(testScheme(t)).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errors.New("etcd is away")
			},
		}).Build()
		_, missing, err := CABundle(t.Context(), broken, cp)
		if err == nil || missing != "" || !strings.Contains(err.Error(), "openstack/ours") {
			t.Errorf("missing %q, error %v", missing, err)
		}
	})
}

// TestControlPlaneDefaults makes sure that a ControlPlane which an API server stored without
// defaults means the same.
func TestControlPlaneDefaults(t *testing.T) {
	bare := planeWith(v1alpha1.KeystoneServiceSpec{})
	said := planeWith(v1alpha1.KeystoneServiceSpec{})
	said.Spec.Region = "Here"
	said.Spec.SecretStoreRef = &v1alpha1.SecretStoreReference{Name: "vault", Kind: "ClusterSecretStore"}
	said.Spec.KORC.AdminCredential = v1alpha1.AdminCredentialSpec{UserName: "root", ProjectName: "service", DomainName: "corp"}
	for what, c := range map[string]struct {
		read       func(*v1alpha1.ControlPlane) string
		bare, said string
	}{
		"region":                      {Region, "RegionOne", "Here"},
		"admin":                       {AdminUserName, "admin", "root"},
		"admin's project":             {AdminProjectName, "admin", "service"},
		"domain":                      {AdminDomain, "Default", "corp"},
		"store":                       {func(cp *v1alpha1.ControlPlane) string { return StoreRef(cp).Kind + " " + StoreRef(cp).Name }, "SecretStore openbao-tenant-store", "ClusterSecretStore vault"},
		"admin's cloud":               {AdminCloudName, "cp-admin-password-cloud", "cp-admin-password-cloud"},
		"domain import":               {DomainImportName, "cp-domain-default", "cp-domain-default"},
		"import of the administrator": {UserImportName, "cp-user-admin", "cp-user-admin"},
		"reference of managed children to the admin's cloud": {func(cp *v1alpha1.ControlPlane) string {
			return AdminCloudRef(cp).SecretName + " " + AdminCloudRef(cp).CloudName
		}, "cp-admin-password-cloud c5c3", "cp-admin-password-cloud c5c3"},
	} {
		if got := c.read(bare); got != c.bare {
			t.Errorf("%s by default is %q, want %q", what, got, c.bare)
		}
		if got := c.read(said); got != c.said {
			t.Errorf("%s is %q, want %q", what, got, c.said)
		}
	}
	said.Spec.SecretStoreRef.Kind = ""
	if got := StoreRef(said).Kind; got != "SecretStore" {
		t.Errorf("a store without a kind is a %s", got)
	}
}
