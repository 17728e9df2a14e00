package web

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
)

// listed is how many sessions and classes are looked at; a page that takes a minute helps less than "at least".
const listed = 500

// affected says whom a new value reaches: those that present the credential now.
func (p *page) affected(ctx context.Context, request *v1alpha1.CredentialUpdateRequest) string {
	resolved := request.Status.ResolvedCredential
	if resolved == nil {
		return ""
	}
	if resolved.IdentityKind != v1alpha1.KindAgentIdentity {
		return "This session only, with its copy of the person's credential. The person's other sessions and what the person stored elsewhere stay as they are."
	}
	const everybody = "Every session that acts as this agent, not only the one that asks."
	sessions, classes, err := p.users(ctx, resolved.Namespace, resolved.Name)
	if err != nil {
		// It is for orientation, and no reason to keep somebody from repairing.
		p.Log.Error(err, "the page cannot say who uses an identity", "namespace", resolved.Namespace, "identity", resolved.Name)
		return everybody
	}
	text := fmt.Sprintf("%s Running now: %s. ", everybody, sessions)
	if len(classes) == 0 {
		return text + "No class starts more."
	}
	return text + "Classes that start more: " + strings.Join(classes, ", ") + "."
}

// users counts the sessions that act as an agent, and names the classes whose sessions do unless they say otherwise.
// Classes and sessions that leave it open whether they act as the agent or as a person are counted: they may.
func (p *page) users(ctx context.Context, namespace, identity string) (sessions string, names []string, err error) {
	var classes v1alpha1.AgentClassList
	var all v1alpha1.AgentSessionList
	for _, page := range []client.ObjectList{&classes, &all} {
		if err := p.Client.List(ctx, page, client.InNamespace(namespace), client.Limit(listed)); err != nil {
			return "", nil, fmt.Errorf("listing %T: %w", page, err)
		}
	}
	as := map[string]string{}
	for _, class := range classes.Items {
		if class.Spec.IdentityMode == v1alpha1.IdentityModeUserPassthrough {
			continue
		}
		as[class.Name] = class.Spec.AgentIdentity
		if class.Spec.AgentIdentity == identity {
			names = append(names, class.Name)
		}
	}
	count := 0
	for _, session := range all.Items {
		agent, acts := as[session.Spec.Class]
		if session.Spec.AgentIdentity != "" {
			agent = session.Spec.AgentIdentity
		}
		if acts && agent == identity && session.Status.EffectiveIdentityMode != v1alpha1.IdentityModeUserPassthrough {
			count++
		}
	}
	if sessions = fmt.Sprint(count); all.Continue != "" || classes.Continue != "" {
		sessions = "at least " + sessions
	}
	slices.Sort(names)
	return sessions, names, nil
}
