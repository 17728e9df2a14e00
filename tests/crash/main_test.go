// Package crash plays whole lives of an order and stops the operator anywhere.
//
// A life is a KeystoneApplicationCredential with the KeystoneUser, KeystoneProject and
// KeystoneRoleAssignment that it needs: ordered, minted, backed up, delivered, rotated by schedule, revoked
// after its grace period, given a new password, rotated by hand, revoked again, and deleted. The
// reconcilers, the rotation, the clients of Keystone and the documents are the operator's own. K-ORC, ESO
// and Keystone are fakes for faults (package ordertest). Nothing runs by itself: the lives are played pass
// by pass on a clock of their own, so that the operator's k-th write is the same one in every run.
//
// What holds after each pass, and after each look of K-ORC's, is in promises_test.go. In the end every life
// has come to the state of the undisturbed one, and after the teardown nothing is left anywhere.
//
// What is disturbed:
//
//   - The operator stops after its k-th write, to Kubernetes or to Keystone, for every k, and a fresh one
//     starts. These lives are on a real kube-apiserver.
//   - The k-th write is done and its answer lost, with and without a stop at the next one; or the write
//     itself is lost. For every k as well, but on the client in memory of controller-runtime, made to count
//     generations as an API server does: the three together would take the real one many minutes.
//   - The operator's cache lags by n versions, of one kind or of all, while live reads do not.
//   - The faults of faults_test.go, one at a time, each at each moment of a life that it can matter in.
//   - All of that at random, and people who edit and delete things (property_test.go).
package crash

import (
	"strconv"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// cluster is where the objects of lives are kept.
type cluster struct {
	scheme *runtime.Scheme
	// open is the client of one life.
	open func() client.WithWatch
	// lives counts them: each has namespaces of its own.
	lives *atomic.Int64
}

// newScheme knows the kinds of a life and no others: one that is not meant to be there is an error.
func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Namespace{}, &corev1.Secret{}, &corev1.SecretList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	scheme.AddKnownTypes(orcv1alpha1.SchemeGroupVersion,
		&orcv1alpha1.Domain{}, &orcv1alpha1.DomainList{}, &orcv1alpha1.User{}, &orcv1alpha1.UserList{}, &orcv1alpha1.Project{}, &orcv1alpha1.ProjectList{},
		&orcv1alpha1.Role{}, &orcv1alpha1.RoleList{}, &orcv1alpha1.ApplicationCredential{}, &orcv1alpha1.ApplicationCredentialList{})
	metav1.AddToGroupVersion(scheme, orcv1alpha1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, externalsecrets.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// onAPIServer starts a real kube-apiserver with the CRDs of the operator and of K-ORC.
func onAPIServer(t *testing.T) cluster {
	t.Helper()
	config := dependenciestest.StartAPIServer(t, "../..")
	dependenciestest.InstallKORC(t, config)
	dependenciestest.InstallESO(t, config)
	config.QPS, config.Burst = -1, -1
	scheme := newScheme(t)
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return cluster{scheme, func() client.WithWatch { return direct }, &atomic.Int64{}}
}

// inMemory keeps each life in a client of its own.
func inMemory(t *testing.T) cluster {
	t.Helper()
	scheme := newScheme(t)
	decoder, fields := serializer.NewCodecFactory(scheme).UniversalDecoder(), newFieldManagers(scheme)
	return cluster{scheme, func() client.WithWatch {
		objects := &tracker{ObjectTracker: clienttesting.NewObjectTracker(scheme, decoder), fields: fields}
		return fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(objects).WithStatusSubresource(
			&v1alpha1.ControlPlane{}, &v1alpha1.KeystoneUser{}, &v1alpha1.KeystoneProject{}, &v1alpha1.KeystoneRoleAssignment{},
			&v1alpha1.KeystoneApplicationCredential{}, &orcv1alpha1.Domain{}, &orcv1alpha1.User{}, &orcv1alpha1.Project{},
			&orcv1alpha1.Role{}, &orcv1alpha1.ApplicationCredential{}, &externalsecrets.PushSecret{}, &externalsecrets.SecretStore{},
		).Build()
	}, &atomic.Int64{}}
}

// life begins one.
func (c cluster) life(t *testing.T) *life {
	t.Helper()
	return newLife(t, c.scheme, c.open, "-"+strconv.FormatInt(c.lives.Add(1), 10))
}
