package ordertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
)

// FakeKORC imitates K-ORC v2.6.0 as orders meet it, weaknesses included, and asks Keystone over HTTP, so
// that a fault in between meets it as it meets K-ORC:
//
//   - an object that is settled is not looked at again; there is no resync
//   - a list that fails finds nothing, so a name seems free and a lost create is not adopted
//   - a create or update that breaks off or conflicts is given up as InvalidConfiguration
//   - a user or project that cannot be found is given up as UnrecoverableError
//   - an application credential that cannot be read counts as gone: deleting one lets go of it
//   - what has a namesake is adopted
//   - a password is sent when the name of its Secret changes, and never on the first look
//
// It does nothing by itself: a test plays look after look.
type FakeKORC struct {
	Client client.Client
	// Namespace is the one that it works in.
	Namespace string
	// Now is its clock.
	Now func() time.Time
	// HTTP is how it reaches Keystone.
	HTTP *http.Client
	// Stuck leaves an object alone, with the reason and message of its Progressing condition, when the
	// reason is not empty. Nil leaves none.
	Stuck func(client.Object) (reason, message string)

	sessions map[string]korcSession
}

// korcSession is a login that K-ORC keeps for half the life of its token.
type korcSession struct {
	authURL, token, userID string
	until                  time.Time
}

const (
	// guardFinalizer keeps what an ApplicationCredential needs until the last one is gone.
	guardFinalizer = "openstack.k-orc.cloud/applicationcredential"
	// deletedFromOpenStack is K-ORC's message about a resource that it does not find any more.
	deletedFromOpenStack = "resource has been deleted from OpenStack"

	korcPollsImport   = 15 * time.Second
	korcPollsDeletion = time.Second
	korcBacksOff      = 5 * time.Second
)

// korcKind is what the kinds differ in. Every function may fail with a korcRefusal or a broken connection.
type korcKind struct {
	object order.KORCObject
	// before is the object as it was read, to tell what changed.
	before  client.Object
	id      **string
	cloud   orcv1alpha1.CloudCredentialsReference
	managed bool
	// find lists the ids that an import or an adoption matches.
	find func(korcSession) ([]string, error)
	// get reads the resource and puts what it says into the status.
	get func(korcSession, string) error
	// create makes the resource. It waits when it returns a message.
	create func(korcSession) (id, wait string, err error)
	// update brings the resource to what the object says; nil for kinds that are never updated.
	update func(korcSession, string) (wait string, err error)
	remove func(korcSession, string) (wait string, err error)
}

// korcRefusal is an answer of Keystone's, or of something before it.
type korcRefusal struct {
	method, url, body string
	status            int
}

// Error reads like gophercloud's.
func (e *korcRefusal) Error() string {
	return fmt.Sprintf("Expected HTTP response code [200 201 204] when accessing [%s %s], but got %d instead: %s", e.method, e.url, e.status, e.body)
}

func korcNotFound(err error) bool {
	var refusal *korcRefusal
	return errors.As(err, &refusal) && refusal.status == http.StatusNotFound
}

// Play is one look at every object that K-ORC would look at now. It returns when K-ORC would look again by
// itself, zero for never.
func (k *FakeKORC) Play(ctx context.Context) (time.Time, error) {
	if k.sessions == nil {
		k.sessions = map[string]korcSession{}
	}
	kinds, err := k.objects(ctx)
	if err != nil {
		return time.Time{}, err
	}
	var next time.Time
	for _, kind := range kinds {
		after, err := k.look(ctx, kind)
		// A lost race is somebody else's write, which wakes K-ORC again.
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return time.Time{}, err
		}
		if at := k.Now().Add(after); after > 0 && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, k.liftGuards(ctx)
}

// objects are K-ORC's objects, the ones that others depend on first.
func (k *FakeKORC) objects(ctx context.Context) ([]korcKind, error) {
	domains, users, projects := &orcv1alpha1.DomainList{}, &orcv1alpha1.UserList{}, &orcv1alpha1.ProjectList{}
	roles, credentials := &orcv1alpha1.RoleList{}, &orcv1alpha1.ApplicationCredentialList{}
	for _, list := range []client.ObjectList{domains, users, projects, roles, credentials} {
		if err := k.Client.List(ctx, list, client.InNamespace(k.Namespace)); err != nil {
			return nil, err
		}
	}
	var kinds []korcKind
	for i := range domains.Items {
		kinds = append(kinds, k.domain(&domains.Items[i]))
	}
	for i := range users.Items {
		kinds = append(kinds, k.user(ctx, &users.Items[i]))
	}
	for i := range projects.Items {
		kinds = append(kinds, k.project(&projects.Items[i]))
	}
	for i := range roles.Items {
		kinds = append(kinds, k.role(&roles.Items[i]))
	}
	for i := range credentials.Items {
		kinds = append(kinds, k.credential(ctx, &credentials.Items[i]))
	}
	return kinds, nil
}

// look is one pass of K-ORC's over one object.
func (k *FakeKORC) look(ctx context.Context, kind korcKind) (again time.Duration, err error) {
	object := kind.object
	kind.before = object.DeepCopyObject().(client.Object)
	deleting := !object.GetDeletionTimestamp().IsZero()
	progressing := meta.FindStatusCondition(object.GetConditions(), orcv1alpha1.ConditionProgressing)
	if !deleting && progressing != nil && progressing.Status == metav1.ConditionFalse && progressing.ObservedGeneration == object.GetGeneration() {
		return 0, nil
	}
	if k.Stuck != nil {
		if reason, message := k.Stuck(object); reason != "" {
			return 0, k.report(ctx, kind, false, reason, message)
		}
	}
	session, err := k.session(ctx, kind.cloud)
	if err != nil {
		return korcBacksOff, k.report(ctx, kind, false, orcv1alpha1.ConditionReasonTransientError, err.Error())
	}
	if deleting {
		return k.lookAtDeleted(ctx, kind, session)
	}
	if controllerutil.AddFinalizer(object, korcFinalizer) {
		if err := k.Client.Update(ctx, object); err != nil {
			return 0, err
		}
		kind.before = object.DeepCopyObject().(client.Object)
	}
	found, wait, err := k.getOrCreate(kind, session)
	if err == nil && wait == "" && *kind.id == nil {
		*kind.id = &found
		err = kind.get(session, found)
	}
	if err == nil && wait == "" && kind.managed && kind.update != nil {
		if wait, err = kind.update(session, found); err == nil && wait == "" {
			err = kind.get(session, found)
		}
	}
	var terminal *korcTerminal
	switch {
	case errors.As(err, &terminal):
		return 0, k.report(ctx, kind, found != "", terminal.reason, terminal.message)
	case err != nil:
		return korcBacksOff, k.report(ctx, kind, found != "", orcv1alpha1.ConditionReasonTransientError, err.Error())
	case wait != "":
		return korcPollsImport, k.report(ctx, kind, found != "", orcv1alpha1.ConditionReasonProgressing, wait)
	}
	return 0, k.report(ctx, kind, true, orcv1alpha1.ConditionReasonSuccess, "OpenStack resource is up to date")
}

// korcTerminal is an error after which K-ORC does not try again.
type korcTerminal struct{ reason, message string }

// Error implements error.
func (e *korcTerminal) Error() string { return e.message }

// givenUp decides which failures of a create or an update K-ORC tries again: those that an HTTP status
// tells of, but for a conflict.
func givenUp(doing string, err error) error {
	var refusal *korcRefusal
	if err == nil || errors.As(err, &refusal) && refusal.status != http.StatusConflict && refusal.status != http.StatusNotImplemented {
		return err
	}
	return &korcTerminal{orcv1alpha1.ConditionReasonInvalidConfiguration, "invalid configuration " + doing + " resource: " + err.Error()}
}

func (k *FakeKORC) getOrCreate(kind korcKind, session korcSession) (id, wait string, err error) {
	if known := ptr.Deref(*kind.id, ""); known != "" {
		err := kind.get(session, known)
		if korcNotFound(err) {
			return "", "", &korcTerminal{orcv1alpha1.ConditionReasonUnrecoverableError, deletedFromOpenStack}
		}
		if err != nil {
			return "", "", err
		}
		return known, "", nil
	}
	found, err := kind.find(session)
	if err != nil {
		found = nil // K-ORC swallows it
	}
	switch {
	case len(found) > 1 && kind.managed:
		return "", "", &korcTerminal{orcv1alpha1.ConditionReasonInvalidConfiguration, "found more than one matching OpenStack resource during adoption"}
	case len(found) > 1:
		return "", "", &korcTerminal{orcv1alpha1.ConditionReasonInvalidConfiguration, "found more than one matching OpenStack resource during import"}
	case len(found) == 1:
		return found[0], "", nil
	case !kind.managed:
		return "", "Waiting for OpenStack resource to be created externally", nil
	}
	id, wait, err = kind.create(session)
	return id, wait, givenUp("creating", err)
}

func (k *FakeKORC) lookAtDeleted(ctx context.Context, kind korcKind, session korcSession) (time.Duration, error) {
	object := kind.object
	id := ptr.Deref(*kind.id, "")
	there := false
	if id != "" {
		err := kind.get(session, id)
		if err != nil && !korcNotFound(err) {
			return korcBacksOff, k.report(ctx, kind, false, orcv1alpha1.ConditionReasonTransientError, err.Error())
		}
		there = err == nil
	}
	for _, finalizer := range object.GetFinalizers() {
		if finalizer != korcFinalizer {
			return 0, k.report(ctx, kind, there, orcv1alpha1.ConditionReasonProgressing, "Waiting for finalizer "+finalizer+" to be removed")
		}
	}
	if id == "" && kind.managed {
		if found, err := kind.find(session); err == nil && len(found) == 1 {
			id, there = found[0], true
		}
	}
	if !kind.managed || !there {
		controllerutil.RemoveFinalizer(object, korcFinalizer)
		return 0, k.Client.Update(ctx, object)
	}
	wait, err := kind.remove(session, id)
	switch {
	case err != nil:
		return korcBacksOff, k.report(ctx, kind, true, orcv1alpha1.ConditionReasonTransientError, err.Error())
	case wait != "":
		return 0, k.report(ctx, kind, true, orcv1alpha1.ConditionReasonProgressing, wait)
	}
	return korcPollsDeletion, k.report(ctx, kind, true, orcv1alpha1.ConditionReasonProgressing, "Waiting for OpenStack resource to be deleted")
}

// report writes conditions and status, when they changed. An object whose resource was not read on this
// look is not available, or nobody knows.
func (k *FakeKORC) report(ctx context.Context, kind korcKind, there bool, reason, message string) error {
	object := kind.object
	available, progressing := metav1.ConditionTrue, metav1.ConditionFalse
	switch {
	case !there && *kind.id == nil:
		available = metav1.ConditionFalse
	case !there:
		available = metav1.ConditionUnknown
	}
	if reason == orcv1alpha1.ConditionReasonProgressing || reason == orcv1alpha1.ConditionReasonTransientError {
		progressing = metav1.ConditionTrue
	}
	conditions := kind.conditions()
	set := func(condition string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(conditions, metav1.Condition{Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: object.GetGeneration()})
	}
	set(orcv1alpha1.ConditionProgressing, progressing, reason, message)
	if there {
		reason, message = orcv1alpha1.ConditionReasonSuccess, "OpenStack resource is available"
	}
	set(orcv1alpha1.ConditionAvailable, available, reason, message)
	if equality.Semantic.DeepEqual(kind.before, object) {
		return nil
	}
	return k.Client.Status().Patch(ctx, object, client.MergeFrom(kind.before))
}

func (k korcKind) conditions() *[]metav1.Condition {
	switch object := k.object.(type) {
	case *orcv1alpha1.Domain:
		return &object.Status.Conditions
	case *orcv1alpha1.User:
		return &object.Status.Conditions
	case *orcv1alpha1.Project:
		return &object.Status.Conditions
	case *orcv1alpha1.Role:
		return &object.Status.Conditions
	case *orcv1alpha1.ApplicationCredential:
		return &object.Status.Conditions
	}
	panic(fmt.Sprintf("FakeKORC does not know %T", k.object))
}

// session logs in with the cloud that an object names, or takes the login that is there.
func (k *FakeKORC) session(ctx context.Context, ref orcv1alpha1.CloudCredentialsReference) (korcSession, error) {
	secret := &corev1.Secret{}
	if err := k.Client.Get(ctx, types.NamespacedName{Namespace: k.Namespace, Name: ref.SecretName}, secret); err != nil {
		return korcSession{}, fmt.Errorf("waiting for Secret/%s to be created", ref.SecretName)
	}
	document := secret.Data[clouds.SecretKey]
	parsed, err := clouds.Parse(document)
	if err != nil || parsed[ref.CloudName].Password == nil {
		return korcSession{}, fmt.Errorf("unable to parse clouds.yaml of Secret/%s", ref.SecretName)
	}
	if known, ok := k.sessions[string(document)]; ok && k.Now().Before(known.until) {
		return known, nil
	}
	cloud := parsed[ref.CloudName]
	auth := map[string]any{"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{
		"name": cloud.Password.Username, "password": cloud.Password.Password, "domain": map[string]any{"name": cloud.Password.UserDomainName},
	}}}}
	if cloud.Password.ProjectName != "" {
		auth["scope"] = map[string]any{"project": map[string]any{"name": cloud.Password.ProjectName, "domain": map[string]any{"name": cloud.Password.ProjectDomainName}}}
	}
	session := korcSession{authURL: strings.TrimSuffix(cloud.AuthURL, "/v3"), until: k.Now().Add(tokenLifetime / 2)}
	var answer struct {
		Token struct{ User struct{ ID string } }
	}
	header, err := k.exchange(session, http.MethodPost, tokensPath, map[string]any{"auth": auth}, &answer)
	if err != nil {
		return korcSession{}, fmt.Errorf("providerClient authentication err: %w", err)
	}
	session.token, session.userID = header.Get("X-Subject-Token"), answer.Token.User.ID
	k.sessions[string(document)] = session
	return session, nil
}

// ask sends one request. A token that Keystone does not take any more is dropped, and the next look logs
// in anew.
func (k *FakeKORC) ask(session korcSession, method, path string, body, answer any) error {
	_, err := k.exchange(session, method, "/v3/"+path, body, answer)
	var refusal *korcRefusal
	if errors.As(err, &refusal) && refusal.status == http.StatusUnauthorized {
		for document, known := range k.sessions {
			if known.token == session.token {
				delete(k.sessions, document)
			}
		}
	}
	return err
}

func (k *FakeKORC) exchange(session korcSession, method, path string, body, answer any) (http.Header, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(method, session.authURL+path, bytes.NewReader(content)) //nolint:noctx // HTTP's own timeout ends it
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Auth-Token", session.token)
	request.Header.Set("User-Agent", "fake-korc")
	response, err := k.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode >= 300:
		return nil, &korcRefusal{method, request.URL.String(), strings.TrimSpace(string(read)), response.StatusCode}
	case answer != nil:
		return response.Header, json.Unmarshal(read, answer)
	}
	return response.Header, nil
}

type korcResource struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// named lists the ids in an answer's list.
func (k *FakeKORC) named(session korcSession, path, key, name string) ([]string, error) {
	var answer map[string]json.RawMessage
	if err := k.ask(session, http.MethodGet, path+"?"+url.Values{"name": {name}, "domain_id": {domainID}}.Encode(), nil, &answer); err != nil {
		return nil, err
	}
	var resources []korcResource
	if err := json.Unmarshal(answer[key], &resources); err != nil {
		return nil, err
	}
	var ids []string
	for _, resource := range resources {
		ids = append(ids, resource.ID)
	}
	return ids, nil
}

func (k *FakeKORC) read(session korcSession, path, key string) (korcResource, error) {
	var answer map[string]korcResource
	err := k.ask(session, http.MethodGet, path, nil, &answer)
	return answer[key], err
}

// make creates a resource and returns its id.
func (k *FakeKORC) make(session korcSession, path, key string, fields map[string]any) (string, error) {
	var answer map[string]korcResource
	err := k.ask(session, http.MethodPost, path, map[string]any{key: fields}, &answer)
	return answer[key].ID, err
}

func (k *FakeKORC) domain(object *orcv1alpha1.Domain) korcKind {
	return korcKind{
		object: object, id: &object.Status.ID, cloud: object.Spec.CloudCredentialsRef,
		find: func(s korcSession) ([]string, error) { return k.named(s, "domains", "domains", domainName) },
		get: func(s korcSession, id string) error {
			_, err := k.read(s, "domains/"+id, "domain")
			return err
		},
	}
}

func (k *FakeKORC) role(object *orcv1alpha1.Role) korcKind {
	return korcKind{
		object: object, id: &object.Status.ID, cloud: object.Spec.CloudCredentialsRef,
		find: func(s korcSession) ([]string, error) {
			return k.named(s, "roles", "roles", string(*object.Spec.Import.Filter.Name))
		},
		get: func(s korcSession, id string) error {
			_, err := k.read(s, "roles/"+id, "role")
			return err
		},
	}
}

func (k *FakeKORC) project(object *orcv1alpha1.Project) korcKind {
	resource := object.Spec.Resource
	name := ""
	if resource != nil {
		name = string(*resource.Name)
	} else {
		name = string(*object.Spec.Import.Filter.Name)
	}
	return korcKind{
		object: object, id: &object.Status.ID, cloud: object.Spec.CloudCredentialsRef, managed: resource != nil,
		find: func(s korcSession) ([]string, error) { return k.named(s, "projects", "projects", name) },
		get: func(s korcSession, id string) error {
			found, err := k.read(s, "projects/"+id, "project")
			if err == nil {
				object.Status.Resource = &orcv1alpha1.ProjectResourceStatus{Name: found.Name, Description: found.Description}
			}
			return err
		},
		create: func(s korcSession) (string, string, error) {
			id, err := k.make(s, "projects", "project", map[string]any{"name": name, "description": ptr.Deref(resource.Description, "")})
			return id, "", err
		},
		remove: func(s korcSession, id string) (string, error) {
			return "", k.ask(s, http.MethodDelete, "projects/"+id, nil, nil)
		},
	}
}

func (k *FakeKORC) user(ctx context.Context, object *orcv1alpha1.User) korcKind {
	resource := object.Spec.Resource
	name := ""
	if resource != nil {
		name = string(*resource.Name)
	} else {
		name = string(*object.Spec.Import.Filter.Name)
	}
	return korcKind{
		object: object, id: &object.Status.ID, cloud: object.Spec.CloudCredentialsRef, managed: resource != nil,
		find: func(s korcSession) ([]string, error) { return k.named(s, "users", "users", name) },
		get: func(s korcSession, id string) error {
			found, err := k.read(s, "users/"+id, "user")
			if err == nil {
				applied := ""
				if object.Status.Resource != nil {
					applied = object.Status.Resource.AppliedPasswordRef
				}
				object.Status.Resource = &orcv1alpha1.UserResourceStatus{Name: found.Name, Description: found.Description, AppliedPasswordRef: applied}
			}
			return err
		},
		create: func(s korcSession) (string, string, error) {
			password, wait := k.secretValue(ctx, string(*resource.PasswordRef), "password")
			if wait != "" {
				return "", wait, nil
			}
			id, err := k.make(s, "users", "user", map[string]any{
				"name": name, "description": ptr.Deref(resource.Description, ""), "domain_id": domainID, "password": password,
			})
			return id, "", err
		},
		update: func(s korcSession, id string) (string, error) { return k.updateUser(ctx, s, object, id) },
		remove: func(s korcSession, id string) (string, error) {
			return "", k.ask(s, http.MethodDelete, "users/"+id, nil, nil)
		},
	}
}

// updateUser sends a password whose Secret has another name than the last one, and the description. The
// first look only takes note of the name: a create is thought to have sent the password.
func (k *FakeKORC) updateUser(ctx context.Context, s korcSession, object *orcv1alpha1.User, id string) (string, error) {
	change := map[string]any{}
	ref := string(*object.Spec.Resource.PasswordRef)
	applied := object.Status.Resource.AppliedPasswordRef
	if applied != ref && applied != "" {
		password, wait := k.secretValue(ctx, ref, "password")
		if wait != "" {
			return wait, nil
		}
		change["password"] = password
	}
	if description := ptr.Deref(object.Spec.Resource.Description, ""); object.Status.Resource.Description != description {
		change["description"] = description
	}
	if len(change) > 0 {
		if err := k.ask(s, http.MethodPatch, "users/"+id, map[string]any{"user": change}, nil); err != nil {
			return "", givenUp("updating", err)
		}
	}
	object.Status.Resource.AppliedPasswordRef = ref
	return "", nil
}

func (k *FakeKORC) secretValue(ctx context.Context, name, key string) (value, wait string) {
	secret := &corev1.Secret{}
	if err := k.Client.Get(ctx, types.NamespacedName{Namespace: k.Namespace, Name: name}, secret); err != nil {
		return "", "Waiting for Secret/" + name + " to be created"
	}
	content, ok := secret.Data[key]
	if !ok {
		return "", "Secret/" + name + " does not contain \"" + key + "\" key"
	}
	return string(content), ""
}

func (k *FakeKORC) credential(ctx context.Context, object *orcv1alpha1.ApplicationCredential) korcKind {
	resource := object.Spec.Resource
	owner := func() (string, string) {
		user := &orcv1alpha1.User{}
		err := k.Client.Get(ctx, types.NamespacedName{Namespace: k.Namespace, Name: string(resource.UserRef)}, user)
		if err != nil || !orcv1alpha1.IsAvailable(user) || user.Status.ID == nil {
			return "", "Waiting for User/" + string(resource.UserRef) + " to be ready"
		}
		return *user.Status.ID, ""
	}
	path := func(user string) string { return "users/" + user + "/application_credentials" }
	return korcKind{
		object: object, id: &object.Status.ID, cloud: object.Spec.CloudCredentialsRef, managed: true,
		find: func(s korcSession) ([]string, error) {
			user, wait := owner()
			if wait != "" {
				return nil, nil
			}
			return k.named(s, path(user), "application_credentials", object.Name)
		},
		get: func(s korcSession, id string) error {
			// K-ORC looks among the credentials of whoever it logged in as, and takes any failure for
			// an absence.
			if _, err := k.read(s, path(s.userID)+"/"+id, "application_credential"); err != nil {
				return &korcRefusal{http.MethodGet, "ApplicationCredential", "Unable to find ApplicationCredential with name " + id, http.StatusNotFound}
			}
			return nil
		},
		create: func(s korcSession) (string, string, error) {
			if wait, err := k.guard(ctx, object); wait != "" || err != nil {
				return "", wait, err
			}
			user, wait := owner()
			if wait != "" {
				return "", wait, nil
			}
			secret, wait := k.secretValue(ctx, string(resource.SecretRef), "value")
			if wait != "" {
				return "", wait, nil
			}
			fields := map[string]any{"name": object.Name, "description": ptr.Deref(resource.Description, ""), "secret": secret}
			if resource.ExpiresAt != nil {
				fields["expires_at"] = resource.ExpiresAt.UTC().Format(expiryLayout)
			}
			id, err := k.make(s, path(user), "application_credential", fields)
			return id, "", err
		},
		remove: func(s korcSession, id string) (string, error) {
			user, wait := owner()
			if wait != "" {
				return wait, nil
			}
			return "", k.ask(s, http.MethodDelete, path(user)+"/"+id, nil, nil)
		},
	}
}

// guard puts K-ORC's finalizer on what a credential needs to be deleted again.
func (k *FakeKORC) guard(ctx context.Context, object *orcv1alpha1.ApplicationCredential) (wait string, err error) {
	for name, needed := range map[string]client.Object{
		object.Spec.CloudCredentialsRef.SecretName: &corev1.Secret{}, string(object.Spec.Resource.UserRef): &orcv1alpha1.User{},
	} {
		if apierrors.IsNotFound(k.Client.Get(ctx, types.NamespacedName{Namespace: k.Namespace, Name: name}, needed)) {
			return fmt.Sprintf("Waiting for %T %s to be created", needed, name), nil
		}
		if !needed.GetDeletionTimestamp().IsZero() {
			return fmt.Sprintf("Waiting for %T %s, which is being deleted", needed, name), nil
		}
		if controllerutil.AddFinalizer(needed, guardFinalizer) {
			if err := k.Client.Update(ctx, needed); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// liftGuards takes that finalizer off what is being deleted, once no credential needs it any more.
func (k *FakeKORC) liftGuards(ctx context.Context) error {
	secrets, users, credentials := &corev1.SecretList{}, &orcv1alpha1.UserList{}, &orcv1alpha1.ApplicationCredentialList{}
	for _, list := range []client.ObjectList{secrets, users, credentials} {
		if err := k.Client.List(ctx, list, client.InNamespace(k.Namespace)); err != nil {
			return err
		}
	}
	var guarded []client.Object
	for i := range secrets.Items {
		guarded = append(guarded, &secrets.Items[i])
	}
	for i := range users.Items {
		guarded = append(guarded, &users.Items[i])
	}
	for _, object := range guarded {
		needed := slices.ContainsFunc(credentials.Items, func(c orcv1alpha1.ApplicationCredential) bool {
			_, user := object.(*orcv1alpha1.User)
			return user && string(c.Spec.Resource.UserRef) == object.GetName() || !user && c.Spec.CloudCredentialsRef.SecretName == object.GetName()
		})
		if needed || object.GetDeletionTimestamp().IsZero() || !controllerutil.RemoveFinalizer(object, guardFinalizer) {
			continue
		}
		if err := k.Client.Update(ctx, object); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
