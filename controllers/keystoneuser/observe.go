package keystoneuser

import (
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

// Discriminators of a KeystoneUser's children. The number of the generation follows passwordChild;
// credential orders read password Secrets by that name.
const (
	userChild     = "user"
	probeChild    = "user-probe"
	passwordChild = "password-v"
)

// passwordKey is the key under which K-ORC reads a password.
const passwordKey = "password"

// observation is what the management cluster holds of the order.
type observation struct {
	// managed is the K-ORC User, nil while there is none.
	managed *orcv1alpha1.User
	// passwords are the values of the password Secrets by generation, empty for a Secret that lost
	// its value.
	passwords map[int64][]byte
}

// userID is the id in Keystone that K-ORC's User reports, empty while there is none.
func (s *pass) userID() string {
	if s.seen.managed == nil {
		return ""
	}
	return ptr.Deref(s.seen.managed.Status.ID, "")
}

// current is the generation that K-ORC's User refers to, 0 for none.
func (s *pass) current() int64 {
	if s.seen.managed == nil || s.seen.managed.Spec.Resource == nil {
		return 0
	}
	return generationOf(string(ptr.Deref(s.seen.managed.Spec.Resource.PasswordRef, "")), s.Child(passwordChild))
}

// applied is the generation that K-ORC says it gave Keystone, 0 for none.
func (s *pass) applied() int64 {
	if s.seen.managed == nil || s.seen.managed.Status.Resource == nil {
		return 0
	}
	return generationOf(s.seen.managed.Status.Resource.AppliedPasswordRef, s.Child(passwordChild))
}

// generationOf reads the generation from the name of a password Secret, which is prefix and number; 0 for
// the name of anything else.
func generationOf(name, prefix string) int64 {
	number, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0
	}
	generation, err := strconv.ParseInt(number, 10, 64)
	// "01" and "+1" are numbers, and not names that the operator gives.
	if err != nil || generation < 1 || strconv.FormatInt(generation, 10) != number {
		return 0
	}
	return generation
}

// MintedGeneration tells which password generation of which order K-ORC was told to give a user. It is not
// ok for a user that the operator did not make.
func MintedGeneration(object *orcv1alpha1.User) (key order.Key, generation int64, ok bool) {
	key, ok = order.UserKind.KeyFromLabels(object.Labels)
	if !ok || object.Name != order.UserKind.Prefix(key)+userChild || object.Spec.Resource == nil {
		return key, 0, false
	}
	generation = generationOf(string(ptr.Deref(object.Spec.Resource.PasswordRef, "")), order.UserKind.Prefix(key)+passwordChild)
	return key, generation, generation > 0
}

func (s *pass) passwordName(generation int64) string {
	return s.Child(passwordChild + strconv.FormatInt(generation, 10))
}

// kindsServed waits for K-ORC's kind. Reading a kind that is not served would block on its cache.
func (s *pass) kindsServed(context.Context) *order.Outcome {
	gvk := orcv1alpha1.SchemeGroupVersion.WithKind("User")
	if s.Base.Served.Serves(gvk) {
		return nil
	}
	return order.Wait(v1alpha1.ReasonWaitingForDependencies, order.WaitShort,
		"the API server does not serve %s (%s); install K-ORC v2.6.0 or newer", gvk.Kind, gvk.GroupVersion())
}

// observe reads from the cache. That a K-ORC User is missing is believed only when the API server
// says so: on the pass after its creation the cache may not have it yet, and probing for its name
// would then find it.
func (s *pass) observe(ctx context.Context) *order.Outcome {
	managed := &orcv1alpha1.User{ObjectMeta: s.ChildMeta(userChild)}
	found, err := s.Read(ctx, managed)
	if err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	if !found {
		return s.observeLive(ctx)
	}
	passwords, err := s.readPasswords(ctx, s.CachedChildren)
	if err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	s.seen = observation{managed: managed, passwords: passwords}
	return s.notGoing()
}

// observeLive reads from the API server. It comes before anything that cannot be taken back.
func (s *pass) observeLive(ctx context.Context) *order.Outcome {
	users, err := s.Children(ctx, &orcv1alpha1.UserList{})
	if err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	passwords, err := s.readPasswords(ctx, s.Children)
	if err != nil {
		return order.Fail(v1alpha1.ReasonServiceAccountError, err)
	}
	s.seen = observation{passwords: passwords}
	for _, child := range users {
		if user, ok := child.(*orcv1alpha1.User); ok && user.Name == s.Child(userChild) {
			s.seen.managed = user
		}
	}
	return s.notGoing()
}

// notGoing waits for a K-ORC User that somebody deleted. It is made anew when it is gone.
func (s *pass) notGoing() *order.Outcome {
	if managed := s.seen.managed; managed != nil && !managed.DeletionTimestamp.IsZero() {
		return order.Wait(v1alpha1.ReasonWaitingForServiceAccounts, order.WaitShort,
			"somebody deleted K-ORC's User %s/%s; the user is made anew when K-ORC is done with that", managed.Namespace, managed.Name)
	}
	return nil
}

type lister func(context.Context, client.ObjectList) ([]client.Object, error)

func (s *pass) readPasswords(ctx context.Context, list lister) (map[int64][]byte, error) {
	children, err := list(ctx, &corev1.SecretList{})
	if err != nil {
		return nil, err
	}
	passwords := map[int64][]byte{}
	for _, child := range children {
		secret, ok := child.(*corev1.Secret)
		if !ok {
			continue
		}
		if generation := generationOf(secret.Name, s.Child(passwordChild)); generation > 0 {
			passwords[generation] = secret.Data[passwordKey]
		}
	}
	return passwords, nil
}
