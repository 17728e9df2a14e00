package order

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"
)

// Claim is a name in Keystone that an order is about to take, through a managed K-ORC object.
type Claim struct {
	// Name in Keystone.
	Name string
	// Noun is what bears the name, for the condition: user or project.
	Noun string
	// Domain is the K-ORC Domain in which the name is to be unique.
	Domain orcv1alpha1.KubernetesNameRef
	// Child is the name of the K-ORC object that is to take the name.
	Child string
	// Objects is an empty list of that object's kind.
	Objects client.ObjectList
	// Collision is the condition's reason when another object has the name.
	Collision string
}

// Claim runs take, which makes the K-ORC object of a claim and whatever else belongs to it, unless
// another managed K-ORC object in the ControlPlane's namespace claims the name. Its outcome is take's
// own, the claim's Collision, or the failure to find out.
//
// That Keystone has nobody of the name is not enough: two orders may both have been told so. K-ORC asks
// Keystone a moment after its object was made, adopts whatever has the name by then, and would give one
// user or project to both orders and take it from both when either is deleted. So one order at a time
// goes from "no other object has the name" to the object that does. One operator works at a time, hence
// a mutex is enough; the list is live, because the last claim may not be in the cache yet.
func (p *Pass) Claim(ctx context.Context, claim Claim, take func() *Outcome) *Outcome {
	p.Base.claims.Lock()
	defer p.Base.claims.Unlock()
	rival, err := p.rival(ctx, claim)
	switch {
	case err != nil:
		return Fail(p.Kind.ErrorReason, err)
	case rival:
		// Whose it is stays unsaid: namespaces are not told of one another.
		return Wait(claim.Collision, WaitLong,
			"another K-ORC object in namespace %q claims the %s name %q; delete the order and create it under another name", p.ChildNamespace(), claim.Noun, claim.Name)
	}
	return take()
}

// rival tells whether another managed K-ORC object of the kind has the name, in any spelling that
// Keystone's database takes for the same. One that is being deleted still has it.
func (p *Pass) rival(ctx context.Context, claim Claim) (found bool, err error) {
	if err := p.Live.List(ctx, claim.Objects, client.InNamespace(p.ChildNamespace())); err != nil {
		return false, fmt.Errorf("listing K-ORC's objects that claim a %s name in namespace %s: %w", claim.Noun, p.ChildNamespace(), err)
	}
	wanted := FoldName(claim.Name)
	err = meta.EachListItem(claim.Objects, func(item runtimeObject) error {
		object := item.(client.Object)
		name, domain, managed := keystoneName(object)
		if managed && object.GetName() != claim.Child && domain == claim.Domain && FoldName(name) == wanted {
			found = true
		}
		return nil
	})
	return found, err
}

// keystoneName is the name in Keystone that a K-ORC object stands for, and the domain it is in. An
// import is not managed: it takes nothing.
func keystoneName(object client.Object) (name string, domain orcv1alpha1.KubernetesNameRef, managed bool) {
	switch object := object.(type) {
	case *orcv1alpha1.User:
		if resource := object.Spec.Resource; resource != nil {
			return string(ptr.Deref(resource.Name, orcv1alpha1.OpenStackName(object.Name))), ptr.Deref(resource.DomainRef, ""), true
		}
	case *orcv1alpha1.Project:
		if resource := object.Spec.Resource; resource != nil {
			return string(ptr.Deref(resource.Name, orcv1alpha1.KeystoneName(object.Name))), ptr.Deref(resource.DomainRef, ""), true
		}
	}
	return "", "", false
}
