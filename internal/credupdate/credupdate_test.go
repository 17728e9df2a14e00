package credupdate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
)

func TestDigest(t *testing.T) {
	data := map[string][]byte{"a": []byte("1"), "b": []byte("2")}
	if Digest(data, "a") != Digest(map[string][]byte{"a": []byte("1"), "b": []byte("3")}, "a") {
		t.Error("another key counts")
	}
	if Digest(data, "") == Digest(map[string][]byte{"a": []byte("1"), "b": []byte("3")}, "") {
		t.Error("without a key not all count")
	}
	if Digest(data, "c") != Digest(nil, "c") || Digest(data, "c") == Digest(map[string][]byte{"c": nil}, "c") {
		t.Error("a key that comes is no change")
	}
	if Digest(map[string][]byte{"a": []byte("1b")}, "") == Digest(map[string][]byte{"a1": []byte("b")}, "") {
		t.Error("key and value run into each other")
	}
}

func TestChanged(t *testing.T) {
	of := func(key, value string) map[string][]byte {
		return map[string][]byte{key: []byte(value), "other": []byte("x")}
	}
	for name, c := range map[string]struct {
		key           string
		before, after map[string][]byte
		want          bool
	}{
		"nothing":              {"v", of("v", "1"), of("v", "1"), false},
		"another value":        {"v", of("v", "1"), of("v", "2"), true},
		"the first value":      {"v", nil, of("v", "1"), true},
		"an emptied value":     {"v", of("v", "1"), of("v", " \n"), false},
		"a removed value":      {"v", of("v", "1"), of("w", "1"), false},
		"a whole one":          {"", of(KeyAccessToken, "1"), of(KeyAccessToken, "2"), true},
		"a whole one, removed": {"", of(KeyAccessToken, "1"), of("w", "1"), false},
	} {
		if got := Changed(c.after, c.key, Digest(c.before, c.key)); got != c.want {
			t.Errorf("%s is a change: %t", name, got)
		}
	}
}

func TestExpires(t *testing.T) {
	created, opened := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), metav1.Date(2026, 3, 1, 12, 10, 0, 0, time.UTC)
	request := &v1alpha1.CredentialUpdateRequest{}
	request.CreationTimestamp = metav1.NewTime(created)
	if got := Expires(request); !got.Equal(created.Add(AskWindow)) {
		t.Errorf("a request of before openedAt expires at %s", got)
	}
	request.Status.OpenedAt = &opened
	if got := Expires(request); !got.Equal(opened.Add(AskWindow)) {
		t.Errorf("opened at %s it expires at %s", opened, got)
	}
}

func TestLocate(t *testing.T) {
	static := v1alpha1.IdentityCredential{Name: "git", Type: v1alpha1.CredentialStatic, Static: &v1alpha1.StaticCredential{SecretRef: v1alpha1.SecretKeyReference{Name: "s", Key: "k"}}}
	oauth := v1alpha1.IdentityCredential{Name: "git", Type: v1alpha1.CredentialOAuth, OAuth: &v1alpha1.OAuthCredential{SecretRef: v1alpha1.SecretReference{Name: "s"}}}
	at := func(namespace, name, key string) Location {
		return Location{Secret: types.NamespacedName{Namespace: namespace, Name: name}, Key: key}
	}
	for name, c := range map[string]struct {
		kind       string
		credential v1alpha1.IdentityCredential
		want       Location
	}{
		"an agent's value":             {v1alpha1.KindAgentIdentity, static, at("ns", "s", "k")},
		"a person's value, as copied":  {v1alpha1.KindSessionUserIdentity, static, at("ns", "me-passthrough-creds", "git")},
		"an agent's OAuth bundle":      {v1alpha1.KindAgentIdentity, oauth, at("ns", "s", "")},
		"a person's OAuth bundle":      {v1alpha1.KindSessionUserIdentity, oauth, at(IdentitiesNamespace, "s", "")},
		"a minted one":                 {v1alpha1.KindAgentIdentity, v1alpha1.IdentityCredential{Name: "git", Type: v1alpha1.CredentialFederated}, Location{}},
		"an identity that is not sure": {v1alpha1.KindAgentIdentity, v1alpha1.IdentityCredential{Name: "git", Type: v1alpha1.CredentialStatic}, Location{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Locate(c.kind, "ns", "me", c.credential); got != c.want {
				t.Errorf("it is at %+v, want %+v", got, c.want)
			}
		})
	}
}
