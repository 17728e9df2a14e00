package rotation

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	interval = 720 * time.Hour
	grace    = 24 * time.Hour
)

func at(d time.Duration) *time.Time { t := epoch.Add(d); return &t }

// steady is a converged order at generation 3, switched an hour ago.
func steady(change ...func(*Input)) Input {
	in := Input{
		Now:         epoch,
		Spec:        Spec{Generation: 1, Interval: interval, GracePeriod: grace},
		Status:      Status{ID: "id-3", Generation: 3, ExpiresAt: at(interval + grace - time.Hour), LastRotation: at(-time.Hour)},
		Children:    []Child{available(3)},
		Secrets:     map[int64]bool{3: true},
		Keystone:    map[int64]Existence{},
		Logins:      map[int64]Login{},
		DeliveredID: "id-3",
		StoreReady:  true,
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

// fresh is an order without a credential, whose first name Keystone says is free.
func fresh(change ...func(*Input)) Input {
	in := Input{
		Now:        epoch,
		Spec:       Spec{Generation: 1, Interval: interval, GracePeriod: grace},
		Secrets:    map[int64]bool{},
		Keystone:   map[int64]Existence{1: Gone},
		Logins:     map[int64]Login{},
		StoreReady: true,
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func available(generation int64) Child {
	return Child{Generation: generation, State: Available, ID: "id-" + string(rune('0'+generation)), ExpiresAt: at(interval)}
}

func pending(generation int64) Child {
	return Child{Generation: generation, ExpiresAt: at(interval)}
}

func terminal(generation int64) Child {
	return Child{Generation: generation, State: Terminal, ExpiresAt: at(interval), Message: "invalid"}
}

func conflicting(generation int64) Child {
	c := terminal(generation)
	c.Conflict = true
	return c
}

func child(c Child) func(*Input) {
	return func(in *Input) {
		in.Children = slices.DeleteFunc(slices.Clone(in.Children), func(o Child) bool { return o.Generation == c.Generation })
		in.Children = append(in.Children, c)
		if _, ok := in.Secrets[c.Generation]; !ok {
			in.Secrets[c.Generation] = true
		}
	}
}

func noChild(generation int64) func(*Input) {
	return func(in *Input) {
		in.Children = slices.DeleteFunc(slices.Clone(in.Children), func(o Child) bool { return o.Generation == generation })
	}
}

func declared(generation int64) func(*Input) {
	return func(in *Input) { in.Spec.Generation = generation }
}

func says(generation int64, word Existence) func(*Input) {
	return func(in *Input) { in.Keystone[generation] = word }
}

func live(word Existence) func(*Input) { return func(in *Input) { in.LiveID = word } }

func login(generation int64, result Login) func(*Input) {
	return func(in *Input) { in.Logins[generation] = result }
}

func marker(generation int64) func(*Input) {
	return func(in *Input) { in.Secrets[generation] = true }
}

func noMarker(generation int64) func(*Input) {
	return func(in *Input) { delete(in.Secrets, generation) }
}

func storeDown(in *Input) { in.StoreReady = false }

func scheduleDue(in *Input) { in.Status.LastRotation = at(-interval) }

func expired(in *Input) { in.Spec.Interval = 0; in.Status.ExpiresAt = at(0) }

// graceUntil records generation 2 as superseded.
func graceUntil(d time.Duration) func(*Input) {
	return func(in *Input) {
		in.Status.Previous = &Previous{ID: "id-2", Generation: 2, DeleteAt: epoch.Add(d)}
		child(available(2))(in)
	}
}

func deliveredID(id string) func(*Input) { return func(in *Input) { in.DeliveredID = id } }

// TestDesired lays the contract's table beside the code's, row by row.
func TestDesired(t *testing.T) {
	for _, tc := range []struct {
		name    string
		in      Input
		desired int64
		trigger Trigger
	}{
		{"an order without a credential wants the declared generation", fresh(declared(4)), 4, FirstCredential},
		{"an order without a credential reads an unset generation as one", fresh(declared(0)), 1, FirstCredential},
		{"a pending first credential below a raised generation is not waited for", fresh(child(pending(1)), declared(3)), 3, FirstCredential},
		{"a pending first credential is continued", fresh(child(pending(1))), 1, FirstCredential},
		{"a failed first credential is continued", fresh(child(terminal(1))), 1, FirstCredential},
		{"an order without status adopts its highest working credential", fresh(child(available(2)), child(available(5)), child(pending(6)), declared(3)), 5, FirstCredential},
		{"an order without status does not adopt a credential whose secret is lost", fresh(child(available(5)), noMarker(5)), 6, FirstCredential},
		{"a first credential that expired gets a new number", fresh(child(Child{Generation: 1, ExpiresAt: at(0)})), 2, FirstCredential},

		{"a pending successor is continued", steady(child(pending(4))), 4, UnderWay},
		{"the highest successor is continued", steady(child(pending(4)), child(pending(5))), 5, UnderWay},
		{"a pending successor is continued although a higher generation is declared", steady(child(pending(4)), declared(7)), 4, UnderWay},
		{"a failed successor is continued while no higher generation is declared", steady(child(terminal(4)), declared(4)), 4, UnderWay},
		{"a failed successor gives way to a raised generation", steady(child(terminal(4)), declared(5)), 5, GenerationRaised},
		{"a refused successor gives way to a raised generation", steady(child(available(4)), login(4, Refused), declared(5)), 5, GenerationRaised},
		{"a successor that K-ORC gave up but Keystone holds has not failed", steady(child(terminal(4)), says(4, Held), declared(5)), 4, UnderWay},
		{"a successor of which only the intent is on record is continued", steady(marker(4)), 4, UnderWay},
		{"the intent of a successor does not outrank a raised generation", steady(marker(4), declared(6)), 6, GenerationRaised},
		{"a successor in flight goes on after the schedule is turned off", steady(child(pending(4)), func(in *Input) { in.Spec.Interval = 0 }), 4, UnderWay},
		{"a successor in flight goes on when the live credential is gone", steady(child(pending(4)), live(Gone)), 4, UnderWay},

		{"a live credential that is gone is replaced", steady(live(Gone)), 4, LiveGone},
		{"a live credential that is gone is replaced even in a grace period", steady(graceUntil(time.Hour), live(Gone)), 4, LiveGone},

		{"a raised generation waits for the grace period", steady(graceUntil(time.Hour), declared(9)), 3, NoTrigger},
		{"the schedule waits for the grace period", steady(graceUntil(time.Hour), scheduleDue), 3, NoTrigger},
		{"an expired credential waits for the grace period", steady(graceUntil(time.Hour), expired), 3, NoTrigger},
		{"a lost secret waits for the grace period", steady(graceUntil(time.Hour), noMarker(3)), 3, NoTrigger},
		{"a lost K-ORC object waits for the grace period", steady(graceUntil(time.Hour), noChild(3), live(Held)), 3, NoTrigger},
		{"a grace period that is over still holds until its credential is proven gone", steady(graceUntil(-time.Hour), declared(9)), 3, NoTrigger},
		{"the intent of a successor waits for the grace period", steady(graceUntil(time.Hour), marker(4), live(Held)), 3, NoTrigger},

		{"a successor that expired is replaced by the next number", steady(child(Child{Generation: 4, ExpiresAt: at(0)})), 5, SuccessorReplaced},
		{"a successor that Keystone lost is replaced by the next number", steady(child(available(4)), says(4, Gone)), 5, SuccessorReplaced},
		{"a successor that was never created is not taken for lost", steady(child(terminal(4)), says(4, Gone)), 4, UnderWay},
		{"a successor whose secret is lost is replaced by the next number", steady(child(available(4)), noMarker(4)), 5, SuccessorReplaced},
		{"a successor that is being deleted is replaced by the next number", steady(child(Child{Generation: 4, Deleting: true})), 5, SuccessorReplaced},
		{"a replaced successor gives its place to a higher declared generation", steady(child(Child{Generation: 4, ExpiresAt: at(0)}), declared(8)), 8, SuccessorReplaced},
		{"the reserved number is kept while the replaced successor goes", steady(child(Child{Generation: 4, ExpiresAt: at(0)}), marker(5)), 5, UnderWay},
		{"the intent whose Secret is empty gets a new number", steady(func(in *Input) { in.Secrets[4] = false }, scheduleDue), 5, ScheduleDue},

		{"a raised generation is wanted directly", steady(declared(9)), 9, GenerationRaised},
		{"a due schedule wants the next generation", steady(scheduleDue), 4, ScheduleDue},
		{"an expired credential is replaced with the schedule off", steady(expired), 4, LiveExpired},
		{"a lost secret is replaced", steady(noMarker(3)), 4, SecretLost},
		{"an emptied secret is replaced", steady(func(in *Input) { in.Secrets[3] = false }), 4, SecretLost},
		{"a live credential without K-ORC object is replaced when Keystone holds it", steady(noChild(3), live(Held)), 4, ChildLost},
		{"a live credential whose K-ORC object is being deleted is replaced", steady(child(Child{Generation: 3, State: Available, ID: "id-3", Deleting: true}), live(Held)), 4, ChildLost},

		{"a converged order keeps its generation", steady(), 3, NoTrigger},
		{"a declared generation below the live one changes nothing", steady(declared(2)), 3, NoTrigger},
		{"a live credential that K-ORC gave up is kept while Keystone is silent", steady(child(terminal(3))), 3, NoTrigger},
		{"a live credential that K-ORC gave up is kept when Keystone holds it", steady(child(terminal(3)), live(Held)), 3, NoTrigger},
		{"a healing annotation for an older id changes nothing", steady(func(in *Input) { in.RotateID = "id-2" }), 3, NoTrigger},
		{"a healing annotation is not believed against Keystone", steady(live(Held), func(in *Input) { in.RotateID = "id-3" }), 3, NoTrigger},
		{"a healing annotation that Keystone confirms rotates", steady(live(Gone), func(in *Input) { in.RotateID = "id-3" }), 4, LiveGone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Decide(tc.in)
			if p.Desired != tc.desired || p.Trigger != tc.trigger {
				t.Errorf("desired %d (%q), want %d (%q)", p.Desired, p.Trigger, tc.desired, tc.trigger)
			}
		})
	}
}

func waitReason(p Plan) WaitReason {
	if p.Wait == nil {
		return ""
	}
	return p.Wait.Reason
}

func TestMint(t *testing.T) {
	free := says(4, Gone)
	for _, tc := range []struct {
		name  string
		in    Input
		mint  int64
		wait  WaitReason
		prove []int64
	}{
		{"the first credential is minted", fresh(), 1, "", nil},
		{"nothing is minted under a name that Keystone was not asked about", fresh(says(1, Unknown)), 0, WaitingForProof, []int64{1}},
		{"nothing is minted under a name that Keystone holds", fresh(says(1, Held)), 0, WaitingForProof, []int64{1}},
		{"the first credential waits for the secret store", fresh(storeDown), 0, StoreNotReady, nil},
		{"a due rotation mints", steady(scheduleDue, free), 4, "", nil},
		{"a due rotation waits for the secret store", steady(scheduleDue, free, storeDown), 0, StoreNotReady, nil},
		{"a raised generation waits for the secret store", steady(declared(4), free, storeDown), 0, StoreNotReady, nil},
		{"a lost secret waits for the secret store", steady(noMarker(3), free, storeDown), 0, StoreNotReady, nil},
		{"a gone credential is replaced without the secret store", steady(live(Gone), free, storeDown), 4, "", nil},
		{"an expired credential is replaced without the secret store", steady(expired, free, storeDown), 4, "", nil},
		{"a mint waits for an older generation that K-ORC still lists", steady(scheduleDue, free, child(available(1))), 0, WaitingForProof, nil},
		{"a mint waits for an older generation that Keystone was not asked about", steady(scheduleDue, free, marker(1)), 0, WaitingForProof, []int64{1}},
		{"a mint waits for an older generation that Keystone holds", steady(scheduleDue, free, marker(1), says(1, Held)), 0, WaitingForProof, []int64{1}},
		{"a mint goes on beside an older generation that is proven gone", steady(scheduleDue, free, marker(1), says(1, Gone)), 4, "", nil},
		{"an order without status mints beside the credential that its Secret carries", fresh(child(Child{Generation: 1, State: Available, ID: "id-1", ExpiresAt: at(0)}), says(1, Held), says(2, Gone), deliveredID("id-1")), 2, SecretNotDelivered, nil},
		{"an intent on record is minted", steady(marker(4), free), 4, "", nil},
		{"a successor that K-ORC lists is not minted again", steady(child(pending(4)), free), 0, SuccessorPending, nil},
		{"a gone credential is replaced at once in a grace period", steady(graceUntil(time.Hour), live(Gone), says(3, Gone), free), 4, "", nil},
		{"in a grace period the live generation's name must be free", steady(graceUntil(time.Hour), live(Gone), says(3, Held), free), 0, WaitingForProof, nil},
		{"in a grace period a name without K-ORC object is proven free", steady(graceUntil(time.Hour), live(Gone), noChild(3), says(3, Held), free), 0, WaitingForProof, []int64{3}},
		{"nothing is minted in a grace period for any other reason", steady(graceUntil(time.Hour), declared(4), free), 0, GracePeriod, nil},
		{"an expired credential in a grace period mints nothing", steady(graceUntil(time.Hour), expired, free), 0, GracePeriod, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Decide(tc.in)
			var got int64
			if p.Mint != nil {
				got = p.Mint.Generation
			}
			if got != tc.mint || waitReason(p) != tc.wait || !slices.Equal(p.Prove, tc.prove) {
				t.Errorf("mint %d, wait %+v, prove %v; want %d, %q, %v", got, p.Wait, p.Prove, tc.mint, tc.wait, tc.prove)
			}
		})
	}
}

func TestSuccessor(t *testing.T) {
	soon := func(in *Input) { in.Spec.Interval = 0; in.Status.ExpiresAt = at(10 * time.Minute) }
	refusedFailure := &Failure{Generation: 4, Kind: LoginRefused, Confirmed: true}
	for _, tc := range []struct {
		name     string
		in       Input
		switched int64
		verify   int64
		wait     WaitReason
		failed   *Failure
	}{
		{"an available successor is logged in with first", steady(child(available(4))), 0, 4, LoginUnanswered, nil},
		{"an accepted successor becomes the live one", steady(child(available(4)), login(4, Accepted)), 4, 0, "", nil},
		{"a successor without an id is waited for", steady(child(Child{Generation: 4, State: Available}), login(4, Accepted)), 0, 0, SuccessorPending, nil},
		{"an unanswered login is asked again", steady(child(available(4)), login(4, Unanswered)), 0, 4, LoginUnanswered, nil},
		{"an unanswered login does not hold the switch when the live one is about to expire", steady(child(available(4)), login(4, Unanswered), soon), 4, 4, "", nil},
		{"an unanswered login does not hold the switch when the live one is gone", steady(child(available(4)), login(4, Unanswered), live(Gone)), 4, 4, "", nil},
		{"a login is tried before the live one's expiry counts", steady(child(available(4)), soon), 0, 4, LoginUnanswered, nil},
		{"the first credential is never delivered unverified", fresh(says(1, Unknown), child(available(1)), login(1, Unanswered)), 0, 1, LoginUnanswered, nil},
		{"the first credential is delivered once accepted", fresh(says(1, Unknown), child(available(1)), login(1, Accepted)), 1, 0, "", nil},
		{"a refused successor fails", steady(child(available(4)), login(4, Refused)), 0, 0, "", refusedFailure},
		{"a refused successor fails even when the live one is about to expire", steady(child(available(4)), login(4, Refused), soon), 0, 0, "", refusedFailure},
		{"a successor that K-ORC gave up fails", steady(child(terminal(4))), 0, 0, "", &Failure{Generation: 4, Kind: TerminalByKORC, Message: "invalid"}},
		{"a successor that K-ORC gave up and Keystone does not hold fails for certain", steady(child(terminal(4)), says(4, Gone)), 0, 0, "", &Failure{Generation: 4, Kind: TerminalByKORC, Message: "invalid", Confirmed: true}},
		{"a successor whose name K-ORC found taken fails until Keystone is heard", steady(child(conflicting(4))), 0, 0, "", &Failure{Generation: 4, Kind: TerminalByKORC, Message: "invalid"}},
		{"a successor whose name K-ORC found taken and Keystone says is free is waited for", steady(child(conflicting(4)), says(4, Gone)), 0, 0, SuccessorPending, nil},
		{"a successor that K-ORC gave up and Keystone holds is waited for", steady(child(terminal(4)), says(4, Held)), 0, 0, SuccessorPending, nil},
		{"no switch drops the last record of a generation in a grace period", steady(graceUntil(time.Hour), child(available(4)), login(4, Accepted), live(Gone), noMarker(3)), 0, 0, WaitingForProof, nil},
		{"no switch overwrites a grace period whose live credential is held", steady(graceUntil(time.Hour), child(available(4)), login(4, Accepted), live(Held)), 0, 0, GracePeriod, nil},
		{"no switch overwrites a grace period whose live credential is not known to be gone", steady(graceUntil(time.Hour), child(available(4)), login(4, Accepted)), 0, 0, LiveUnanswered, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Decide(tc.in)
			var switched int64
			if p.Switch != nil {
				switched = p.Switch.Generation
			}
			if switched != tc.switched || p.Verify != tc.verify || waitReason(p) != tc.wait || !reflect.DeepEqual(p.Failed, tc.failed) {
				t.Errorf("switch %d, verify %d, wait %+v, failed %+v; want %d, %d, %q, %+v",
					switched, p.Verify, p.Wait, p.Failed, tc.switched, tc.verify, tc.wait, tc.failed)
			}
		})
	}
}

func TestSwitch(t *testing.T) {
	accepted := func(in *Input) { child(available(4))(in); login(4, Accepted)(in) }
	running := &Previous{ID: "id-2", Generation: 2, DeleteAt: epoch.Add(time.Hour)}
	for _, tc := range []struct {
		name     string
		in       Input
		previous *Previous
	}{
		{"the superseded credential gets the grace period", steady(accepted), &Previous{ID: "id-3", Generation: 3, DeleteAt: epoch.Add(grace)}},
		{"a grace period of zero still records the superseded credential", steady(accepted, func(in *Input) { in.Spec.GracePeriod = 0 }), &Previous{ID: "id-3", Generation: 3, DeleteAt: epoch}},
		{"a gone credential needs no grace period", steady(accepted, live(Gone)), nil},
		{"a gone credential whose secret is lost too stays on record in the status", steady(accepted, live(Gone), noMarker(3)), &Previous{ID: "id-3", Generation: 3, DeleteAt: epoch}},
		{"a gone credential that left no trace needs no record", steady(accepted, live(Gone), noMarker(3), noChild(3), says(3, Gone)), nil},
		{"a running grace period stays as it is when the live credential is gone", steady(accepted, live(Gone), graceUntil(time.Hour)), running},
		{"the first credential supersedes none", fresh(child(available(4)), login(4, Accepted)), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Decide(tc.in)
			want := &Status{ID: "id-4", Generation: 4, ExpiresAt: at(interval), LastRotation: at(0), Previous: tc.previous}
			if !reflect.DeepEqual(p.Switch, want) {
				t.Errorf("switch %+v, want %+v", p.Switch, want)
			}
			if len(p.Delete) > 0 || len(p.Forget) > 0 || p.ClearPrevious {
				t.Errorf("prunes before the switch is persisted: %+v", p)
			}
			if next := epoch.Add(interval - tc.in.Spec.GracePeriod); p.NextRotation == nil || !p.NextRotation.Equal(next) {
				t.Errorf("next rotation %v, want the new credential's %v", p.NextRotation, next)
			}
		})
	}
}

func TestQuestions(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   Input
		live bool
		ask  []int64
	}{
		{"a converged order asks nothing", steady(), false, nil},
		{"an order in its grace period asks nothing", steady(graceUntil(time.Hour)), false, nil},
		{"a pending successor is not asked about", steady(child(pending(4))), false, nil},
		{"a lost K-ORC object raises the question whether the credential lives", steady(noChild(3)), true, nil},
		{"an answered question is not put again", steady(noChild(3), live(Held)), false, nil},
		{"K-ORC giving up on the live one raises the question whether it lives", steady(child(terminal(3))), true, nil},
		{"another id under the live generation raises the question whether the live one lives", steady(child(Child{Generation: 3, State: Available, ID: "stray"})), true, nil},
		{"a healing annotation for the live id raises the question whether it lives", steady(func(in *Input) { in.RotateID = "id-3" }), true, nil},
		{"a healing annotation for an older id asks nothing", steady(func(in *Input) { in.RotateID = "id-2" }), false, nil},
		{"a successor in a grace period raises the question whether the live one lives", steady(graceUntil(time.Hour), child(pending(4))), true, nil},
		{"the switch asks whether the superseded credential needs a grace period", steady(child(available(4)), login(4, Accepted)), true, nil},
		{"a failed successor is looked up in Keystone", steady(child(terminal(4))), false, []int64{4}},
		{"a refused successor is looked up in Keystone", steady(child(available(4)), login(4, Refused)), false, []int64{4}},
		{"a live name in a grace period is looked up in Keystone", steady(graceUntil(time.Hour), live(Gone)), false, []int64{3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Decide(tc.in)
			if p.AskLive != tc.live || !slices.Equal(p.Ask, tc.ask) {
				t.Errorf("ask live %t, ask %v; want %t, %v", p.AskLive, p.Ask, tc.live, tc.ask)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	type want struct {
		mark, del, prove, forget []int64
		clear                    bool
		wait                     WaitReason
	}
	deleting := func(generation int64) func(*Input) {
		c := available(generation)
		c.Deleting = true
		return child(c)
	}
	for _, tc := range []struct {
		name string
		in   Input
		want want
	}{
		{"the superseded credential stays in its grace period", steady(graceUntil(time.Hour)), want{}},
		{"the superseded credential goes after its grace period", steady(graceUntil(0)), want{del: []int64{2}, wait: WaitingForProof}},
		{"the superseded credential stays while the Secret carries it", steady(graceUntil(0), deliveredID("id-2")), want{wait: SecretNotDelivered}},
		{"the superseded credential stays while there is no Secret", steady(graceUntil(0), deliveredID("")), want{wait: SecretNotDelivered}},
		{"K-ORC is left alone while it deletes", steady(graceUntil(0), deleting(2)), want{wait: WaitingForProof}},
		{"Keystone is asked once K-ORC's object is gone", steady(graceUntil(0), noChild(2)), want{prove: []int64{2}, wait: WaitingForProof}},
		{"a credential that K-ORC dropped is removed in Keystone", steady(graceUntil(0), noChild(2), says(2, Held)), want{prove: []int64{2}, wait: WaitingForProof}},
		{"the grace period ends with Keystone's word", steady(graceUntil(0), noChild(2), says(2, Gone)), want{forget: []int64{2}, clear: true}},
		{"the grace period ends without a marker as well", steady(graceUntil(0), noChild(2), noMarker(2), says(2, Gone)), want{clear: true}},
		{"a superseded credential that vanished early keeps its record", steady(graceUntil(time.Hour), noChild(2), says(2, Gone)), want{}},
		{"an older generation goes at once", steady(child(available(1))), want{del: []int64{1}, wait: WaitingForProof}},
		{"an older generation that the Secret carries stays", steady(child(available(1)), deliveredID("id-1")), want{wait: SecretNotDelivered}},
		{"an older generation that the Secret carries goes once Keystone lost it", steady(child(available(1)), deliveredID("id-1"), says(1, Gone)), want{del: []int64{1}, wait: WaitingForProof}},
		{"an older generation without a marker is put on record before it goes", steady(child(available(1)), noMarker(1)), want{mark: []int64{1}, del: []int64{1}, wait: WaitingForProof}},
		{"a left-over marker is proven", steady(marker(1)), want{prove: []int64{1}, wait: WaitingForProof}},
		{"a proven marker is forgotten", steady(marker(1), says(1, Gone)), want{forget: []int64{1}}},
		{"a failed successor makes room for a raised generation", steady(child(terminal(4)), declared(6)), want{mark: []int64{6}, del: []int64{4}, wait: WaitingForProof}},
		{"an expired successor reserves its replacement's number", steady(child(Child{Generation: 4, ExpiresAt: at(0)})), want{mark: []int64{5}, del: []int64{4}, wait: WaitingForProof}},
		{"the reserved number is marked before a lost marker is renewed", steady(child(pending(4)), noMarker(4)), want{mark: []int64{5, 4}, del: []int64{4}, wait: WaitingForProof}},
		{"adopting deletes nothing", fresh(says(1, Unknown), child(available(1)), child(available(2)), marker(7)), want{wait: LoginUnanswered}},
		{"K-ORC's object of a gone live credential goes in a grace period", steady(graceUntil(time.Hour), live(Gone), says(3, Gone), says(4, Gone)), want{del: []int64{3}}},
		{"a live credential lost before its delivery goes after the grace period", steady(graceUntil(0), noMarker(3), deliveredID("id-2"), live(Held)), want{del: []int64{3}, wait: WaitingForProof}},
		{"a live credential lost before its delivery is removed in Keystone without K-ORC's object", steady(graceUntil(0), noMarker(3), noChild(3), deliveredID("id-2"), live(Held)), want{prove: []int64{3}, wait: WaitingForProof}},
		{"a live credential lost before its delivery waits for the grace period", steady(graceUntil(time.Hour), noMarker(3), deliveredID("id-2"), live(Held)), want{wait: GracePeriod}},
		{"a lost secret of the live generation is never renewed", steady(graceUntil(time.Hour), live(Gone), noMarker(3), says(3, Gone), says(4, Gone)), want{del: []int64{3}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Decide(tc.in)
			got := want{p.Mark, p.Delete, p.Prove, p.Forget, p.ClearPrevious, waitReason(p)}
			if !slices.Equal(got.mark, tc.want.mark) || !slices.Equal(got.del, tc.want.del) || !slices.Equal(got.prove, tc.want.prove) ||
				!slices.Equal(got.forget, tc.want.forget) || got.clear != tc.want.clear || got.wait != tc.want.wait {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestRefuted(t *testing.T) {
	liveGivenUp := terminal(3)
	liveGivenUp.ID = "id-3"
	for _, tc := range []struct {
		name string
		in   Input
		want []int64
	}{
		{"Keystone contradicts K-ORC about the live credential", steady(child(liveGivenUp), live(Held)), []int64{3}},
		{"Keystone contradicts K-ORC about the successor", steady(child(terminal(4)), says(4, Held)), []int64{4}},
		{"Keystone says that a name is free that K-ORC found taken", steady(child(conflicting(4)), says(4, Gone)), []int64{4}},
		{"silence contradicts nothing", steady(child(liveGivenUp), child(terminal(4))), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if p := Decide(tc.in); !slices.Equal(p.Refuted, tc.want) {
				t.Errorf("refuted %v, want %v", p.Refuted, tc.want)
			}
		})
	}
}

func TestGraceEnd(t *testing.T) {
	for name, test := range map[string]struct {
		grace, skew           time.Duration
		superseded, delivered *time.Time
		want                  time.Duration
	}{
		"credentials_without_expiry": {grace: time.Hour, want: time.Hour},
		"a_delivery_in_time":         {grace: time.Hour, superseded: at(2 * time.Hour), delivered: at(3 * time.Hour), want: time.Hour},
		"none":                       {superseded: at(time.Hour), delivered: at(time.Hour)},
		"a_superseded_one_that_has_yet_to_expire":       {grace: time.Hour, superseded: at(20 * time.Minute), delivered: at(3 * time.Hour), want: time.Hour},
		"over_when_the_superseded_one_has_expired":      {grace: time.Hour, superseded: at(-time.Minute), delivered: at(3 * time.Hour)},
		"half_of_what_is_left_of_the_delivered_one":     {grace: time.Hour, superseded: at(3 * time.Hour), delivered: at(time.Hour), want: 30 * time.Minute},
		"over_when_the_delivered_one_has_expired":       {grace: time.Hour, superseded: at(3 * time.Hour), delivered: at(-time.Minute)},
		"expiries_on_the_clock_of_a_keystone_ahead":     {grace: time.Hour, skew: 10 * time.Minute, superseded: at(5 * time.Minute)},
		"expiries_on_the_clock_of_a_keystone_behind":    {grace: time.Hour, skew: -10 * time.Minute, delivered: at(30 * time.Minute), want: 20 * time.Minute},
		"the_longest_grace_period_right_after_the_mint": {grace: interval - 1, delivered: at(interval + interval - 1), want: interval - time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := GraceEnd(epoch, test.grace, test.skew, test.superseded, test.delivered); !got.Equal(epoch.Add(test.want)) {
				t.Errorf("it ends after %s, want %s", got.Sub(epoch), test.want)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	t.Run("the next rotation follows the interval", func(t *testing.T) {
		p := Decide(steady())
		if want := epoch.Add(interval - time.Hour); !p.NextRotation.Equal(want) {
			t.Errorf("next rotation %v, want %v", p.NextRotation, want)
		}
	})
	t.Run("a lengthened interval does not run into the expiry", func(t *testing.T) {
		p := Decide(steady(func(in *Input) { in.Spec.Interval = 10 * interval }))
		if want := epoch.Add(interval - time.Hour); !p.NextRotation.Equal(want) {
			t.Errorf("next rotation %v, want the expiry minus the grace period, %v", p.NextRotation, want)
		}
	})
	t.Run("the schedule turned off has no next rotation and still wakes before the expiry", func(t *testing.T) {
		p := Decide(steady(func(in *Input) { in.Spec.Interval = 0 }))
		if p.NextRotation != nil || len(p.Wake) != 2 || !p.Wake[0].Equal(*at(interval + grace - time.Hour - 10*time.Minute)) {
			t.Errorf("next rotation %v, wake %v", p.NextRotation, p.Wake)
		}
	})
	t.Run("without a last rotation nothing is scheduled", func(t *testing.T) {
		if p := Decide(steady(func(in *Input) { in.Status.LastRotation = nil })); p.NextRotation != nil {
			t.Errorf("next rotation %v", p.NextRotation)
		}
	})
	t.Run("the expiry of a new credential lies on Keystone's clock", func(t *testing.T) {
		p := Decide(fresh(func(in *Input) { in.KeystoneNow = epoch.Add(-10*time.Minute + 999*time.Millisecond) }))
		if want := epoch.Add(interval + grace - 10*time.Minute); !p.Mint.ExpiresAt.Equal(want) {
			t.Errorf("expiry %v, want %v", p.Mint.ExpiresAt, want)
		}
	})
	t.Run("a new credential has no expiry with the schedule off", func(t *testing.T) {
		if p := Decide(fresh(func(in *Input) { in.Spec.Interval = 0 })); p.Mint.ExpiresAt != nil {
			t.Errorf("expiry %v", p.Mint.ExpiresAt)
		}
	})
	t.Run("with the schedule off a credential is replaced before it expires, on Keystone's clock", func(t *testing.T) {
		for _, short := range []struct{ grace, lead time.Duration }{
			{grace, 10 * time.Minute}, {20 * time.Minute, 10 * time.Minute}, {time.Minute, 30 * time.Second}, {0, 0},
		} {
			in := steady(func(in *Input) {
				in.Spec.Interval, in.Spec.GracePeriod = 0, short.grace
				in.Status.ExpiresAt = at(time.Hour)
				in.KeystoneNow = epoch.Add(time.Hour - short.lead - time.Second)
			})
			if p := Decide(in); p.Trigger != NoTrigger {
				t.Errorf("grace %s: rotates too early: %q", short.grace, p.Trigger)
			}
			in.KeystoneNow = epoch.Add(time.Hour - short.lead)
			if p := Decide(in); p.Trigger != LiveExpired {
				t.Errorf("grace %s: trigger %q, want %q", short.grace, p.Trigger, LiveExpired)
			}
		}
	})
	t.Run("a Keystone that is behind does not make a short schedule due for ever", func(t *testing.T) {
		p := Decide(steady(func(in *Input) {
			in.Spec = Spec{Interval: 3 * time.Minute, GracePeriod: time.Minute}
			in.KeystoneNow = epoch.Add(-10 * time.Minute)
			in.Status.LastRotation = at(0)
			in.Status.ExpiresAt = at(4*time.Minute - 10*time.Minute)
		}))
		if want := epoch.Add(3 * time.Minute); p.Trigger != NoTrigger || !p.NextRotation.Equal(want) {
			t.Errorf("trigger %q, next rotation %v, want %v", p.Trigger, p.NextRotation, want)
		}
	})
	t.Run("seconds of a Date header on its way do not move the next rotation", func(t *testing.T) {
		lengthened := func(in *Input) { in.Spec.Interval = 10 * interval }
		late := Decide(steady(lengthened, func(in *Input) { in.KeystoneNow = epoch.Add(-skewTolerance) }))
		if want := Decide(steady(lengthened)); !late.NextRotation.Equal(*want.NextRotation) {
			t.Errorf("next rotation %v, want %v", late.NextRotation, want.NextRotation)
		}
	})
	t.Run("fractions of a second change nothing", func(t *testing.T) {
		want := Decide(steady(graceUntil(time.Hour)))
		got := Decide(steady(graceUntil(time.Hour+time.Millisecond), func(in *Input) {
			in.Now = epoch.Add(999 * time.Millisecond)
			in.Status.LastRotation = at(-time.Hour + time.Nanosecond)
		}))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
	t.Run("an order in its grace period wakes at its end, at the schedule, and before and at the expiry", func(t *testing.T) {
		p := Decide(steady(graceUntil(time.Hour)))
		want := []time.Time{*at(time.Hour), *at(interval - time.Hour), *at(interval + grace - time.Hour - 10*time.Minute), *at(interval + grace - time.Hour)}
		if !slices.EqualFunc(p.Wake, want, time.Time.Equal) {
			t.Errorf("wake %v, want %v", p.Wake, want)
		}
	})
	t.Run("a wait for the grace period says until when", func(t *testing.T) {
		p := Decide(steady(graceUntil(time.Hour), declared(9)))
		if p.Wait == nil || p.Wait.Until == nil || !p.Wait.Until.Equal(*at(time.Hour)) {
			t.Errorf("wait %+v", p.Wait)
		}
	})
	t.Run("a short grace period shortens the margin in which a login may stay unanswered", func(t *testing.T) {
		in := steady(child(available(4)), login(4, Unanswered), func(in *Input) {
			in.Spec = Spec{Interval: 3 * time.Minute, GracePeriod: time.Minute}
			in.Status.ExpiresAt = at(31 * time.Second)
		})
		if p := Decide(in); p.Switch != nil {
			t.Error("switches without an answer with half the grace period left")
		}
		in.Status.ExpiresAt = at(30 * time.Second)
		if p := Decide(in); p.Switch == nil {
			t.Error("keeps a credential that is about to expire")
		}
	})
}
