package api

import "fmt"

const orderNameRule = "metadata.name must be at most 63 bytes; it is carried as a label value on the order's children"

// controlPlaneRef is what every order says about its ControlPlane.
func controlPlaneRef(kind string) []admission {
	const field = "spec.controlPlaneRef"
	var (
		nameRule      = "controlPlaneRef.name is immutable; delete and re-create the " + kind + " to move it to another ControlPlane"
		namespaceRule = "controlPlaneRef.namespace is immutable; delete and re-create the " + kind + " to move it to another ControlPlane"
		elsewhere     = set(field+".namespace", "openstack")
	)
	cases := []admission{
		refuses("spec", "required", required, "no spec at all", drop("spec")),
		refuses(field, "required", required, "no ControlPlane", drop(field)),
		refuses(field+".name", "required", required, "a ControlPlane without a name", set(field, values{"namespace": "openstack"})),
		takes(field, "required", "a ControlPlane in another namespace", elsewhere),

		takesUpdate(field, nameRule, "the ControlPlane's name is written again", elsewhere, set(field+".name", "cp")),
		refusesUpdate(field, nameRule, "another ControlPlane", nil, set(field+".name", "other")),
		takesUpdate(field, namespaceRule, "the ControlPlane's namespace is written again", elsewhere, elsewhere),
		takesUpdate(field, namespaceRule, "an empty namespace is written out", nil, set(field+".namespace", "")),
		takesUpdate(field, namespaceRule, "an empty namespace is left out", set(field+".namespace", ""), drop(field+".namespace")),
		refusesUpdate(field, namespaceRule, "the ControlPlane of another namespace", elsewhere, set(field+".namespace", "other")),
		refusesUpdate(field, namespaceRule, "a namespace is added", nil, elsewhere),
		// The effective namespace would stay, but the reference is compared as it is written: a
		// rule on what an empty one means would read metadata, which a field rule cannot.
		refusesUpdate(field, namespaceRule, "the order's own namespace is written out", nil, set(field+".namespace", namespace)),
		refusesUpdate(field, namespaceRule, "a namespace is removed", elsewhere, drop(field+".namespace")),
	}
	cases = append(cases, length(field+".name", 253)...)
	cases = append(cases, optionalNamespace(field+".namespace")...)
	return append(cases, objectName(orderNameRule)...)
}

// orderRef is a reference to another order of the namespace.
func orderRef(kind, field, message string) []admission {
	path := "spec." + field
	rule := fmt.Sprintf("%s is immutable; delete and re-create the %s to bind another %s", field, kind, message)
	return append(length(path+".name", 63),
		refuses(path, "required", required, "no "+field, drop(path)),
		refuses(path+".name", "required", required, field+" has no name", set(path, values{})),
		takesUpdate(path, rule, field+" is written again", nil, func(o *object) { set(path+".name", nested(o, path+".name"))(o) }),
		refusesUpdate(path, rule, field+" names another order", nil, set(path+".name", "another")),
	)
}

// generation is a counter that only goes up.
func generation(field string) []admission {
	path, rule := "spec."+field, field+" may only increase"
	return []admission{
		takes(path, "minimum", field+" is 1", set(path, 1)),
		takes(path, "minimum", field+" is the largest number", set(path, int64(1<<63-1))),
		refuses(path, "minimum", fmt.Sprintf(atLeast, 1), field+" is 0", set(path, 0)),
		refuses(path, "minimum", fmt.Sprintf(atLeast, 1), field+" is negative", set(path, -1)),
		takes(path, "type", field+" is a whole number", set(path, 2)),
		refuses(path, "type", fmt.Sprintf(wrongType, "integer"), field+" is a text", set(path, "2")),
		refuses(path, "type", fmt.Sprintf(wrongType, "int64"), field+" is a fraction", set(path, 1.5)),
		takesUpdate(path, rule, field+" is raised", set(path, 3), set(path, 4)),
		takesUpdate(path, rule, field+" is raised by many", set(path, 3), set(path, 1000)),
		takesUpdate(path, rule, field+" is written again", set(path, 3), set(path, 3)),
		takesUpdate(path, rule, field+"'s default is written out", nil, set(path, 1)),
		takesUpdate(path, rule, field+"'s default is left out", set(path, 1), drop(path)),
		refusesUpdate(path, rule, field+" is lowered", set(path, 3), set(path, 2)),
		refusesUpdate(path, rule, field+" is left out and so lowered to 1", set(path, 3), drop(path)),
	}
}

// effectiveName is an optional name in Keystone whose default is the order's own name.
func effectiveName(kind, field, what string) []admission {
	path := "spec." + field
	rule := fmt.Sprintf("%s is immutable; delete and re-create the %s to rename its %s", field, kind, what)
	return append(keystoneName(path, 255),
		takesUpdate("", rule, field+"'s default is written out", nil, setOwnName(path)),
		takesUpdate("", rule, field+"'s default is left out", setOwnName(path), drop(path)),
		takesUpdate("", rule, field+" is written again", set(path, "svc"), set(path, "svc")),
		refusesUpdate("", rule, field+" changes", set(path, "svc"), set(path, "other")),
		refusesUpdate("", rule, field+" changes in case", set(path, "svc"), set(path, "SVC")),
		refusesUpdate("", rule, field+" is set to something else than its default", nil, set(path, "other")),
		refusesUpdate("", rule, field+" is removed", set(path, "svc"), drop(path)),
	)
}

// interval is the schedule of a rotation. The longer ones come with no grace period, so that only
// the interval is judged.
func interval() []admission {
	const (
		path  = "spec.rotation.interval"
		floor = "rotation.interval is 0s or at least 1m"
		roof  = "rotation.interval is at most 87600h"
	)
	// How the API server words a text that is no duration: the rule, and why it could not be asked.
	unreadable := "evaluating rule: " + floor
	cases := []admission{
		takes(path, "maxLength", "an interval of 64 characters", grace("0s"), set(path, longDuration(64))),
		refuses(path, "maxLength", fmt.Sprintf(tooLong, 64), "an interval of 65 characters", grace("0s"), set(path, longDuration(65))),
		refuses(path, "type", fmt.Sprintf(wrongType, "string"), "an interval of 60", set(path, 60)),
	}
	for _, value := range []string{"0s", "0", "0h0m0s", "-0s", "1m", "60s", "1m0.5s", "90s", "1.5h", "24h30m", "720h", "720h0m0s", "87600h"} {
		cases = append(cases, takes(path, floor, "an interval of "+value, grace("0s"), set(path, value)))
	}
	cases = append(cases,
		takes(path, roof, "an interval of ten years", grace("0s"), set(path, "87600h0m0s")),
		takes(path, "type", "an interval is a text", grace("0s"), set(path, "2h")),
	)
	for _, value := range []string{"59s", "59.999999999s", "1ns", "1s", "-1s", "-1m", "-720h"} {
		cases = append(cases, refuses(path, floor, "", "an interval of "+value, grace("0s"), set(path, value)))
	}
	for _, value := range []string{"87600h1s", "87600h0m0.000000001s", "100000h"} {
		cases = append(cases, refuses(path, roof, "", "an interval of "+value, grace("0s"), set(path, value)))
	}
	for _, value := range []string{"", " ", "1d", "2w", "60", "1h 30m", "1H", "soon", "P1D", "1,5h", "9999999999h"} {
		cases = append(cases, refuses(path, floor, unreadable, fmt.Sprintf("an interval of %q", value), grace("0s"), set(path, value)))
	}
	return cases
}

// longDuration is one minute, written in so many characters.
func longDuration(length int) string {
	return "1m0." + fmt.Sprintf("%0*d", length-len("1m0.")-len("s"), 0) + "s"
}

// grace sets a grace period on a kind that has one.
func grace(value string) edit {
	return func(o *object) {
		if o.GetKind() == applicationCredential {
			set("spec.rotation.gracePeriod", value)(o)
		}
	}
}

func userAdmissions() []admission {
	var cases []admission
	for _, more := range [][]admission{
		{takes("", "", "the least that a person can write"), takes("", "", "an empty rotation", set("spec.rotation", values{}))},
		controlPlaneRef(user),
		effectiveName(user, "userName", "user"),
		generation("passwordGeneration"),
		interval(),
	} {
		cases = append(cases, more...)
	}
	return cases
}

func projectAdmissions() []admission {
	var cases []admission
	for _, more := range [][]admission{
		{takes("", "", "the least that a person can write")},
		controlPlaneRef(project),
		effectiveName(project, "projectName", "project"),
	} {
		cases = append(cases, more...)
	}
	return cases
}

func roleAssignmentAdmissions() []admission {
	const roleRule = "role is immutable; delete and re-create the KeystoneRoleAssignment to assign another role"
	var cases []admission
	for _, more := range [][]admission{
		{
			takes("", "", "the least that a person can write"),
			refuses("spec.role", "required", required, "no role", drop("spec.role")),
			takesUpdate("spec.role", roleRule, "the role is written again", nil, set("spec.role", "member")),
			refusesUpdate("spec.role", roleRule, "another role", nil, set("spec.role", "admin")),
			refusesUpdate("spec.role", roleRule, "the role in another case", nil, set("spec.role", "Member")),
		},
		controlPlaneRef(roleAssignment),
		orderRef(roleAssignment, "userRef", "user"),
		orderRef(roleAssignment, "projectRef", "project"),
		keystoneName("spec.role", 255),
	} {
		cases = append(cases, more...)
	}
	return cases
}

func applicationCredentialAdmissions() []admission {
	var cases []admission
	for _, more := range [][]admission{
		{takes("", "", "the least that a person can write"), takes("", "", "an empty rotation", set("spec.rotation", values{}))},
		controlPlaneRef(applicationCredential),
		orderRef(applicationCredential, "userRef", "user"),
		orderRef(applicationCredential, "projectRef", "project"),
		generation("credentialGeneration"),
		interval(),
		gracePeriod(),
	} {
		cases = append(cases, more...)
	}
	return cases
}

func gracePeriod() []admission {
	const (
		block    = "spec.rotation"
		interval = "spec.rotation.interval"
		path     = "spec.rotation.gracePeriod"
		negative = "rotation.gracePeriod is not negative"
		shorter  = "rotation.gracePeriod must be shorter than rotation.interval"
	)
	both := func(every, keep string) edit { return all(set(interval, every), set(path, keep)) }
	cases := []admission{
		takes(path, "maxLength", "a grace period of 64 characters", set(path, longDuration(64))),
		refuses(path, "maxLength", fmt.Sprintf(tooLong, 64), "a grace period of 65 characters", set(path, longDuration(65))),
		refuses(path, negative, "", "a grace period below zero", set(path, "-1s")),
		refuses(path, negative, "", "a grace period a little below zero", set(path, "-1ns")),
		refuses(path, negative, "", "a grace period below zero with the schedule off", both("0s", "-24h")),

		takes(block, shorter, "a grace period one second shorter than the interval", both("1h", "59m59s")),
		takes(block, shorter, "a grace period a nanosecond shorter than the interval", both("1h", "59m59.999999999s")),
		takes(block, shorter, "an interval just above the default grace period", set(interval, "24h1s")),
		takes(block, shorter, "no grace period", both("1m", "0s")),
		takes(block, shorter, "a grace period with the schedule off", both("0s", "24h")),
		takes(block, shorter, "a grace period far longer than any interval with the schedule off", both("0s", "900000h")),
		takes(block, shorter, "the default grace period with the schedule off", set(interval, "0s")),
		refuses(block, shorter, "", "a grace period equal to the interval", both("1h", "1h")),
		refuses(block, shorter, "", "a grace period equal to the interval in other words", both("1h", "60m")),
		refuses(block, shorter, "", "a grace period longer than the interval", both("1h", "2h")),
		refuses(block, shorter, "", "a grace period as long as the default interval", set(path, "720h")),
		refuses(block, shorter, "", "an interval as long as the default grace period", set(interval, "24h")),
		refuses(block, shorter, "", "an interval shorter than the default grace period", set(interval, "1m")),

		takesUpdate(block, shorter, "the schedule is turned off", both("2h", "1h"), set(interval, "0s")),
		takesUpdate(block, shorter, "the schedule is made longer", both("2h", "1h"), set(interval, "87600h")),
		refusesUpdate(block, shorter, "the schedule is turned on with a grace period that is too long", both("0s", "1h"), set(interval, "1h")),
		refusesUpdate(block, shorter, "the interval shrinks to the grace period", both("2h", "1h"), set(interval, "1h")),
	}
	for _, value := range []string{"0s", "1ns", "1s", "24h", "1.5h", "719h59m59s"} {
		cases = append(cases, takes(path, negative, "a grace period of "+value, set(path, value)))
	}
	for _, value := range []string{"", "1d", "tomorrow", "9999999999h"} {
		cases = append(cases, refuses(path, negative, "evaluating rule: "+negative, fmt.Sprintf("a grace period of %q", value), set(path, value)))
	}
	return cases
}
