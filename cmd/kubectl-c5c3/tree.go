// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/keystoneroleassignment/korcapi"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/externalsecrets"
)

func (p *plugin) treeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tree KIND/NAME",
		Short: "Show what belongs to an order, or the orders of a ControlPlane",
		Long: `Show an order with what it refers to, its Secret, and what the operator made for it in the ControlPlane's
namespace: conditions, ages, Keystone's ids, and when it rotates next. Of a ControlPlane, show its orders.

Of Secrets only names and ages are read.`,
		Example: `  kubectl c5c3 tree kappcred/workflow-appcred
  kubectl c5c3 tree cplane/cp -n openstack`,
		Args:              oneSubject,
		ValidArgsFunction: p.completeSubjects(false, kinds...),
		RunE:              func(cmd *cobra.Command, args []string) error { return p.tree(cmd.Context(), args) },
	}
}

func (p *plugin) tree(ctx context.Context, args []string) error {
	k, name, err := parseArguments(args)
	if err != nil {
		return err
	}
	if name == "" {
		return wrongUse("%q is not KIND/NAME", args[0])
	}
	cluster, namespace, err := p.cluster()
	if err != nil {
		return err
	}
	s, err := read(ctx, cluster, reference{k.name, namespace, name})
	if err != nil {
		return err
	}
	var root node
	if o, ok := s.(order.Object); ok {
		root, err = orderTree(ctx, cluster, o)
	} else {
		root, err = planeTree(ctx, cluster, s.(*v1alpha1.ControlPlane))
	}
	if err != nil {
		return err
	}
	if !p.forPeople() {
		return p.print(root)
	}
	p.table(p.treeRows(root))
	return nil
}

// orderTree reads what belongs to an order. What may not be read, or does not exist, has a node that says
// so; any other failure to read is an error, since a tree with a hole in it would be believed.
func orderTree(ctx context.Context, cluster client.Reader, o order.Object) (node, error) {
	root := subjectNode(o)
	for _, r := range references(o) {
		child, err := referenceNode(ctx, cluster, r)
		if err != nil {
			return node{}, err
		}
		root.Nodes = append(root.Nodes, child)
	}
	if assigned, ok := o.(*v1alpha1.KeystoneApplicationCredential); ok {
		roles, err := roleNodes(ctx, cluster, assigned)
		if err != nil {
			return node{}, err
		}
		root.Nodes = append(root.Nodes, roles...)
	}
	if name := deliveredName(o); name != "" {
		secret, err := secretNode(ctx, cluster, types.NamespacedName{Namespace: o.GetNamespace(), Name: name})
		if err != nil {
			return node{}, err
		}
		root.Nodes = append(root.Nodes, secret)
	}
	children, err := childrenNode(ctx, cluster, o)
	if err != nil {
		return node{}, err
	}
	root.Nodes = append(root.Nodes, children)
	return root, nil
}

// references are what an order names, in the order in which it needs them.
func references(o order.Object) []reference {
	all := []reference{planeOf(o)}
	if user, project := order.References(o); user != "" {
		all = append(all,
			reference{order.UserKind.Name, o.GetNamespace(), user},
			reference{order.ProjectKind.Name, o.GetNamespace(), project})
	}
	return all
}

func referenceNode(ctx context.Context, cluster client.Reader, r reference) (node, error) {
	s, err := read(ctx, cluster, r)
	if err == nil {
		return subjectNode(s), nil
	}
	return absent(r, named(r.Kind).resource(), err)
}

// absent is the node of something that is not there, or that may not be read.
func absent(r reference, resource string, err error) (node, error) {
	n := node{reference: r}
	switch {
	case apierrors.IsNotFound(err):
		n.Missing = true
	case apierrors.IsForbidden(err):
		n.NotReadable = []string{resource}
	default:
		return node{}, err
	}
	return n, nil
}

// roleNodes are the role assignments of a credential's user on its project.
func roleNodes(ctx context.Context, cluster client.Reader, credential *v1alpha1.KeystoneApplicationCredential) ([]node, error) {
	list := &v1alpha1.KeystoneRoleAssignmentList{}
	k := named(order.RoleAssignmentKind.Name)
	if err := cluster.List(ctx, list, client.InNamespace(credential.Namespace)); err != nil {
		n, err := absent(reference{Kind: k.name, Namespace: credential.Namespace}, k.resource(), err)
		return []node{n}, err
	}
	var nodes []node
	for i := range list.Items {
		if a := &list.Items[i]; a.Spec.UserRef == credential.Spec.UserRef && a.Spec.ProjectRef == credential.Spec.ProjectRef {
			nodes = append(nodes, subjectNode(a))
		}
	}
	if len(nodes) == 0 {
		nodes = []node{{reference: reference{Kind: k.name, Namespace: credential.Namespace}, Missing: true}}
	}
	return nodes, nil
}

// secretNode reads a Secret's metadata: its values are nobody's business here, and are not fetched.
func secretNode(ctx context.Context, cluster client.Reader, key types.NamespacedName) (node, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := cluster.Get(ctx, key, secret); err != nil {
		return absent(reference{"Secret", key.Namespace, key.Name}, "secrets", err)
	}
	return objectNode("Secret", secret), nil
}

// children is a kind of object that the operator makes in the ControlPlane's namespace.
type children struct {
	kind, resource string
	list           func() client.ObjectList
}

func korcChildren(kind, plural string, list func() client.ObjectList) children {
	return children{kind, plural + "." + orcv1alpha1.GroupName, list}
}

var (
	korcUsers       = korcChildren("User", "users", func() client.ObjectList { return &orcv1alpha1.UserList{} })
	korcProjects    = korcChildren("Project", "projects", func() client.ObjectList { return &orcv1alpha1.ProjectList{} })
	korcRoles       = korcChildren("Role", "roles", func() client.ObjectList { return &orcv1alpha1.RoleList{} })
	korcAssignments = korcChildren(korcapi.Kind, "roleassignments", func() client.ObjectList { return &korcapi.RoleAssignmentList{} })
	korcCredentials = korcChildren("ApplicationCredential", "applicationcredentials",
		func() client.ObjectList { return &orcv1alpha1.ApplicationCredentialList{} })
	pushSecrets = children{externalsecrets.PushSecretKind, "pushsecrets." + externalsecrets.Group,
		func() client.ObjectList { return &externalsecrets.PushSecretList{} }}
	secrets = children{"Secret", "secrets", func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		return list
	}}
)

// childrenOf are the kinds of children of each kind of order.
var childrenOf = map[string][]children{
	order.UserKind.Name:                  {korcUsers, pushSecrets, secrets},
	order.ProjectKind.Name:               {korcProjects},
	order.RoleAssignmentKind.Name:        {korcRoles, korcAssignments},
	order.ApplicationCredentialKind.Name: {korcCredentials, pushSecrets, secrets},
}

// childrenNode is the ControlPlane's namespace with what the operator made there for an order of this
// cluster. What is an order's is told by labels and name, as the operator tells it.
func childrenNode(ctx context.Context, cluster client.Reader, o order.Object) (node, error) {
	k := order.Kinds[slices.IndexFunc(order.Kinds, func(k order.Kind) bool { return k.Name == kindOf(o).name })]
	key := order.KeyOf("", o)
	labels := client.MatchingLabels(k.Labels(key))
	namespace := o.GetControlPlaneRef().Namespace
	n := namespaceNode(namespace)
	for _, of := range childrenOf[k.Name] {
		list := of.list()
		err := cluster.List(ctx, list, client.InNamespace(namespace), labels)
		switch {
		case apierrors.IsForbidden(err):
			n.NotReadable = append(n.NotReadable, of.resource)
			continue
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			// Not served here. That something is missing is for the ControlPlane's DependenciesReady to say.
			continue
		case err != nil:
			return node{}, fmt.Errorf("listing %s in namespace %s: %w", of.resource, namespace, err)
		}
		if err := meta.EachListItem(list, func(item object) error {
			if child := item.(client.Object); strings.HasPrefix(child.GetName(), k.Prefix(key)) {
				n.Nodes = append(n.Nodes, objectNode(of.kind, child))
			}
			return nil
		}); err != nil {
			return node{}, err
		}
	}
	return n, nil
}

// planeTree is a ControlPlane with its orders, by namespace. Who may not list orders in all namespaces
// gets those of the namespaces that the ControlPlane assigns, as far as they may be listed.
func planeTree(ctx context.Context, cluster client.Reader, plane *v1alpha1.ControlPlane) (node, error) {
	root := subjectNode(plane)
	w := newWorld()
	var forbidden bool
	for _, k := range orderKinds() {
		err := w.list(ctx, cluster, k, "")
		forbidden = forbidden || apierrors.IsForbidden(err)
		if err != nil && !apierrors.IsForbidden(err) {
			return node{}, err
		}
	}
	namespaces := assignedNamespaces(plane)
	if forbidden {
		for _, namespace := range namespaces {
			for _, k := range orderKinds() {
				if err := w.list(ctx, cluster, k, namespace); err != nil && !apierrors.IsForbidden(err) {
					return node{}, err
				}
			}
		}
	}
	root.Nodes = ordersByNamespace(w, plane, namespaces, forbidden)
	if forbidden {
		root.Note = "orders in namespaces that it does not assign are not shown: you may not list orders in all namespaces"
	}
	return root, nil
}

// assignedNamespaces are the namespaces of this cluster that a ControlPlane assigns.
func assignedNamespaces(plane *v1alpha1.ControlPlane) []string {
	var namespaces []string
	for _, entry := range plane.Spec.NamespaceAssignments {
		if entry.TargetClusterRef == nil {
			namespaces = append(namespaces, entry.Namespace)
		}
	}
	slices.Sort(namespaces)
	return namespaces
}

// ordersByNamespace are the namespaces that a ControlPlane assigns, and those where orders name it all
// the same, with these orders.
func ordersByNamespace(w *world, plane *v1alpha1.ControlPlane, assigned []string, forbidden bool) []node {
	here := referenceTo(plane)
	namespaces := slices.Clone(assigned)
	for _, s := range w.subjects {
		if planeOf(s) == here {
			namespaces = append(namespaces, s.GetNamespace())
		}
	}
	slices.Sort(namespaces)
	var nodes []node
	for _, namespace := range slices.Compact(namespaces) {
		n := namespaceNode(namespace)
		if entry := plane.Assignment(namespace, ""); entry == nil {
			n.Note = "not assigned: its orders are frozen"
		} else {
			n.Note = fmt.Sprintf("assigned, with the roles %v", entry.AllowedRoles)
		}
		for _, k := range orderKinds() {
			if forbidden && w.unread[reference{Kind: k.name, Namespace: namespace}] != "" {
				n.NotReadable = append(n.NotReadable, k.resource())
			}
			for _, s := range w.subjects {
				if kindOf(s).name == k.name && s.GetNamespace() == namespace && planeOf(s) == here {
					n.Nodes = append(n.Nodes, subjectNode(s))
				}
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}
