package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// allAuthenticated is the group of everybody whom the API server knows.
const allAuthenticated = "system:authenticated"

// claims are those of an ID token.
type claims map[string]json.RawMessage

// user is whom the API server would see in the claims. The errors are shown to the visitor.
func (p *provider) user(c claims) (authenticationv1.UserInfo, error) {
	nobody := authenticationv1.UserInfo{}
	for name, want := range p.RequiredClaims {
		if got := ""; !c.read(name, &got) || got != want {
			return nobody, fmt.Errorf("the claim %q of your account is not the one that is required", name)
		}
	}
	var name string
	if !c.read(p.UsernameClaim, &name) || name == "" {
		return nobody, fmt.Errorf("your account has no claim %q that names you", p.UsernameClaim)
	}
	if _, said := c["email_verified"]; p.UsernameClaim == "email" && said {
		if verified := false; !c.read("email_verified", &verified) || !verified {
			return nobody, errors.New("your email address is not verified")
		}
	}
	groups, err := p.groups(c)
	if err != nil {
		return nobody, err
	}
	name = p.UsernamePrefix + name
	for _, own := range append([]string{name}, groups...) {
		// The API server lets a provider without prefixes make somebody system:masters, and its administrator has to know. Here
		// nobody of these names has anything to do.
		if strings.HasPrefix(own, "system:") {
			return nobody, fmt.Errorf("your account has the name or the group %q, and those are the cluster's own", own)
		}
	}
	return authenticationv1.UserInfo{Username: name, Groups: append(groups, allAuthenticated)}, nil
}

func (p *provider) groups(c claims) ([]string, error) {
	if p.GroupsClaim == "" {
		return nil, nil
	}
	var sources map[string]string
	if c.read("_claim_names", &sources); sources[p.GroupsClaim] != "" {
		// Distributed claims (OpenID Connect Core 5.6.2): Entra ID, beyond 200 groups. Taken for no group, it would be a right
		// missing without a word.
		return nil, errors.New("your groups are too many for the provider to name them")
	}
	raw, ok := c[p.GroupsClaim]
	if !ok {
		return nil, nil
	}
	var groups []string
	if one := ""; json.Unmarshal(raw, &groups) != nil {
		if json.Unmarshal(raw, &one) != nil {
			return nil, fmt.Errorf("the claim %q of your account does not list groups", p.GroupsClaim)
		}
		groups = []string{one}
	}
	for i := range groups {
		groups[i] = p.GroupsPrefix + groups[i]
	}
	return groups, nil
}

func (c claims) read(name string, into any) bool {
	raw, ok := c[name]
	return ok && json.Unmarshal(raw, into) == nil
}
