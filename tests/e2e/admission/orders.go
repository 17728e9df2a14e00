package admission

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const orderNameRule = "metadata.name must be at most 63 bytes; it is carried as a label value on the order's children"

// Order is what every order says: its name, its ControlPlane, and nothing that the kind does not know.
func Order(kind string) []Case {
	const field = "spec.controlPlaneRef"
	var (
		nameRule      = "controlPlaneRef.name is immutable; delete and re-create the " + kind + " to move it to another ControlPlane"
		namespaceRule = "controlPlaneRef.namespace is immutable; delete and re-create the " + kind + " to move it to another ControlPlane"
		elsewhere     = Set(field+".namespace", "openstack")
	)
	cases := []Case{
		Takes("", "", "the least that a person can write"),
		Refuses(Missing("spec"), "no spec at all", Drop("spec")),
		Refuses(WrongType("spec", "string", "object"), "a spec that is a text", Set("spec", "openstack/cp")),
		Refuses(WrongType("spec", "array", "object"), "a spec that is a list", Set("spec", []string{})),
		Refuses(Missing(field), "no ControlPlane", Drop(field)),
		Refuses(Missing(field), "a ControlPlane of null", Set(field, nil)),
		Refuses(Missing(field+".name"), "a ControlPlane without a name", Set(field, Values{"namespace": "openstack"})),
		Refuses(Missing(field+".name"), "an empty ControlPlane", Set(field, Values{})),
		Takes(field, "required", "a ControlPlane in another namespace", elsewhere),

		Refuses(Unknown(kind, "spec.controlPlane"), "a field that is almost controlPlaneRef", Set("spec.controlPlane", Values{"name": "cp"})),
		Refuses(Unknown(kind, field+".kind"), "a ControlPlane with a kind", Set(field+".kind", ControlPlane)),
		Refuses(Unknown(kind, field+".cluster"), "a ControlPlane with a cluster", Set(field+".cluster", "edge")),
		Refuses(Unknown(kind, "spec.password"), "a password", Set("spec.password", "never")),
		Refuses(Unknown(kind, "specs"), "a field beside spec", Set("specs", Values{})),
		Takes("", ruleUnknownField, "labels and annotations that nobody knows",
			Set("metadata.labels", Values{"team": "a"}), Set("metadata.annotations", Values{"example.com/note": "x"})),

		Takes(field, nameRule, "the ControlPlane's name is written again", Set(field+".name", "cp")).Of(elsewhere),
		Refuses(Breaks(field, nameRule), "another ControlPlane", Set(field+".name", "other")).Of(),
		Refuses(Breaks(field, nameRule), "another ControlPlane in the same namespace", Set(field+".name", "other")).Of(elsewhere),
		Refuses(Breaks(field, nameRule), "the ControlPlane in another case", Set(field+".name", "CP")).Of(),
		Refuses(Breaks(field, nameRule), "another ControlPlane in another namespace", Set(field, Values{"name": "other", "namespace": "other"})).
			With(Breaks(field, namespaceRule)).Of(elsewhere),
		Takes(field, namespaceRule, "the ControlPlane's namespace is written again", elsewhere).Of(elsewhere),
		Takes(field, namespaceRule, "an empty namespace is written out", Set(field+".namespace", "")).Of(),
		Takes(field, namespaceRule, "an empty namespace is left out", Drop(field+".namespace")).Of(Set(field+".namespace", "")),
		Refuses(Breaks(field, namespaceRule), "the ControlPlane of another namespace", Set(field+".namespace", "other")).Of(elsewhere),
		Refuses(Breaks(field, namespaceRule), "a namespace is added", elsewhere).Of(),
		// The effective namespace would stay, but the reference is compared as it is written: a
		// rule on what an empty one means would read metadata, which a field rule cannot.
		Refuses(Breaks(field, namespaceRule), "the order's own namespace is written out", Set(field+".namespace", Namespace)).Of(),
		Refuses(Breaks(field, namespaceRule), "a namespace is removed", Drop(field+".namespace")).Of(elsewhere),
		Refuses(Breaks(field, namespaceRule), "a namespace is emptied", Set(field+".namespace", "")).Of(elsewhere),
	}
	for _, more := range [][]Case{
		ObjectTypes(field),
		Length(field+".name", 253),
		TextTypes(field + ".name"),
		OptionalNamespace(field + ".namespace"),
		ObjectName(orderNameRule),
	} {
		cases = append(cases, more...)
	}
	return cases
}

// OrderRef is a reference to another order of the namespace. what is bound by it.
func OrderRef(kind, name, what string) []Case {
	field := "spec." + name
	rule := fmt.Sprintf("%s is immutable; delete and re-create the %s to bind another %s", name, kind, what)
	cases := append(Length(field+".name", 63),
		Refuses(Missing(field), "no "+name, Drop(field)),
		Refuses(Missing(field), name+" is null", Set(field, nil)),
		Refuses(Missing(field+".name"), name+" has no name", Set(field, Values{})),
		Refuses(Unknown(kind, field+".namespace"), name+" has a namespace", Set(field+".namespace", "tenant-b")),
		Refuses(Unknown(kind, field+".id"), name+" has an id", Set(field+".id", "0123456789abcdef")),
		Takes(field, rule, name+" is written again", func(*unstructured.Unstructured) {}).Of(),
		Refuses(Breaks(field, rule), name+" names another order", Set(field+".name", "another")).Of(),
		Refuses(Breaks(field, rule), name+" names the order in another case", Set(field+".name", "Workflow")).Of(),
	)
	cases = append(cases, ObjectTypes(field)...)
	return append(cases, TextTypes(field+".name")...)
}

// Generation is a counter that only goes up.
func Generation(name string) []Case {
	field, rule := "spec."+name, name+" may only increase"
	cases := []Case{
		Takes(field, "minimum", name+" is 1", Set(field, 1)),
		Takes(field, "minimum", name+" is the largest number", Set(field, int64(math.MaxInt64))),
		Refuses(TooSmall(field, 0), name+" is 0", Set(field, 0)),
		Refuses(TooSmall(field, -1), name+" is negative", Set(field, -1)),
		Refuses(TooSmall(field, math.MinInt64), name+" is the smallest number", Set(field, int64(math.MinInt64))),
		Takes(field, ruleType, name+" is a whole number", Set(field, 2)),
		Refuses(WrongType(field, "string", "integer"), name+" is a text", Set(field, "2")),
		Refuses(NotANumber(field), name+" is a boolean", Set(field, true)),
		Refuses(Fraction(field), name+" is a fraction", Set(field, 1.5)).With(NotWhole(field)),
		Takes(field, rule, name+" is raised", Set(field, 4)).Of(Set(field, 3)),
		Takes(field, rule, name+" is raised by many", Set(field, 1000)).Of(Set(field, 3)),
		Takes(field, rule, name+" is written again", Set(field, 3)).Of(Set(field, 3)),
		Takes(field, rule, name+"'s default is written out", Set(field, 1)).Of(),
		Takes(field, rule, name+"'s default is left out", Drop(field)).Of(Set(field, 1)),
	}
	return append(cases,
		Refuses(BreaksWith(field, int64(2), rule), name+" is lowered", Set(field, 2)).Of(Set(field, 3)),
		Refuses(BreaksWith(field, int64(1), rule), name+" is lowered to 1", Set(field, 1)).Of(Set(field, 3)),
		Refuses(BreaksWith(field, int64(1), rule), name+" is left out and so lowered to 1", Drop(field)).Of(Set(field, 3)),
		Refuses(TooSmall(field, 0), name+" is reset to 0", Set(field, 0)).With(BreaksWith(field, int64(0), rule)).Of(Set(field, 3)),
	)
}

// EffectiveName is an optional name in Keystone whose default is the order's own name.
func EffectiveName(kind, name, what string) []Case {
	field := "spec." + name
	rule := fmt.Sprintf("%s is immutable; delete and re-create the %s to rename its %s", name, kind, what)
	lower := strings.ToLower(name)
	return append(KeystoneName(field, 255),
		Refuses(Unknown(kind, "spec."+lower), name+" in lower case", Set("spec."+lower, "svc")),
		Refuses(Unknown(kind, "spec.name"), name+" by another word", Set("spec.name", "svc")),
		Refuses(Unknown(kind, "spec.domainName"), "a domain", Set("spec.domainName", "Default")),
		Takes("", rule, name+"'s default is written out", SetOwnName(field)).Of(),
		Takes("", rule, name+"'s default is left out", Drop(field)).Of(SetOwnName(field)),
		Takes("", rule, name+" is written again", Set(field, "svc")).Of(Set(field, "svc")),
		Refuses(Breaks("", rule), name+" changes", Set(field, "other")).Of(Set(field, "svc")),
		Refuses(Breaks("", rule), name+" changes in case", Set(field, "SVC")).Of(Set(field, "svc")),
		Refuses(Breaks("", rule), name+" grows a space", Set(field, "svc ")).Of(Set(field, "svc")),
		Refuses(Breaks("", rule), name+" is set to something else than its default", Set(field, "other")).Of(),
		Refuses(Breaks("", rule), name+" is removed", Drop(field)).Of(Set(field, "svc")),
		Refuses(Breaks("", rule), name+" goes back to the order's own", SetOwnName(field)).Of(Set(field, "svc")),
	)
}

// Interval is the schedule of a rotation. shorter is the rule that measures a grace period by it, empty
// for a kind that has none.
func Interval(kind, shorter string) []Case {
	const (
		block = "spec.rotation"
		field = block + ".interval"
		floor = "rotation.interval is 0s or at least 1m"
		roof  = "rotation.interval is at most 87600h"
	)
	var around []Edit
	if shorter != "" {
		// Without a grace period the interval is judged by itself, as far as that goes: no grace period
		// is longer than a negative interval, and one that cannot be read measures nothing.
		around = append(around, Set(block+".gracePeriod", "0s"))
	}
	write := At(field, around)
	cases := []Case{
		Takes(field, "", "an empty rotation", Set(block, Values{})),
		Takes(field, "", "a rotation of null, which is the default", Set(block, nil)),
		Takes(field, "maxLength", "an interval of 64 characters", write(LongDuration(64))),
		Refuses(TooLong(field, 64), "an interval of 65 characters", write(LongDuration(65))),
		Takes(field, ruleType, "an interval is a text", write("2h")),
		Refuses(Unknown(kind, "spec.rotation.intervall"), "an interval that is misspelt", Set("spec.rotation.intervall", "2h")),
		Refuses(Unknown(kind, "spec.interval"), "an interval beside the rotation", Set("spec.interval", "2h")),
		Refuses(Unknown(kind, "spec.rotation.schedule"), "a schedule like cron's", Set("spec.rotation.schedule", "@daily")),
	}
	for _, value := range []string{"0s", "0", "0h0m0s", "-0s", "1m", "60s", "1m0.5s", "90s", "1.5h", "24h30m", "720h", "720h0m0s", "3600000ms"} {
		cases = append(cases, Takes(field, floor, "an interval of "+value, write(value)))
	}
	for _, value := range []string{"59s", "59.999999999s", "1ns", "1s", "59999ms", "-1s", "-1m", "-720h"} {
		c := Refuses(BreaksWith(field, value, floor), "an interval of "+value, write(value))
		if shorter != "" && strings.HasPrefix(value, "-") {
			c = c.With(Breaks(block, shorter))
		}
		cases = append(cases, c)
	}
	for _, value := range []string{"87599h59m59s", "87600h", "87600h0m0s"} {
		cases = append(cases, Takes(field, roof, "an interval of "+value, write(value)))
	}
	for _, value := range []string{"87600h1s", "87600h0m0.000000001s", "100000h"} {
		cases = append(cases, Refuses(BreaksWith(field, value, roof), "an interval of "+value, write(value)))
	}
	for _, value := range []string{"", " ", "1d", "2w", "60", "1h 30m", "1H", "soon", "P1D", "1,5h", "9999999999h"} {
		// Both rules read the text, and the API server says of each that it could not.
		c := Refuses(Unreadable(field, floor), fmt.Sprintf("an interval of %q", value), write(value)).With(Unreadable(field, roof))
		if shorter != "" {
			c = c.With(UnreadableIn(block, shorter))
		}
		cases = append(cases, c)
	}
	cases = append(cases, TextTypes(field, around...)...)
	return append(cases, ObjectTypes(block)...)
}

// LongDuration is one minute, written in so many characters.
func LongDuration(length int) string {
	return "1m0." + fmt.Sprintf("%0*d", length-len("1m0.")-len("s"), 0) + "s"
}
