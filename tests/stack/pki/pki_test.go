package pki

import (
	"bytes"
	"net/netip"
	"os"
	"testing"
)

func TestIssue(t *testing.T) {
	folder := t.TempDir()
	authority, err := OpenAuthority(folder, "ca")
	if err != nil {
		t.Fatal(err)
	}
	leaf := Leaf{Name: "server", CommonName: "server", DNSNames: []string{"localhost"}, IPs: []netip.Addr{netip.MustParseAddr("10.213.1.2")}}
	read := func() []byte {
		t.Helper()
		pair, err := authority.Issue(leaf)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(pair.CertFile)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := read()

	t.Run("keeps a certificate that is still right", func(t *testing.T) {
		again, err := OpenAuthority(folder, "ca")
		if err != nil {
			t.Fatal(err)
		}
		authority = again
		if !bytes.Equal(first, read()) {
			t.Error("signed again")
		}
	})
	t.Run("signs again when the address changes", func(t *testing.T) {
		leaf.IPs = []netip.Addr{netip.MustParseAddr("10.213.9.2")}
		if bytes.Equal(first, read()) {
			t.Error("kept a certificate for another address")
		}
	})
	t.Run("signs again when the authority changes", func(t *testing.T) {
		before := read()
		if err := os.Remove(authority.CertFile); err != nil {
			t.Fatal(err)
		}
		if authority, err = OpenAuthority(folder, "ca"); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(before, read()) {
			t.Error("kept a certificate that nobody trusts any more")
		}
	})
	t.Run("keys are private", func(t *testing.T) {
		pair, _ := authority.Issue(leaf)
		info, err := os.Stat(pair.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the key has mode %v", info.Mode().Perm())
		}
	})
}
