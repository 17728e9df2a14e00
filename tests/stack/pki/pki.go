// Package pki makes the certificates of a stack: one authority for the API server and its clients,
// one for the aggregation layer, and what they sign.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 365 * 24 * time.Hour
	// renewBefore is when `up` replaces a certificate: a stack that is started today works for a
	// month at least.
	renewBefore = 30 * 24 * time.Hour
)

// Authority signs certificates. It is kept in <folder>/<name>.crt and .key.
type Authority struct {
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	// CertFile is the path of its certificate.
	CertFile string
}

// Leaf describes a certificate to sign.
type Leaf struct {
	// Name is the file's name without extension.
	Name string
	// CommonName and Organizations are the Kubernetes user and groups of a client certificate.
	CommonName    string
	Organizations []string
	DNSNames      []string
	IPs           []netip.Addr
}

// Pair is where a certificate and its key lie.
type Pair struct{ CertFile, KeyFile string }

// OpenAuthority reads the authority, or makes it.
func OpenAuthority(folder, name string) (*Authority, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	a := &Authority{folder: folder, CertFile: filepath.Join(folder, name+".crt")}
	keyFile := filepath.Join(folder, name+".key")
	cert, key, err := load(a.CertFile, keyFile)
	if err == nil {
		a.cert, a.key = cert, key
		return a, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "c5c3 test stack " + name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := sign(template, template, key, key, authorityLifetime)
	if err != nil {
		return nil, err
	}
	if err := store(a.CertFile, keyFile, der, key); err != nil {
		return nil, err
	}
	a.key = key
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// Issue returns the certificate of a leaf, signing a new one when there is none, when it ends soon,
// or when it does not say what the leaf says.
func (a *Authority) Issue(leaf Leaf) (Pair, error) {
	pair := Pair{
		CertFile: filepath.Join(a.folder, leaf.Name+".crt"),
		KeyFile:  filepath.Join(a.folder, leaf.Name+".key"),
	}
	if old, _, err := load(pair.CertFile, pair.KeyFile); err == nil && a.stillGood(old, leaf) {
		return pair, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: leaf.CommonName, Organization: leaf.Organizations},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    leaf.DNSNames,
	}
	for _, ip := range leaf.IPs {
		template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
	}
	der, err := sign(template, a.cert, key, a.key, leafLifetime)
	if err != nil {
		return Pair{}, fmt.Errorf("signing %s: %w", leaf.Name, err)
	}
	return pair, store(pair.CertFile, pair.KeyFile, der, key)
}

func (a *Authority) stillGood(cert *x509.Certificate, leaf Leaf) bool {
	if cert.CheckSignatureFrom(a.cert) != nil || time.Until(cert.NotAfter) < renewBefore ||
		cert.Subject.CommonName != leaf.CommonName || len(cert.IPAddresses) != len(leaf.IPs) ||
		len(cert.DNSNames) != len(leaf.DNSNames) || len(cert.Subject.Organization) != len(leaf.Organizations) {
		return false
	}
	for _, name := range leaf.DNSNames {
		if cert.VerifyHostname(name) != nil {
			return false
		}
	}
	for _, ip := range leaf.IPs {
		if cert.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	return true
}

// ServiceAccountKey makes the key that signs ServiceAccount tokens once and returns the paths of its
// private and public half.
func ServiceAccountKey(folder string) (private, public string, err error) {
	private, public = filepath.Join(folder, "sa.key"), filepath.Join(folder, "sa.pub")
	if _, err := os.Stat(public); err == nil {
		return private, public, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", "", err
	}
	if err := writePEM(private, "EC PRIVATE KEY", der, 0o600); err != nil {
		return "", "", err
	}
	if der, err = x509.MarshalPKIXPublicKey(&key.PublicKey); err != nil {
		return "", "", err
	}
	return private, public, writePEM(public, "PUBLIC KEY", der, 0o644)
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey, lifetime time.Duration) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(lifetime)
	return x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
}

func load(certFile, keyFile string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certDER, err := readPEM(certFile)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := readPEM(keyFile)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", certFile, err)
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	return cert, key, nil
}

// store writes the key first: a certificate without its key would be taken for complete.
func store(certFile, keyFile string, certDER []byte, key *ecdsa.PrivateKey) error {
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(keyFile, "EC PRIVATE KEY", keyDER, 0o600); err != nil {
		return err
	}
	return writePEM(certFile, "CERTIFICATE", certDER, 0o644)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func readPEM(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block", path)
	}
	return block.Bytes, nil
}
