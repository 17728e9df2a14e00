// Command invalid-keystoneapplicationcredential-cr writes the admission corpus of
// KeystoneApplicationCredential.
package main

import (
	"fmt"

	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

//go:generate go run .

const (
	kind     = admission.ApplicationCredential
	block    = "spec.rotation"
	interval = "spec.rotation.interval"
	period   = "spec.rotation.gracePeriod"

	negative = "rotation.gracePeriod is not negative"
	shorter  = "rotation.gracePeriod must be shorter than rotation.interval"
)

func main() {
	admission.Generate(kind,
		admission.Order(kind),
		admission.OrderRef(kind, "userRef", "user"),
		admission.OrderRef(kind, "projectRef", "project"),
		admission.Generation("credentialGeneration"),
		admission.Interval(kind, shorter),
		gracePeriod(),
		graceAndInterval(),
		roles(),
	)
}

// gracePeriod is the grace period by itself, below the default interval.
func gracePeriod() []admission.Case {
	write := func(value string) admission.Edit { return admission.Set(period, value) }
	cases := []admission.Case{
		admission.Takes(period, "maxLength", "a grace period of 64 characters", write(admission.LongDuration(64))),
		admission.Refuses(admission.TooLong(period, 64), "a grace period of 65 characters", write(admission.LongDuration(65))),
		admission.Refuses(admission.Unknown(kind, "spec.rotation.grace"), "a grace period by another word", admission.Set("spec.rotation.grace", "1h")),
		admission.Refuses(admission.Unknown(kind, "spec.gracePeriod"), "a grace period beside the rotation", admission.Set("spec.gracePeriod", "1h")),
		admission.Refuses(admission.BreaksWith(period, "-24h", negative), "a grace period below zero with the schedule off", both("0s", "-24h")),
	}
	for _, value := range []string{"0s", "0", "-0s", "1ns", "1s", "24h", "1.5h", "719h59m59s"} {
		cases = append(cases, admission.Takes(period, negative, "a grace period of "+value, write(value)))
	}
	for _, value := range []string{"-1ns", "-1s", "-1m", "-720h"} {
		cases = append(cases, admission.Refuses(admission.BreaksWith(period, value, negative), "a grace period of "+value, write(value)))
	}
	for _, value := range []string{"", " ", "1d", "60", "tomorrow", "P1D", "9999999999h"} {
		// The block compares the two, and cannot read the text either.
		cases = append(cases, admission.Refuses(admission.Unreadable(period, negative), fmt.Sprintf("a grace period of %q", value), write(value)).
			With(admission.UnreadableIn(block, shorter)))
	}
	return append(cases, admission.TextTypes(period)...)
}

// both writes both durations.
func both(every, keep string) admission.Edit {
	return admission.All(admission.Set(interval, every), admission.Set(period, keep))
}

// graceAndInterval is the one measured by the other.
func graceAndInterval() []admission.Case {
	takes := func(name string, edits ...admission.Edit) admission.Case {
		return admission.Takes(block, shorter, name, edits...)
	}
	refuses := func(name string, edits ...admission.Edit) admission.Case {
		return admission.Refuses(admission.Breaks(block, shorter), name, edits...)
	}
	return []admission.Case{
		takes("a grace period one second shorter than the interval", both("1h", "59m59s")),
		takes("a grace period a nanosecond shorter than the interval", both("1h", "59m59.999999999s")),
		refuses("a grace period equal to the interval", both("1h", "1h")),
		refuses("a grace period equal to the interval in other words", both("1h", "60m")),
		refuses("a grace period a nanosecond longer than the interval", both("1h", "1h0m0.000000001s")),
		refuses("a grace period longer than the interval", both("1h", "2h")),

		takes("the shortest interval without a grace period", both("1m", "0s")),
		takes("the shortest interval with a grace period of a second less", both("1m", "59s")),
		refuses("the shortest interval as a grace period too", both("1m", "1m")),
		takes("the longest interval with a grace period of a second less", both("87600h", "87599h59m59s")),
		refuses("the longest interval as a grace period too", both("87600h", "87600h")),

		takes("a grace period just below the default interval", admission.Set(period, "719h59m59s")),
		refuses("a grace period as long as the default interval", admission.Set(period, "720h")),
		refuses("a grace period longer than the default interval", admission.Set(period, "720h1s")),
		takes("an interval just above the default grace period", admission.Set(interval, "24h1s")),
		refuses("an interval as long as the default grace period", admission.Set(interval, "24h")),
		refuses("an interval shorter than the default grace period", admission.Set(interval, "1m")),

		takes("a grace period with the schedule off", both("0s", "24h")),
		takes("a grace period far longer than any interval with the schedule off", both("0s", "900000h")),
		takes("the default grace period with the schedule off", admission.Set(interval, "0s")),

		takes("the schedule is turned off", admission.Set(interval, "0s")).Of(both("2h", "1h")),
		takes("the schedule is made longer", admission.Set(interval, "87600h")).Of(both("2h", "1h")),
		takes("the schedule is turned on", admission.Set(interval, "1h1s")).Of(both("0s", "1h")),
		refuses("the schedule is turned on with a grace period that is too long", admission.Set(interval, "1h")).Of(both("0s", "1h")),
		refuses("the interval shrinks to the grace period", admission.Set(interval, "1h")).Of(both("2h", "1h")),
		refuses("the grace period grows to the interval", admission.Set(period, "2h")).Of(both("2h", "1h")),
		refuses("the grace period is left out and so 24h", admission.Drop(period)).Of(both("2h", "1h")),
		takes("both are left out and so the defaults", admission.Drop(block)).Of(both("2h", "1h")),
	}
}

// roles are what an application credential of Keystone's can be restricted to. The order has none of it:
// the credential has the roles that the user has on the project, and never may make others.
func roles() []admission.Case {
	unknown := func(field, name string, value any) admission.Case {
		return admission.Refuses(admission.Unknown(kind, "spec."+field), name, admission.Set("spec."+field, value))
	}
	return []admission.Case{
		unknown("unrestricted", "a credential that may make others", true),
		unknown("roles", "roles of its own", []string{"reader"}),
		unknown("accessRules", "access rules", []admission.Values{{"method": "GET", "path": "/v3"}}),
		unknown("expiresAt", "an expiry", "2031-02-03T04:05:06Z"),
		unknown("secretName", "a name for the delivered Secret", "mine"),
	}
}
