package admission

import (
	"fmt"
	"strings"
)

// Patterns of the API, as the contract has them.
const (
	NoComma         = `^[^,]+$`
	DNSLabel        = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	DNSLabelOrEmpty = `^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
)

// Letters returns a text of n bytes.
func Letters(n int) string { return strings.Repeat("a", n) }

// At writes a value at a path whose surroundings other edits make.
func At(field string, around []Edit) func(value any) Edit {
	return func(value any) Edit { return All(append(around[:len(around):len(around)], Set(field, value))...) }
}

// Length is the two sides of a text's shortest and longest value.
func Length(field string, longest int, around ...Edit) []Case {
	write := At(field, around)
	return append(longestOf(field, longest, around...),
		Takes(field, "minLength", field+" has 1 character", write("a")),
		Refuses(TooShort(field), field+" is empty", write("")),
	)
}

func longestOf(field string, longest int, around ...Edit) []Case {
	write := At(field, around)
	return []Case{
		Takes(field, "maxLength", fmt.Sprintf("%s has %d characters", field, longest), write(Letters(longest))),
		Refuses(TooLong(field, longest), fmt.Sprintf("%s has %d characters", field, longest+1), write(Letters(longest+1))),
		Takes(field, "maxLength", fmt.Sprintf("%s has %d characters of two bytes each", field, longest), write(strings.Repeat("ü", longest))),
		Refuses(TooLong(field, longest), fmt.Sprintf("%s has %d characters of two bytes each", field, longest+1), write(strings.Repeat("ü", longest+1))),
	}
}

// KeystoneName is the shape of a name in Keystone: a comma separates names in K-ORC's filters.
func KeystoneName(field string, longest int, around ...Edit) []Case {
	write := At(field, around)
	cases := append(longestOf(field, longest, around...),
		Takes(field, "minLength", field+" has 1 character", write("a")),
		Refuses(TooShort(field), field+" is empty", write("")),
		Takes(field, "pattern", field+" has spaces and letters of any script", write("Ünïcode 名前 (test)")),
		Takes(field, "pattern", field+" has a full-width comma", write("member，reader")),
		Takes(field, "pattern", field+" has semicolons and slashes", write("a;b/c")),
	)
	for what, value := range inOrder(
		"a comma", "member,reader", "a comma in front", ",member", "a comma at the end", "member,", "nothing but a comma", ",",
	) {
		cases = append(cases, Refuses(NoMatch(field, value, NoComma), field+" has "+what, write(value)))
	}
	return append(cases, TextTypes(field, around...)...)
}

// inOrder ranges over pairs in the order in which they are written, which a map does not keep.
func inOrder(pairs ...string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if !yield(pairs[i], pairs[i+1]) {
				return
			}
		}
	}
}

// TextTypes are values of other types where a text is wanted.
func TextTypes(field string, around ...Edit) []Case {
	write := At(field, around)
	return []Case{
		Refuses(WrongType(field, "integer", "string"), field+" is a number", write(7)),
		Refuses(WrongType(field, "boolean", "string"), field+" is a boolean", write(true)),
		Refuses(WrongType(field, "array", "string"), field+" is a list", write([]string{"a"})),
	}
}

// ObjectTypes are values of other types where an object is wanted.
func ObjectTypes(field string, around ...Edit) []Case {
	write := At(field, around)
	return []Case{
		Refuses(WrongType(field, "string", "object"), field+" is a text", write("cp")),
		Refuses(WrongType(field, "array", "object"), field+" is a list", write([]string{"cp"})),
	}
}

// ObjectName is the cap on metadata.name.
func ObjectName(message string) []Case {
	name := func(length int) Edit { return Set("metadata.name", Letters(length)) }
	return []Case{
		Takes("", message, "metadata.name has 1 byte", name(1)),
		Takes("", message, "metadata.name has 63 bytes", name(63)),
		Refuses(Breaks("", message), "metadata.name has 64 bytes", name(64)),
		Refuses(Breaks("", message), "metadata.name has 64 bytes and a dot", Set("metadata.name", Letters(31)+"."+Letters(32))),
		Refuses(Breaks("", message), "metadata.name has 253 bytes", name(253)),
		Takes("", message, "metadata.name has dots and dashes", Set("metadata.name", "a.b-c.9")),
	}
}

// OptionalNamespace is the shape of the name of a namespace that may be left out.
func OptionalNamespace(field string) []Case {
	cases := []Case{
		Takes(field, "pattern", field+" is a DNS label", Set(field, "openstack-1")),
		Takes(field, "pattern", field+" is empty", Set(field, "")),
		Takes(field, "pattern", field+" begins with a digit", Set(field, "1-openstack")),
		Takes(field, "maxLength", field+" has 1 character", Set(field, "a")),
		Takes(field, "maxLength", field+" has 63 characters", Set(field, Letters(63))),
		Refuses(TooLong(field, 63), field+" has 64 characters", Set(field, Letters(64))),
	}
	for what, value := range inOrder(badLabels...) {
		cases = append(cases, Refuses(NoMatch(field, value, DNSLabelOrEmpty), field+" "+what, Set(field, value)))
	}
	return append(cases, TextTypes(field)...)
}

// badLabels are texts that are no DNS label, with what is wrong about them in front.
var badLabels = []string{
	"has a capital", "OpenStack", "begins with a dash", "-openstack", "ends in a dash", "openstack-", "is a dash", "-",
	"has a dot", "open.stack", "has an underscore", "open_stack", "has a space", "open stack", "is a space", " ",
	"has a slash", "openstack/cp", "has a letter that is not ASCII", "öpenstack", "ends in a line feed", "openstack\n", "means all namespaces", "*",
}

// RequiredNamespace is the shape of the name of a namespace that must be there, in an item of a list.
// reported is the field as the API server names it, with the item's index.
func RequiredNamespace(field, reported string, write func(namespace string) Edit) []Case {
	cases := []Case{
		Takes(field, "minLength", field+" has 1 character", write("a")),
		Refuses(TooShort(reported), field+" is empty", write("")),
		Takes(field, "maxLength", field+" has 63 characters", write(Letters(63))),
		Refuses(TooLong(reported, 63), field+" has 64 characters", write(Letters(64))),
		Takes(field, "pattern", field+" is a DNS label", write("tenant-1")),
	}
	for what, value := range inOrder(badLabels...) {
		cases = append(cases, Refuses(NoMatch(reported, value, DNSLabel), field+" "+what, write(value)))
	}
	return cases
}
