package providers

import (
	"context"
	"maps"
	"slices"

	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// login asks Keystone about a clouds.yaml by logging in with it, once: a refused password counts towards locking its
// user. The document says where Keystone is, and the transport whether anything is sent there.
//
// Keystone's own answers count alone, which its JSON error body tells. It gives 404 to an application credential that is
// gone. Its 401 has causes that a new credential would not cure, a missing role or a disabled user, and only an
// administrator can tell them apart: the detail names them, for whoever reads the card. A password's login asks for no
// project, so that a missing role is not taken for a wrong password.
func (p Prober) login(ctx context.Context, document string) (verdict.Probe, string) {
	cloud, ok := cloudOf(document)
	if !ok {
		return verdict.ProbeIndeterminate, "the value is no clouds.yaml with one cloud"
	}
	if cloud.Password != nil {
		cloud.Password.ProjectName, cloud.Password.ProjectDomainName = "", ""
	}
	_, err := keystone.New(keystone.Config{Timeout: ProbeTimeout, Transport: p.Transport}).Login(ctx, cloud, nil)
	class := keystone.Classify(err)
	switch {
	case class == keystone.OK:
		return verdict.ProbeValid, "201 Created"
	case class == keystone.NotFound && cloud.ApplicationCredential != nil:
		return verdict.ProbeRejected, "404 Not Found: it is gone"
	case class == keystone.AuthenticationFailed && cloud.ApplicationCredential != nil:
		return verdict.ProbeRejected, "401 Unauthorized: it is wrong or has expired, or its user is disabled or has no role"
	case class == keystone.AuthenticationFailed:
		return verdict.ProbeRejected, "401 Unauthorized: it is wrong or has expired, or its user is disabled or locked"
	case class == keystone.Forbidden:
		return verdict.ProbeForbidden, "403 Forbidden"
	}
	return verdict.ProbeIndeterminate, string(class)
}

// cloudOf is the one cloud of a clouds.yaml, when it has a way to log in.
func cloudOf(document string) (clouds.Cloud, bool) {
	entries, err := clouds.Parse([]byte(document))
	if err != nil || len(entries) != 1 {
		return clouds.Cloud{}, false
	}
	cloud := slices.Collect(maps.Values(entries))[0]
	return cloud, cloud.Password != nil || cloud.ApplicationCredential != nil
}
