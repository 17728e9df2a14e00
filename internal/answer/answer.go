// Package answer puts a new value where a CredentialUpdateRequest waits for one. The page of the card server
// and the kubectl plugin are two doors to it: who may go through is for them to say, and everything else is
// checked here, on every submission, against what the API server says at that moment.
//
// A value is written to one key of the Secret that the request recorded when it opened, and to nothing else.
// No Secret and no key is ever created. Neither a refusal nor an error holds the value.
//
// Whoever the client acts as needs get on credentialupdaterequests, agentidentities and sessionuseridentities
// (agentprimitives.authzed.com), and get and patch on the Secret.
package answer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/providers"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

const (
	// MaxValue is how long a value may be, in bytes. A Secret holds at most 1 MiB, and shares it.
	MaxValue = 64 << 10
	// FieldManager is who the API server's managedFields say wrote the value.
	FieldManager = "c5c3-answer"
	// writes is how often a value is tried to be written while somebody else writes other keys of its Secret.
	writes = 4
)

// Desk takes answers.
type Desk struct {
	// Client reads and writes. It must not read from a cache: that could be behind the very change that an
	// answer has to notice, and would hold Secrets.
	Client client.Client
	// Catalog knows what a provider's credentials look like, and how to ask it.
	Catalog *providers.Catalog
	// Prober asks providers about a value before it is stored.
	Prober providers.Prober
	// Clock tells whether a request's time is over.
	Clock clock.PassiveClock
}

// Question is what an open request asks.
type Question struct {
	Request *v1alpha1.CredentialUpdateRequest
	// Provider is the catalog's entry; its ID is empty when the catalog has none.
	Provider providers.Provider
	// Expires is when the request's time is over.
	Expires time.Time
	// Subject is the person whose credential it is; empty when it is the agent's own.
	Subject string
	// Keeper is the controller of the Secret, as "ExternalSecret tenant-a/github", which may write over a new
	// value; empty when it has none.
	Keeper string
}

// Submission is an answer.
type Submission struct {
	// Value is what somebody entered. White space around it is not part of it.
	Value string
	// Confirm stores a value although its provider refuses it.
	Confirm bool
}

// Outcome is how a value was taken.
type Outcome struct {
	// Probe is what the provider said of the value.
	Probe verdict.Probe
	// Detail is that in the provider's words, on one line and without the value. Possibly empty.
	Detail string
}

// Question reads a request and finds out whether it can be answered now. A uid that is not empty has to be
// the request's, since a name can be used again. The error is a *Refusal when it cannot be answered; the
// question is then returned as far as it is known, and is nil when there is no such request.
func (d *Desk) Question(ctx context.Context, key types.NamespacedName, uid types.UID) (*Question, error) {
	found, err := d.find(ctx, key, uid)
	return found.question, err
}

// Answer stores a value. The error is a *Refusal when the request or the value is the reason that nothing was
// stored; every other error is a failure, after which the same value can be submitted again. The
// outcome is the provider's word on a value that was stored or is Unconfirmed, and empty else.
func (d *Desk) Answer(ctx context.Context, key types.NamespacedName, uid types.UID, submission Submission) (Outcome, error) {
	target, err := d.find(ctx, key, uid)
	if err != nil {
		return Outcome{}, err
	}
	value := strings.TrimSpace(submission.Value)
	if err := target.judge(value); err != nil {
		return Outcome{}, err
	}
	outcome, err := d.ask(ctx, target, value, submission.Confirm)
	if err != nil {
		return outcome, err
	}
	for range writes {
		// Anew, for the provider may have taken its time, and after a conflict.
		if target, err = d.find(ctx, key, uid); err != nil {
			return Outcome{}, err
		}
		if err := target.judge(value); err != nil {
			return Outcome{}, err
		}
		if err = d.write(ctx, target, value); !apierrors.IsConflict(err) {
			break
		}
	}
	switch {
	case apierrors.IsConflict(err):
		return Outcome{}, refuse(Busy, "Secret %s keeps changing. Nothing was stored; try again.", target.location.Secret)
	case apierrors.IsNotFound(err):
		return Outcome{}, target.secretMissing()
	case err != nil:
		return Outcome{}, fmt.Errorf("writing the value into Secret %s: %w", target.location.Secret, withoutWords(err))
	}
	return outcome, nil
}

// withoutWords is what the API server answers to a write of a Secret without its message: an admission webhook may
// quote the object there. To look for the value in it would not do, since it can be escaped, cut or encoded,
// and the Secret's other keys can be quoted as well.
func withoutWords(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	said := status.Status()
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: said.Code, Reason: said.Reason,
		Message: fmt.Sprintf("the API server answers %d %s (its message is withheld, for it may quote a value)", said.Code, said.Reason),
	}}
}

// ask has the provider say whether it accepts the value. Only a provider that says that it does not, or
// something that is not understood, holds a value up: one that cannot be asked must not keep anybody from
// repairing.
func (d *Desk) ask(ctx context.Context, target target, value string, confirmed bool) (Outcome, error) {
	probe, detail := d.Prober.Probe(ctx, target.question.Provider, value)
	if err := ctx.Err(); err != nil {
		return Outcome{}, fmt.Errorf("asking the provider about the value: %w", err)
	}
	outcome := Outcome{Probe: probe, Detail: detail}
	switch probe {
	case verdict.ProbeValid, verdict.ProbeIndeterminate, verdict.ProbeUnsupported:
		return outcome, nil
	case verdict.ProbeRejected, verdict.ProbeForbidden:
	}
	if confirmed {
		return outcome, nil
	}
	if detail == "" {
		detail = string(probe)
	}
	return outcome, refuse(Unconfirmed, "%s does not accept this value (%s). Nothing was stored.", target.provider(), detail)
}

// write changes the one key. The patch carries the Secret's resourceVersion, so it fails when the Secret is
// another one by now, and being a patch it creates none.
func (d *Desk) write(ctx context.Context, target target, value string) error {
	changed := target.secret.DeepCopy()
	changed.Data[target.location.Key] = []byte(value)
	return d.Client.Patch(ctx, changed, client.MergeFromWithOptions(target.secret, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
}

// judge refuses a value that cannot be right.
func (t target) judge(value string) error {
	switch {
	case value == "":
		return refuse(Malformed, "The value is empty.")
	case len(value) > MaxValue:
		return refuse(Malformed, "The value is longer than %d KiB.", MaxValue>>10)
	case t.token() && strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		// Of a token that goes into a header. Texts copied from a page bring invisible ones along.
		return refuse(Malformed, "The value holds a space, a line break or a character that no token has.")
	case !t.question.Provider.Matches(value):
		return refuse(Malformed, "The value does not look like a credential of %s%s.", t.provider(), t.shape())
	case bytes.Equal(bytes.TrimSpace(t.secret.Data[t.location.Key]), []byte(value)):
		return refuse(Unchanged, "This is the value that is stored already. Enter a new one.")
	}
	return nil
}

// token tells whether the credential is known to be one that a header carries.
func (t target) token() bool {
	return t.question.Provider.Shape == providers.ShapeBearer || t.question.Provider.Shape == providers.ShapeOAuth
}

func (t target) provider() string {
	if title := t.question.Provider.Title; title != "" {
		return title
	}
	return "the provider"
}

func (t target) shape() string {
	if shape := t.question.Provider.TokenShape; shape != nil && shape.Description != "" {
		return ", which " + shape.Description
	}
	return ""
}

func (t target) secretMissing() *Refusal {
	return refuse(SecretMissing, "Secret %s, which holds the credential, does not exist. Whoever runs the platform has to create it.", t.location.Secret)
}

func secretOf(key types.NamespacedName) *corev1.Secret {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = key.Namespace, key.Name
	return secret
}
