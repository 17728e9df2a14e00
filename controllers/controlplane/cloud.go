package controlplane

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
)

// nameLabel carries the ControlPlane's name on its own children.
const nameLabel = "c5c3.io/controlplane-name"

// writer writes the ControlPlane's own children: the admin's cloud and K-ORC's two imports.
func (p *pass) writer() order.Writer {
	return order.Writer{Client: p.client, Live: p.live, Owns: func(object client.Object) bool {
		labels := object.GetLabels()
		return labels[order.ManagedByLabel] == order.ManagedByValue && labels[nameLabel] == p.cp.Name
	}}
}

// childMeta is the metadata of one of the ControlPlane's own children. The owner reference is for the
// garbage collector, should the ControlPlane ever go without its finalizer. It does not block the owner's
// deletion, which would take the right to update the finalizers of ControlPlanes.
func (p *pass) childMeta(name string) (metav1.ObjectMeta, error) {
	child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: p.cp.Namespace,
		Labels: map[string]string{order.ManagedByLabel: order.ManagedByValue, nameLabel: p.cp.Name},
	}}
	block := controllerutil.WithBlockOwnerDeletion(false)
	if err := controllerutil.SetControllerReference(p.cp, child, p.client.Scheme(), block); err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("owning %s: %w", name, err)
	}
	return child.ObjectMeta, nil
}

// adminCloud writes the Secret with the admin's password cloud and returns what it holds, nil when
// there is none to log in with; the observation says why.
//
// What is missing for a new document does not take an old one away: the password and the bundle of
// the document that is there stand in for a Secret that somebody deleted or spoilt. The system's roots
// do not stand in for a bundle: naming one says that they are not to be trusted.
func (p *pass) adminCloud(ctx context.Context) (*adminDocument, error) {
	password, missingPassword, err := p.readPassword(ctx)
	if err != nil {
		return nil, err
	}
	bundle, missingBundle, err := order.CABundle(ctx, p.live, p.cp)
	if err != nil {
		return nil, err
	}
	p.seen.password, p.seen.bundle = missingPassword, missingBundle
	if missingPassword != "" || missingBundle != "" {
		if !p.held() {
			return nil, nil
		}
		old, err := p.oldCloud(ctx)
		if err != nil || old == nil {
			return nil, err
		}
		if missingPassword != "" {
			password = old.cloud.Password.Password
		}
		if missingBundle != "" {
			if bundle = old.bundle; len(bundle) == 0 {
				p.seen.lost = true
				return nil, nil
			}
		}
	}
	return p.writeAdminCloud(ctx, password, bundle)
}

// oldCloud is the cloud that is there, nil when there is none that anybody could log in with.
func (p *pass) oldCloud(ctx context.Context) (*adminDocument, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: p.cp.Namespace, Name: order.AdminCloudName(p.cp)}
	if err := p.live.Get(ctx, key, secret); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the admin password cloud %s: %w", key, err)
	}
	parsed, err := clouds.Parse(secret.Data[order.CloudsKey])
	cloud, ok := parsed[order.CloudName]
	if err != nil || !ok || cloud.Password == nil || cloud.Password.Password == "" {
		p.seen.lost = true
		return nil, nil //nolint:nilerr // a document that cannot be read is as good as none
	}
	return &adminDocument{cloud: cloud, text: secret.Data[order.CloudsKey], bundle: secret.Data[order.CACertKey]}, nil
}

func (p *pass) writeAdminCloud(ctx context.Context, password string, bundle []byte) (*adminDocument, error) {
	domain := order.AdminDomain(p.cp)
	cloud := clouds.Cloud{
		AuthURL: p.seen.authURL, RegionName: order.Region(p.cp), EndpointType: order.EndpointType(p.cp),
		CACert: clouds.BundleName(bundle),
		Password: &clouds.PasswordAuth{
			Username: order.AdminUserName(p.cp), UserDomainName: domain, Password: password,
			ProjectName: order.AdminProjectName(p.cp), ProjectDomainName: domain,
		},
	}
	text, err := clouds.Render(order.CloudName, cloud)
	if err != nil {
		return nil, err
	}
	metadata, err := p.childMeta(order.AdminCloudName(p.cp))
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metadata, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{order.CloudsKey: text}}
	if len(bundle) > 0 {
		secret.Data[order.CACertKey] = bundle
	}
	if err := p.writer().ApplySecret(ctx, secret); err != nil {
		return nil, err
	}
	return &adminDocument{cloud: cloud, text: text, bundle: bundle}, nil
}

// readPassword reads the admin's password, live: the Secret is somebody else's and not cached.
// missing says in words for a condition which Secret and key to create.
func (p *pass) readPassword(ctx context.Context) (password, missing string, err error) {
	name, key := passwordRef(p.cp)
	secret := &corev1.Secret{}
	err = p.live.Get(ctx, types.NamespacedName{Namespace: p.cp.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Sprintf("Secret %s/%s with the administrator's password does not exist; create it with the key %q, or name another in spec.korc.adminCredential.passwordSecretRef", p.cp.Namespace, name, key), nil
	case err != nil:
		return "", "", fmt.Errorf("reading the admin password Secret %s/%s: %w", p.cp.Namespace, name, err)
	}
	// A file that an editor wrote ends with a line break; no password does.
	password = strings.TrimRight(string(secret.Data[key]), "\r\n")
	if password == "" {
		return "", fmt.Sprintf("Secret %s/%s has no key %q, which is to hold the administrator's password; add it, or name another in spec.korc.adminCredential.passwordSecretRef", p.cp.Namespace, name, key), nil
	}
	return password, "", nil
}

// passwordRef resolves the defaults of the schema again: an object written before they were there
// does not have them.
func passwordRef(cp *v1alpha1.ControlPlane) (name, key string) {
	ref := cp.Spec.KORC.AdminCredential.PasswordSecretRef
	name, key = ref.Name, ref.Key
	if name == "" {
		name = "keystone-admin"
	}
	if key == "" {
		key = "password"
	}
	return name, key
}
