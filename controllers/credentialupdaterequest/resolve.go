package credentialupdaterequest

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
)

// noProvider is the provider of a toolbox that needs no credential.
const noProvider = "none"

// ownership finds the session and checks that the request is its own. The UID counts, since a name can be
// used again, and a request in another namespace could make the operator look into a stranger's session.
func (c *claim) ownership(ctx context.Context) (*decision, error) {
	ref := c.request.Spec.SessionRef
	if ref.Namespace != c.request.Namespace {
		return refuse(v1alpha1.DeterminationNoCredential, "The request names a session in another namespace than its own."), nil
	}
	c.session = &v1alpha1.AgentSession{}
	found, err := c.get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, c.session)
	if err != nil {
		return nil, err
	}
	if !found {
		return refuse(v1alpha1.DeterminationNoCredential, "The session that the request names does not exist."), nil
	}
	owned := slices.ContainsFunc(c.request.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.UID == c.session.UID && owner.UID != ""
	})
	if !owned {
		return refuse(v1alpha1.DeterminationNoCredential, "The request does not belong to the session that it names."), nil
	}
	return nil, nil
}

func (c *claim) classOf(ctx context.Context) (*decision, error) {
	c.class = &v1alpha1.AgentClass{}
	found, err := c.get(ctx, types.NamespacedName{Namespace: c.session.Namespace, Name: c.session.Spec.Class}, c.class)
	if err != nil || found {
		return nil, err
	}
	return refuse(v1alpha1.DeterminationNoCredential, "The session's AgentClass %q does not exist.", c.session.Spec.Class), nil
}

// requirement is a credential that a tool needs.
type requirement struct {
	credential, provider string
	// prefix stands before the token in the stored value, as it does in the header.
	prefix string
}

// origin finds out which credential the tool needs. The texts do not repeat the origin: the agent wrote it,
// and these are the platform's words.
func (c *claim) origin(ctx context.Context) (*decision, error) {
	from, ok := parseOrigin(c.request.Spec.Origin)
	if !ok {
		return refuse(v1alpha1.DeterminationNoCredential, "The request's origin is not of the form kind/name."), nil
	}
	needs, missing, err := c.requirements(ctx, from)
	switch {
	case err != nil:
		return nil, err
	case missing != nil:
		return missing, nil
	case len(needs) == 0:
		return refuse(v1alpha1.DeterminationNoCredential, "The tool needs no credential."), nil
	case len(needs) > 1:
		return refuse(v1alpha1.DeterminationAmbiguousCredential,
			"The tool leads to %d credentials, and the request cannot tell which one failed. Describe to a person which service refused the call.", len(needs)), nil
	}
	c.need = needs[0]
	return nil, nil
}

// requirements are what a tool asks for. It has to be one of the class's: a tool that the session does not have cannot
// have failed, and its credential is none of the session's.
func (c *claim) requirements(ctx context.Context, from origin) ([]requirement, *decision, error) {
	foreign := refuse(v1alpha1.DeterminationNoCredential, "The session's class does not use the tool that the origin names.")
	gone := refuse(v1alpha1.DeterminationNoCredential, "The tool that the origin names does not exist.")
	key := types.NamespacedName{Namespace: c.session.Namespace, Name: from.name}
	switch from.kind {
	case OriginMCPServer:
		use := slices.IndexFunc(c.class.Spec.MCPServers, func(use v1alpha1.MCPServerUse) bool { return use.Ref == from.name })
		if use < 0 {
			return nil, foreign, nil
		}
		server := &v1alpha1.MCPServer{}
		if found, err := c.get(ctx, key, server); err != nil || !found {
			return nil, gone, err
		}
		return needsOfServer(server, c.class.Spec.MCPServers[use].CredentialRemap), nil, nil
	case OriginToolkit:
		if len(c.class.Spec.ToolBundles) == 0 {
			return nil, foreign, nil
		}
		toolkit := &v1alpha1.SpiceboxToolkit{}
		if found, err := c.get(ctx, types.NamespacedName{Name: from.name}, toolkit); err != nil || !found {
			return nil, gone, err
		}
		return needsOfToolkit(toolkit, c.class.Spec.ToolBundles), nil, nil
	case OriginSidecarToolbox:
		if !slices.ContainsFunc(c.class.Spec.SidecarToolboxes, func(use v1alpha1.SidecarToolboxUse) bool { return use.Ref == from.name }) {
			return nil, foreign, nil
		}
		toolbox := &v1alpha1.SidecarToolbox{}
		if found, err := c.get(ctx, key, toolbox); err != nil || !found {
			return nil, gone, err
		}
		if toolbox.Spec.UpstreamAuth.Provider == noProvider {
			return nil, nil, nil
		}
		return []requirement{{credential: toolbox.Name + "-creds", provider: toolbox.Spec.UpstreamAuth.Provider}}, nil, nil
	}
	return nil, refuse(v1alpha1.DeterminationNoCredential, "The origin is of a kind that is not known: it has to be %s, %s or %s.", OriginMCPServer, OriginToolkit, OriginSidecarToolbox), nil
}

// needsOfServer gives a server's credential the name that the class's identities have for it. The raw name
// could be that of another, healthy credential.
func needsOfServer(server *v1alpha1.MCPServer, remap map[string]string) []requirement {
	auth := server.Spec.Auth
	if auth.Credential == "" {
		return nil
	}
	prefix := auth.ValuePrefix
	if prefix == "" && auth.Header == "" {
		prefix = "Bearer "
	}
	return []requirement{{credential: renamed(auth.Credential, remap), provider: auth.Provider, prefix: prefix}}
}

func renamed(credential string, remap map[string]string) string {
	if name := remap[credential]; name != "" {
		return name
	}
	return credential
}

// needsOfToolkit leaves out what is named twice: two variables can carry one credential. Which of the class's bundles
// the toolkit is of cannot be told, so where they have different names for a credential there is one need for each,
// and the request is ambiguous. The first that fits could be another, healthy credential.
func needsOfToolkit(toolkit *v1alpha1.SpiceboxToolkit, bundles []v1alpha1.ToolBundle) []requirement {
	var needs []requirement
	for _, variable := range toolkit.Spec.Env.Allowed {
		if !variable.Sensitive || variable.Credential == "" {
			continue
		}
		for _, bundle := range bundles {
			name := renamed(variable.Credential, bundle.CredentialRemap)
			if !slices.ContainsFunc(needs, func(n requirement) bool { return n.credential == name }) {
				needs = append(needs, requirement{credential: name, provider: variable.Provider})
			}
		}
	}
	return needs
}

// held is a credential as its identity describes it.
type held struct {
	kind string // its type
	// secret and key are where its value is; the key is empty when the whole Secret is the credential.
	secret types.NamespacedName
	key    string
	// subject is whose it is, when each session of that person has a copy of its own.
	subject string
}

// identity finds the credential by name among those of who the session acts as.
func (c *claim) identity(ctx context.Context) (*decision, error) {
	key := types.NamespacedName{Namespace: c.session.Namespace}
	var kind string
	var spec v1alpha1.IdentitySpec
	var found bool
	var err error
	switch mode := c.mode(); mode {
	case v1alpha1.IdentityModeUserPassthrough:
		person := &v1alpha1.SessionUserIdentity{}
		kind, key.Name = v1alpha1.KindSessionUserIdentity, c.session.Name
		found, err = c.get(ctx, key, person)
		spec = person.Spec
	case v1alpha1.IdentityModeAgent:
		agent := &v1alpha1.AgentIdentity{}
		kind, key.Name = v1alpha1.KindAgentIdentity, c.session.Spec.AgentIdentity
		if key.Name == "" {
			key.Name = c.class.Spec.AgentIdentity
		}
		found, err = c.get(ctx, key, agent)
		spec = agent.Spec
	default:
		return refuse(v1alpha1.DeterminationNoCredential, "The class's identity mode %q is not known.", mode), nil
	}
	if err != nil {
		return nil, err
	}
	if !found {
		return refuse(v1alpha1.DeterminationNoCredential, "The %s %q that the session acts as does not exist.", kind, key.Name), nil
	}
	at := slices.IndexFunc(spec.Credentials, func(held v1alpha1.IdentityCredential) bool { return held.Name == c.need.credential })
	if at < 0 {
		return refuse(v1alpha1.DeterminationNoCredential, "The %s %q that the session acts as has no credential %q.", kind, key.Name, c.need.credential), nil
	}
	c.resolved = &v1alpha1.ResolvedCredential{
		IdentityKind: kind, Namespace: key.Namespace, Name: key.Name, Credential: c.need.credential, ProviderID: c.need.provider,
	}
	c.provider, _ = c.catalog.Provider(c.need.provider)
	c.held = c.describe(kind, spec, spec.Credentials[at])
	c.evidence.Type, c.evidence.IdentityKind, c.evidence.Provider = c.held.kind, kind, c.provider.Title
	return nil, nil
}

// mode is how the session acts. A class that leaves it to the session acts as the agent until it is decided.
func (c *claim) mode() string {
	switch mode := c.class.Spec.IdentityMode; mode {
	case v1alpha1.IdentityModeAsk, v1alpha1.IdentityModeDynamic:
		if decided := c.session.Status.EffectiveIdentityMode; decided != "" {
			return decided
		}
		return v1alpha1.IdentityModeAgent
	case "":
		return v1alpha1.IdentityModeAgent
	default:
		return mode
	}
}

// describe says where a credential's value is. It is nowhere for a type that has none or is not known.
func (c *claim) describe(kind string, spec v1alpha1.IdentitySpec, credential v1alpha1.IdentityCredential) held {
	at := credupdate.Locate(kind, c.session.Namespace, c.session.Name, credential)
	h := held{kind: credential.Type, secret: at.Secret, key: at.Key}
	if credential.Type == v1alpha1.CredentialStatic && kind == v1alpha1.KindSessionUserIdentity {
		h.subject = spec.Subject
	}
	return h
}

// token is a stored value without what stands before it in the header.
func (n requirement) token(value []byte) string {
	text := strings.TrimSpace(string(value))
	if n.prefix == "" {
		return text
	}
	return strings.TrimSpace(strings.TrimPrefix(text, n.prefix))
}
