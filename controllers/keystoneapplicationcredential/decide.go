package keystoneapplicationcredential

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/internal/rotation"
)

// questions are what was put to Keystone on this pass. Each is put once.
type questions struct {
	// audit asks for the list whatever the plan wants.
	audit bool
	// listed tells that the user's credentials were asked for, and names are the generations of this
	// order that Keystone listed; nil when it gave no usable answer.
	listed bool
	names  map[int64]bool
	// verified are the generations that a login was tried with.
	verified []int64
	// unanswered is why Keystone gave no usable answer.
	unanswered error
}

// maxRounds bounds the rounds of question and decision. A plan asks at most two things after
// another; the bound is there so that a mistake costs a pass and not the controller.
const maxRounds = 6

// decide asks until the plan asks nothing that was not put already. What stays open is left out of
// the plan by the decision itself, so an unanswered question never stops what does not depend on it.
func (s *state) decide(ctx context.Context) *order.Outcome {
	if s.asked.audit {
		s.list(ctx)
		s.removeOrphans(ctx)
	}
	for range maxRounds {
		s.plan = rotation.Decide(s.input)
		if !s.ask(ctx) {
			break
		}
	}
	return nil
}

// ask puts the plan's open questions and tells whether there were any.
func (s *state) ask(ctx context.Context) (asked bool) {
	if (s.plan.AskLive || len(s.plan.Ask) > 0 || len(s.plan.Prove) > 0) && !s.asked.listed {
		s.list(ctx)
		asked = true
	}
	if s.answer(s.plan.Ask) || s.answer(s.plan.Prove) {
		asked = true
	}
	if s.revokeLeftovers(ctx) {
		asked = true
	}
	if generation := s.plan.Verify; generation != 0 && !slices.Contains(s.asked.verified, generation) {
		s.asked.verified = append(s.asked.verified, generation)
		s.input.Logins[generation] = s.logIn(ctx, generation)
		asked = true
	}
	return asked
}

// list asks Keystone, as admin, which credentials with the order's names the user has. One answer
// settles every question about existence: a name that is not on the list is gone.
func (s *state) list(ctx context.Context) {
	s.asked.listed = true
	found, err := s.proof(ctx)
	if err != nil {
		s.asked.unanswered = err
		return
	}
	s.settle(found)
}

func (s *state) proof(ctx context.Context) (map[string]keystone.ApplicationCredential, error) {
	session, err := s.Admin(ctx)
	if err != nil {
		return nil, err
	}
	s.rememberSkew(session.Skew())
	s.input.KeystoneNow = s.Now.Add(session.Skew())
	userID, err := s.keystoneUser(ctx)
	if err != nil {
		return nil, err
	}
	return session.Proof(ctx, userID, s.Child(credentialPrefix))
}

// keystoneUser is the Keystone id of the ordered user, from K-ORC's object and not from the order's status.
func (s *state) keystoneUser(ctx context.Context) (string, error) {
	user, err := order.KORCUser(ctx, s.Management, s.ChildNamespace(), s.UserKey(s.user.Name))
	if err != nil {
		return "", err
	}
	if user.Status.ID == nil {
		return "", fmt.Errorf("K-ORC's User %s/%s reports no Keystone id yet", user.Namespace, user.Name)
	}
	return *user.Status.ID, nil
}

// settle takes the list for an answer to every question about existence.
func (s *state) settle(found map[string]keystone.ApplicationCredential) {
	s.input.LiveID = rotation.Gone
	s.input.Keystone, s.asked.names = map[int64]rotation.Existence{}, map[int64]bool{}
	for name, credential := range found {
		if credential.ID == s.input.Status.ID {
			s.input.LiveID = rotation.Held
		}
		if generation, ok := generationOf(name, s.Child(credentialPrefix)); ok {
			s.asked.names[generation] = true
		}
	}
	s.answer(s.recorded())
}

// answer fills in, from the list, what Keystone said about generations that the decision had not
// asked about before, and tells whether there were any.
func (s *state) answer(generations []int64) (answered bool) {
	if s.asked.names == nil {
		return false
	}
	for _, generation := range generations {
		if s.input.Keystone[generation] != rotation.Unknown {
			continue
		}
		s.input.Keystone[generation] = rotation.Gone
		if s.asked.names[generation] {
			s.input.Keystone[generation] = rotation.Held
		}
		answered = true
	}
	return answered
}

// recorded are the generations that something is on record for.
func (s *state) recorded() []int64 {
	known := []int64{s.input.Status.Generation}
	if previous := s.input.Status.Previous; previous != nil {
		known = append(known, previous.Generation)
	}
	for generation := range s.input.Secrets {
		known = append(known, generation)
	}
	for _, observed := range s.input.Children {
		known = append(known, observed.Generation)
	}
	slices.Sort(known)
	return slices.Compact(slices.DeleteFunc(known, func(generation int64) bool { return generation < 1 }))
}

// revokeLeftovers deletes, in Keystone itself, what K-ORC's object is gone for and Keystone still
// holds: K-ORC lets go of its object when Keystone fails. Then it asks again.
func (s *state) revokeLeftovers(ctx context.Context) (asked bool) {
	for _, generation := range s.plan.Prove {
		if s.input.Keystone[generation] != rotation.Held {
			continue
		}
		if err := s.revoke(ctx, s.Child(credentialChild(generation))); err != nil {
			s.asked.unanswered = err
			continue
		}
		asked = true
	}
	if asked {
		s.list(ctx)
	}
	return asked
}

// removeOrphans revokes, during an audit, credentials with this order's names of generations that
// nothing is on record for.
func (s *state) removeOrphans(ctx context.Context) {
	recorded := s.recorded()
	for generation := range s.asked.names {
		if slices.Contains(recorded, generation) {
			continue
		}
		if err := s.revoke(ctx, s.Child(credentialChild(generation))); err != nil {
			s.asked.unanswered = err
			continue
		}
		delete(s.asked.names, generation)
	}
}

// revoke deletes one credential of the user by its name, as admin, and says so.
func (s *state) revoke(ctx context.Context, name string) error {
	session, err := s.Admin(ctx)
	if err != nil {
		return err
	}
	userID, err := s.keystoneUser(ctx)
	if err != nil {
		return err
	}
	found, err := session.Proof(ctx, userID, name)
	if err != nil {
		return err
	}
	credential, held := found[name]
	if !held {
		return nil
	}
	if err := session.DeleteApplicationCredential(ctx, userID, credential.ID); err != nil {
		return err
	}
	s.RevocationRepaired(
		"Keystone still held application credential %s (%s) that K-ORC had let go of; the operator revoked it", credential.ID, name)
	return nil
}

// logIn verifies a generation with one login, as a consumer would use it.
func (s *state) logIn(ctx context.Context, generation int64) rotation.Login {
	c := s.children[generation]
	if c.object == nil || c.object.Status.ID == nil {
		return rotation.NotTried
	}
	secret, err := s.SecretValue(ctx, s.Child(secretChild(generation)), secretKey)
	if err != nil || len(secret) == 0 {
		s.asked.unanswered = err
		return rotation.Unanswered
	}
	session, err := s.Base.Keystone.Login(ctx, clouds.Cloud{
		AuthURL:               order.AuthURL(s.ControlPlane, ""),
		RegionName:            order.Region(s.ControlPlane),
		EndpointType:          order.EndpointType(s.ControlPlane),
		ApplicationCredential: &clouds.ApplicationCredentialAuth{ID: *c.object.Status.ID, Secret: string(secret)},
	}, s.bundle)
	switch keystone.Classify(err) {
	case keystone.OK:
		s.rememberSkew(session.Skew())
		return rotation.Accepted
	case keystone.NotFound, keystone.AuthenticationFailed:
		s.asked.unanswered = err
		return rotation.Refused
	default:
		s.asked.unanswered = err
		return rotation.Unanswered
	}
}

// keystoneSkew is how far the ControlPlane's Keystone was ahead of us when it last answered, 0 before
// it did. Expiries are fixed on Keystone's clock.
func (s *state) keystoneSkew() time.Duration { return s.Base.Skew(s.ControlPlane) }

func (s *state) rememberSkew(skew time.Duration) { s.Base.RememberSkew(s.ControlPlane, skew) }

// whyUnanswered is the cause behind an open question, for a condition's message.
func (s *state) whyUnanswered() string {
	if s.asked.unanswered == nil {
		return ""
	}
	return ": " + s.asked.unanswered.Error()
}
