package publish

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
)

func TestLedger_decides(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	fresh, old := now.Add(-time.Second), now.Add(-inFlight)
	for _, c := range []struct {
		state            State
		since            time.Time
		mine, repeatable bool
		open, settled    step
	}{
		{StateNone, time.Time{}, false, false, stepSend, stepNothing},
		{StateNotSent, fresh, false, false, stepSend, stepNothing},
		{StateSending, fresh, false, true, stepWait, stepWait},
		{StateSending, fresh, true, true, stepSendAgain, stepClose},
		{StateSending, old, false, true, stepSendAgain, stepClose},
		{StateSending, fresh, false, false, stepWait, stepWait},
		{StateSending, fresh, true, false, stepSendAgain, stepClose},
		{StateSending, old, false, false, stepSendAgain, stepClose},
		{StateSendingAgain, fresh, false, false, stepWait, stepWait},
		{StateSendingAgain, fresh, true, false, stepGiveUp, stepClose},
		{StateSendingAgain, old, false, false, stepGiveUp, stepClose},
		{StateSendingAgain, old, false, true, stepSendAgain, stepClose},
		{StateOutcomeUnknown, fresh, false, false, stepNothing, stepClose},
		{StateDelivered, fresh, false, true, stepNothing, stepClose},
		{StateDelivered, fresh, false, false, stepNothing, stepClose},
		{StateClosing, fresh, false, false, stepNothing, stepWait},
		{StateClosing, fresh, true, false, stepNothing, stepForget},
		{StateClosing, old, false, false, stepNothing, stepForget},
		{StateClosing, old, false, true, stepNothing, stepClose},
		{StateClosed, old, false, true, stepNothing, stepNothing},
		{"OfANewerVersion", old, false, true, stepNothing, stepNothing},
	} {
		e := entry{State: c.state, Since: c.since}
		if got := decideOpen(e, c.mine, c.repeatable, now); got != c.open {
			t.Errorf("%s (mine %t, repeatable %t, old %t) of an open request leads to step %d, want %d", c.state, c.mine, c.repeatable, c.since.Equal(old), got, c.open)
		}
		if got := decideSettled(e, c.mine, c.repeatable, now); got != c.settled {
			t.Errorf("%s (mine %t, repeatable %t, old %t) of a settled request leads to step %d, want %d", c.state, c.mine, c.repeatable, c.since.Equal(old), got, c.settled)
		}
	}
}

// TestLedger_survives_its_condition reads back what was written, whatever was there before.
func TestLedger_survives_its_condition(t *testing.T) {
	states := []State{StateSending, StateSendingAgain, StateNotSent, StateOutcomeUnknown, StateDelivered, StateClosing, StateClosed}
	rapid.Check(t, func(t *rapid.T) {
		request := &v1alpha1.CredentialUpdateRequest{}
		now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
		written := map[string]entry{}
		for range rapid.IntRange(1, 12).Draw(t, "writes") {
			channel, state := rapid.SampledFrom([]string{"Slack", "Webhook", "Event"}).Draw(t, "channel"), rapid.SampledFrom(states).Draw(t, "state")
			now = now.Add(time.Second)
			writeEntry(request, channel, state, "message", now)
			written[channel] = entry{State: state, Message: "message", Since: now}
		}
		if len(request.Status.Conditions) != len(written) {
			t.Fatalf("there are %d conditions for %d channels", len(request.Status.Conditions), len(written))
		}
		for channel, want := range written {
			if got := readEntry(request, channel); got != want {
				t.Fatalf("%s reads %+v, want %+v", channel, got, want)
			}
		}
		for _, c := range request.Status.Conditions {
			if c.Status == "" {
				t.Fatalf("%s/%s has no status", c.Type, c.Reason)
			}
		}
	})
}

func TestReferences(t *testing.T) {
	references := addReference(addReference("", "Webhook", "uid"), "Slack", "C1/1.2")
	if references != "slack:C1/1.2 webhook:uid" {
		t.Errorf("they are %q", references)
	}
	if references = addReference(references, "Slack", "C1/3.4"); reference(references, "Slack") != "C1/3.4" || reference(references, "Webhook") != "uid" || reference(references, "Event") != "" {
		t.Errorf("they became %q", references)
	}
}
