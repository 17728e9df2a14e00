// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
)

const (
	// name of the namespace of the orders and of their ControlPlane, and the beginning of every other
	// name of the run. It is the same for every run, so that one can clear up after another.
	name = "soak"
	// people is how many users, projects and assignments share the credential orders.
	people = 5

	interval, grace = 3 * time.Minute, 2 * time.Minute
	// apart is the time between the creation of two credential orders. Were all created at once, they
	// would rotate at once, and most kills would hit nothing that is under way.
	apart = 4 * time.Second
)

// orders are what the run places and, in the end, takes away.
type orders struct {
	api      client.Client
	stack    stack
	registry *registry
	// plane is the namespace of the ControlPlane, where the stack keeps the admin password and the store.
	plane string
	count int
}

func (o *orders) users() []string    { return numbered("soak-user", people) }
func (o *orders) projects() []string { return numbered("soak-project", people) }

// credentials are the names of the orders that rotate.
func (o *orders) credentials() []string { return numbered("soak-order", o.count) }

func numbered(prefix string, count int) []string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf("%s-%02d", prefix, i+1))
	}
	return all
}

// place orders everything and waits until all of it is Ready.
func (o *orders) place(ctx context.Context) error {
	if err := o.api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	plane := &v1alpha1.ControlPlane{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.plane},
		Spec: v1alpha1.ControlPlaneSpec{
			Services: v1alpha1.ServicesSpec{Keystone: v1alpha1.KeystoneServiceSpec{
				Mode: v1alpha1.KeystoneExternal, External: &v1alpha1.ExternalKeystone{AuthURL: os.Getenv("OS_AUTH_URL")},
			}},
			NamespaceAssignments: []v1alpha1.NamespaceAssignment{{Namespace: name, AllowedRoles: []string{"member"}}},
		},
	}
	if err := o.api.Create(ctx, plane); err != nil {
		return err
	}
	ref := v1alpha1.ControlPlaneRefSpec{Name: name, Namespace: o.plane}
	for i, user := range o.users() {
		project := v1alpha1.OrderRef{Name: o.projects()[i]}
		for _, object := range []client.Object{
			&v1alpha1.KeystoneUser{ObjectMeta: o.meta(user), Spec: v1alpha1.KeystoneUserSpec{ControlPlaneRef: ref}},
			&v1alpha1.KeystoneProject{ObjectMeta: o.meta(project.Name), Spec: v1alpha1.KeystoneProjectSpec{ControlPlaneRef: ref}},
			&v1alpha1.KeystoneRoleAssignment{ObjectMeta: o.meta(user), Spec: v1alpha1.KeystoneRoleAssignmentSpec{
				ControlPlaneRef: ref, UserRef: v1alpha1.OrderRef{Name: user}, ProjectRef: project, Role: "member",
			}},
		} {
			if err := o.api.Create(ctx, object); err != nil {
				return err
			}
		}
	}
	for i, credential := range o.credentials() {
		err := o.api.Create(ctx, &v1alpha1.KeystoneApplicationCredential{ObjectMeta: o.meta(credential), Spec: v1alpha1.KeystoneApplicationCredentialSpec{
			ControlPlaneRef: ref,
			UserRef:         v1alpha1.OrderRef{Name: o.users()[i%people]}, ProjectRef: v1alpha1.OrderRef{Name: o.projects()[i%people]},
			Rotation: v1alpha1.CredentialRotationSpec{
				Interval: &metav1.Duration{Duration: interval}, GracePeriod: &metav1.Duration{Duration: grace},
			},
		}})
		if err != nil {
			return err
		}
		o.registry.own(name, credential)
		if err := pause(ctx, apart); err != nil {
			return err
		}
	}
	if err := within(ctx, 5*time.Minute, o.ready); err != nil {
		return fmt.Errorf("the orders do not turn Ready: %w", err)
	}
	return o.meet(ctx)
}

func (o *orders) meta(object string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: name, Name: object}
}

// meet tells the registry who the users are in Keystone.
func (o *orders) meet(ctx context.Context) error {
	users := &v1alpha1.KeystoneUserList{}
	if err := o.api.List(ctx, users, client.InNamespace(name)); err != nil {
		return err
	}
	for _, user := range users.Items {
		if user.Status.UserID == "" {
			return fmt.Errorf("KeystoneUser %s has no id in Keystone", user.Name)
		}
		o.registry.users = append(o.registry.users, user.Status.UserID)
	}
	return nil
}

// ready is nil when every order is, or names those that are not, with what they wait for.
func (o *orders) ready(ctx context.Context) error {
	var waiting []string
	for _, kind := range order.Kinds {
		all, err := o.list(ctx, kind)
		if err != nil {
			return err
		}
		for _, one := range all {
			if !meta.IsStatusConditionTrue(*one.GetConditions(), v1alpha1.ConditionReady) || one.GetObservedGeneration() != one.GetGeneration() {
				waiting = append(waiting, describe(kind, one))
			}
		}
	}
	if len(waiting) > 0 {
		return errors.New(strings.Join(waiting, "; "))
	}
	return nil
}

func (o *orders) list(ctx context.Context, kind order.Kind) ([]order.Object, error) {
	list := kind.NewList()
	if err := o.api.List(ctx, list, client.InNamespace(name)); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	all := make([]order.Object, 0, len(items))
	for _, item := range items {
		all = append(all, item.(order.Object)) // what Kind.NewList holds
	}
	return all, nil
}

func describe(kind order.Kind, one order.Object) string {
	words := fmt.Sprintf("%s %s", kind.Name, one.GetName())
	for _, c := range *one.GetConditions() {
		if c.Status != metav1.ConditionTrue && c.Type != v1alpha1.ConditionReady {
			words += fmt.Sprintf(" %s %s (%s)", c.Type, c.Reason, c.Message)
		}
	}
	return words
}

// deletionPatience is how long a deletion may take that nothing disturbs.
const deletionPatience = 4 * time.Minute

// remove deletes everything and returns what is left. The credential orders go first and alone: Keystone
// deletes a user's credentials with the user, and would cover up for an operator that forgot one.
func (o *orders) remove(ctx context.Context) (left []string, err error) {
	held, err := o.drain(ctx, order.ApplicationCredentialKind)
	if err != nil {
		return nil, err
	}
	left = append(left, held...)
	names, err := o.registry.credentials(ctx)
	if err != nil {
		return nil, err
	}
	for _, credential := range names {
		left = append(left, "Keystone application credential "+credential)
	}
	held, err = o.drain(ctx, order.RoleAssignmentKind, order.UserKind, order.ProjectKind)
	if err != nil {
		return nil, err
	}
	left = append(left, held...)
	for _, look := range []func(context.Context) ([]string, error){
		func(ctx context.Context) ([]string, error) { return o.registry.named(ctx, o.users(), o.projects()) },
		func(ctx context.Context) ([]string, error) {
			return o.managed(ctx, schema.GroupVersion{Version: "v1"}, "Secret", name)
		},
		func(ctx context.Context) ([]string, error) {
			return o.stack.stored(ctx, "openstack/keystone/"+o.plane+"/"+name+"-")
		},
		o.removePlane,
	} {
		found, err := look(ctx)
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	return left, nil
}

// drain deletes all orders of some kinds and returns those that do not go.
func (o *orders) drain(ctx context.Context, kinds ...order.Kind) ([]string, error) {
	for _, kind := range kinds {
		if err := o.api.DeleteAllOf(ctx, kind.New(), client.InNamespace(name)); err != nil {
			return nil, err
		}
	}
	var held []string
	err := within(ctx, deletionPatience, func(ctx context.Context) error {
		held = nil
		for _, kind := range kinds {
			all, err := o.list(ctx, kind)
			if err != nil {
				return err
			}
			for _, one := range all {
				held = append(held, fmt.Sprintf("%s, held by %v", describe(kind, one), one.GetFinalizers()))
			}
		}
		if len(held) > 0 {
			return errHeld
		}
		return nil
	})
	if errors.Is(err, errHeld) {
		return held, nil
	}
	return held, err
}

var errHeld = errors.New("not everything is deleted")

// removePlane deletes the ControlPlane and the namespace, and returns what of the operator's is left in the
// ControlPlane's namespace: nothing may be, of the orders or of the ControlPlane itself.
func (o *orders) removePlane(ctx context.Context) (left []string, err error) {
	for _, object := range []client.Object{
		&v1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.plane}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
	} {
		err := within(ctx, deletionPatience, func(ctx context.Context) error {
			err := o.api.Delete(ctx, object)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			return errHeld
		})
		if errors.Is(err, errHeld) {
			left = append(left, fmt.Sprintf("%T %s is not deleted", object, object.GetName()))
		} else if err != nil {
			return nil, err
		}
	}
	for _, kind := range []struct {
		version schema.GroupVersion
		names   []string
	}{
		{schema.GroupVersion{Version: "v1"}, []string{"Secret"}},
		{schema.GroupVersion{Group: "openstack.k-orc.cloud", Version: "v1alpha1"}, []string{"ApplicationCredential", "User", "Project", "Role", "Domain"}},
		{schema.GroupVersion{Group: "external-secrets.io", Version: "v1alpha1"}, []string{"PushSecret"}},
	} {
		for _, each := range kind.names {
			found, err := o.managed(ctx, kind.version, each, o.plane)
			if err != nil {
				return nil, err
			}
			left = append(left, found...)
		}
	}
	return left, nil
}

// managed lists the operator's objects of a kind in a namespace that belong to this run. Only names are
// asked for.
func (o *orders) managed(ctx context.Context, version schema.GroupVersion, kind, namespace string) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(version.WithKind(kind + "List"))
	if err := o.api.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{order.ManagedByLabel: order.ManagedByValue}); err != nil {
		return nil, err
	}
	var found []string
	for _, one := range list.Items {
		if strings.HasPrefix(one.Name, name+"-") {
			found = append(found, fmt.Sprintf("%s %s/%s", kind, namespace, one.Name))
		}
	}
	return found, nil
}
