package crash

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

// promises is what the checks remember from one moment to the next.
type promises struct {
	// checked is how much of the history was looked at.
	checked int
	// delivered tells that the credential was delivered once.
	delivered bool
	// spoiled tells that somebody spoiled the delivered Secret, and the operator has yet to repair it.
	spoiled bool
	// frozen tells that the ControlPlane withdrew its consent: nothing is promised then.
	frozen bool
}

// held are the application credentials that Keystone holds for the order, by name, expired ones included.
func (l *life) held() map[string]string {
	held := map[string]string{}
	l.keystone.With(func() {
		for id, credential := range l.keystone.Credentials {
			if strings.HasPrefix(credential.Name, l.prefix(order.ApplicationCredentialKind)) {
				held[credential.Name] = id
			}
		}
	})
	return held
}

// check requires everything that holds at every moment.
func (l *life) check() {
	l.tb.Helper()
	held := l.held()
	if len(held) > 2 {
		l.fail("Keystone holds %d credentials for the order: %v", len(held), slices.Sorted(maps.Keys(held)))
	}
	l.checkOwners(held)
	l.checkDeliveries()
	l.checkDelivered()
	l.checkWords()
}

// checkOwners requires that somebody in the ControlPlane's namespace answers for each credential.
func (l *life) checkOwners(held map[string]string) {
	l.tb.Helper()
	for name := range held {
		generation := strings.TrimPrefix(name, l.prefix(order.ApplicationCredentialKind)+"credential-v")
		marker := l.prefix(order.ApplicationCredentialKind) + "secret-v" + generation
		if !l.get(types.NamespacedName{Namespace: l.plane, Name: name}, &orcv1alpha1.ApplicationCredential{}) &&
			!l.get(types.NamespacedName{Namespace: l.plane, Name: marker}, &corev1.Secret{}) {
			l.fail("Keystone holds %s, and neither K-ORC's object nor the Secret of that generation is there", name)
		}
	}
}

// checkDeliveries requires, of each new version of the Secret beside the order, that the store held that
// document when it was written.
func (l *life) checkDeliveries() {
	l.tb.Helper()
	key := types.NamespacedName{Namespace: l.tenant, Name: names[order.ApplicationCredentialKind.Name] + "-credentials"}
	for _, v := range l.history.versions[corev1.SchemeGroupVersion.WithKind("Secret")][key] {
		secret, ok := v.object.(*corev1.Secret)
		if v.moment <= l.promises.checked || !ok || l.promises.spoiled && v.moment == l.history.length {
			continue
		}
		if !bytes.Equal(l.backup()[order.CloudsKey], secret.Data[order.CloudsKey]) {
			l.fail("a document was delivered that the store does not hold")
		}
	}
	l.promises.checked = l.history.length
}

// backup is what the store holds of the credential.
func (l *life) backup() map[string][]byte {
	return l.eso.Store[l.path(order.ApplicationCredentialKind, "application-credential")]
}

func (l *life) path(kind order.Kind, last string) string {
	return fmt.Sprintf("openstack/keystone/%s/%s/service-accounts/%s", l.plane, strings.TrimSuffix(l.prefix(kind), "-"), last)
}

// checkDelivered requires that the delivered credential works, from the first delivery to the deletion.
func (l *life) checkDelivered() {
	l.tb.Helper()
	credential, secret := l.credential(), l.delivered()
	if credential.Name == "" || !credential.DeletionTimestamp.IsZero() {
		l.promises.delivered = false
		return
	}
	works := secret != nil && l.keystone.Accepts(string(secret.Data["application_credential_id"]), string(secret.Data["application_credential_secret"]))
	l.promises.delivered = l.promises.delivered || works
	if works {
		l.promises.spoiled = false
	}
	switch {
	case works, !l.promises.delivered, l.promises.spoiled, l.promises.frozen:
	case secret == nil:
		l.fail("the delivered Secret is gone")
	default:
		l.fail("Keystone does not accept the delivered credential %s", secret.Data["application_credential_id"])
	}
}

// checkWords requires that no secret is told in an Event or a condition.
func (l *life) checkWords() {
	l.tb.Helper()
	text := strings.Join(l.events.events, "\n") + l.describe()
	l.keystone.With(func() {
		for _, user := range l.keystone.Users {
			if strings.Contains(text, user.Password) {
				l.fail("a password of %s is in an Event or a condition", user.Name)
			}
		}
		for _, credential := range l.keystone.Credentials {
			if strings.Contains(text, credential.Secret) {
				l.fail("the secret of %s is in an Event or a condition", credential.Name)
			}
		}
	})
}

// listed are the kinds in the ControlPlane's namespace that orders have children of.
func listed() []client.ObjectList {
	return []client.ObjectList{
		&orcv1alpha1.UserList{}, &orcv1alpha1.ProjectList{}, &orcv1alpha1.RoleList{}, &orcv1alpha1.ApplicationCredentialList{},
		&externalsecrets.PushSecretList{}, &corev1.SecretList{},
	}
}

// children are the names of all children of the orders, with the kind, and without what differs from one
// life to the next. The live generations of credential and password read "live".
func (l *life) children() []string {
	l.tb.Helper()
	var found []string
	for _, list := range listed() {
		l.must(l.people.List(l.ctx, list, client.InNamespace(l.plane)))
		for _, object := range items(list) {
			for _, kind := range order.Kinds {
				if child, ours := strings.CutPrefix(object.GetName(), l.prefix(kind)); ours {
					found = append(found, fmt.Sprintf("%T %s/%s", object, kind.Segment, l.withoutGeneration(child)))
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

func (l *life) withoutGeneration(child string) string {
	for discriminator, generation := range map[string]int64{
		"credential-v": l.credential().Status.CredentialGeneration, "secret-v": l.credential().Status.CredentialGeneration,
		"password-v": l.user().Status.PasswordGeneration,
	} {
		if child == discriminator+strconv.FormatInt(generation, 10) {
			return discriminator + "<live>"
		}
	}
	return child
}

// snapshot is the state of the world without ids, times and names that differ from one life to the next.
func (l *life) snapshot() []string {
	l.tb.Helper()
	lines := l.children()
	for _, kind := range order.Kinds {
		object := kind.New()
		l.get(l.key(kind), object)
		for _, c := range *object.GetConditions() {
			lines = append(lines, fmt.Sprintf("%s %s=%s/%s", kind.Name, c.Type, c.Status, c.Reason))
		}
		lines = append(lines, fmt.Sprintf("%s finalizers %v", kind.Name, object.GetFinalizers()))
	}
	ordered, user, credential := l.user().Spec, l.user().Status, l.credential().Status
	project, assignment := &v1alpha1.KeystoneProject{}, &v1alpha1.KeystoneRoleAssignment{}
	l.get(l.key(order.ProjectKind), project)
	l.get(l.key(order.RoleAssignmentKind), assignment)
	lines = append(lines,
		fmt.Sprintf("user: id %t, generation as ordered or above %t, Secret %s %v", user.UserID != "", user.PasswordGeneration >= ordered.PasswordGeneration, user.SecretName, user.SecretKeys),
		fmt.Sprintf("project: id %t, %s in %s", project.Status.ProjectID != "", project.Status.ProjectName, project.Status.DomainName),
		fmt.Sprintf("assignment: role %s, user %t, project %t", assignment.Status.RoleID,
			assignment.Status.UserID == user.UserID, assignment.Status.ProjectID == project.Status.ProjectID),
		fmt.Sprintf("credential: id %t, expires %t, rotated %t, rotates %t, previous %q %d, Secret %s %v", credential.CredentialID != "",
			credential.CredentialExpiresAt != nil, credential.LastRotation != nil, credential.NextRotation != nil,
			credential.PreviousCredentialID, credential.PreviousCredentialGeneration, credential.SecretName, credential.SecretKeys))
	lines = append(lines, l.stored()...)
	lines = append(lines, l.inKeystone()...)
	return lines
}

// stored compares the backups with what is delivered.
func (l *life) stored() []string {
	var lines []string
	for kind, last := range map[*order.Kind]string{&order.UserKind: "credentials", &order.ApplicationCredentialKind: "application-credential"} {
		secret := &corev1.Secret{}
		l.get(types.NamespacedName{Namespace: l.tenant, Name: names[kind.Name] + "-credentials"}, secret)
		backup := l.eso.Store[l.path(*kind, last)]
		lines = append(lines, fmt.Sprintf("backup of %s: %v, as delivered %t", kind.Name, slices.Sorted(maps.Keys(backup)),
			bytes.Equal(backup[order.CloudsKey], secret.Data[order.CloudsKey])))
	}
	slices.Sort(lines)
	return append(lines, fmt.Sprintf("%d documents in the store", len(l.eso.Store)))
}

// inKeystone tells what Keystone has, and whether what is delivered works there.
func (l *life) inKeystone() []string {
	lines := []string{fmt.Sprintf("%d credentials in Keystone", len(l.held()))}
	user := &corev1.Secret{}
	l.get(types.NamespacedName{Namespace: l.tenant, Name: names[order.UserKind.Name] + "-credentials"}, user)
	l.keystone.With(func() {
		for _, u := range l.keystone.Users {
			lines = append(lines, fmt.Sprintf("user %s in Keystone, password as delivered %t", u.Name, u.Password == string(user.Data["password"])))
		}
		for _, p := range l.keystone.Projects {
			lines = append(lines, fmt.Sprintf("project %s in Keystone", p.Name))
		}
		lines = append(lines, fmt.Sprintf("%d grants in Keystone", len(l.keystone.Grants)))
	})
	slices.Sort(lines)
	return lines
}

// requireNothingLeft is for the end: no orphan in Keystone, none in the store, and no child.
func (l *life) requireNothingLeft() {
	l.tb.Helper()
	if children := l.children(); len(children) > 0 {
		l.fail("children are left: %v", children)
	}
	secrets := &corev1.SecretList{}
	l.must(l.people.List(l.ctx, secrets, client.InNamespace(l.tenant)))
	if len(secrets.Items) > 0 {
		l.fail("a Secret is left beside the orders: %s", secrets.Items[0].Name)
	}
	if len(l.eso.Store) > 0 {
		l.fail("the store still holds %v", slices.Sorted(maps.Keys(l.eso.Store)))
	}
	l.keystone.With(func() {
		if k := l.keystone; len(k.Credentials) > 0 || len(k.Users) > 1 || len(k.Projects) > 1 || len(k.Grants) > 0 {
			l.fail("Keystone still has %d credentials, %d users and %d projects beside the administrator's, %d grants",
				len(k.Credentials), len(k.Users)-1, len(k.Projects)-1, len(k.Grants))
		}
	})
}

func items(list client.ObjectList) []client.Object {
	var found []client.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error { // the function below never fails
		found = append(found, item.(client.Object))
		return nil
	})
	return found
}
