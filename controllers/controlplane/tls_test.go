package controlplane

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
)

// trustsItsBundleAlone moves a ControlPlane from plain HTTP to a Keystone with a private CA.
func trustsItsBundleAlone(p *plane) {
	p.ready()
	before := p.cloud().Data[order.CloudsKey]
	secure := newTLSKeystone(p.T)
	p.change(func(cp *v1alpha1.ControlPlane) {
		cp.Spec.Services.Keystone.External.AuthURL = secure.URL + "/v3"
		cp.Spec.Services.Keystone.External.CABundleSecretRef = &v1alpha1.SecretReference{Name: "keystone-ca"}
	})
	waits := func(part string) {
		p.Helper()
		p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForCABundle, p.namespace+"/keystone-ca", part)
		if cloud := p.cloud(); !bytes.Equal(cloud.Data[order.CloudsKey], before) || len(cloud.Data[order.CACertKey]) > 0 {
			p.Error("K-ORC was told of the new address without the CA bundle that verifies it")
		}
	}
	waits("does not exist")
	p.create(&corev1.Secret{ObjectMeta: p.meta("keystone-ca"), StringData: map[string]string{order.CABundleKey: "no certificate"}})
	p.touch()
	waits("no PEM certificate")

	p.setBundle(anotherCA(p.T))
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionFalse, v1alpha1.ReasonTLSVerificationFailed, "x509", "caBundleSecretRef")
	p.condition(v1alpha1.ConditionKeystoneReachable, metav1.ConditionFalse, v1alpha1.ReasonTLSVerificationFailed)
	if asked := secure.count(); asked > 0 {
		p.Errorf("a Keystone that does not verify was sent %d logins", asked)
	}

	p.setBundle(secure.bundle())
	p.ready()
	p.carries(secure.bundle())
	document := string(p.cloud().Data[order.CloudsKey])

	// What is there stands in for a bundle that somebody spoilt.
	p.setBundle([]byte("spoilt"))
	p.condition(v1alpha1.ConditionAdminCredentialReady, metav1.ConditionTrue, v1alpha1.ReasonAdminCredentialAccepted, "no PEM certificate")
	p.carries(secure.bundle())

	// The way to exchange a CA: both, for a while. K-ORC keeps its session while the document is the same.
	both := slices.Concat(anotherCA(p.T), secure.bundle())
	p.setBundle(both)
	p.carries(both)
	p.ready()
	if string(p.cloud().Data[order.CloudsKey]) == document {
		p.Error("K-ORC goes on with the session that trusts the old bundle: the document is the same")
	}
}

func (p *plane) setBundle(bundle []byte) {
	p.Helper()
	p.edit("keystone-ca", func(secret *corev1.Secret) { secret.Data[order.CABundleKey] = bundle })
	p.touch()
}

// carries waits until K-ORC's document lies beside a bundle and names it.
func (p *plane) carries(bundle []byte) {
	p.Helper()
	p.eventually("the cloud carries the bundle", func() error {
		cloud := p.cloud()
		parsed, err := clouds.Parse(cloud.Data[order.CloudsKey])
		if err == nil && (!bytes.Equal(cloud.Data[order.CACertKey], bundle) || parsed[order.CloudName].CACert != clouds.BundleName(bundle)) {
			err = errors.New("it carries another")
		}
		return err
	})
}

func newTLSKeystone(t *testing.T) *fakeKeystone {
	t.Helper()
	k := &fakeKeystone{password: password}
	k.Server = httptest.NewUnstartedServer(k)
	k.Server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are meant here
	k.StartTLS()
	t.Cleanup(k.Close)
	return k
}

// anotherCA is a CA that has signed nothing.
func anotherCA(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "another CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
