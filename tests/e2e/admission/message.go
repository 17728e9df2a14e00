package admission

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

// Message is the API server's word on one thing that is wrong with an object. The sentences are put
// together with the API server's own library, and only the words that are buried in its validators are
// spelled here; the tests hold both against what a real one answers.
type Message struct {
	field, rule, text string
}

func message(rule string, err *field.Error) Message {
	path := err.Field
	if path == (*field.Path)(nil).String() {
		path = "" // the object itself
	}
	return Message{field: path, rule: rule, text: err.Error()}
}

func path(of string) *field.Path {
	if of == "" {
		return nil
	}
	return field.NewPath(of)
}

func inBody(of, format string, args ...any) string {
	return fmt.Sprintf("%s in body %s", of, fmt.Sprintf(format, args...))
}

// Missing is the word on a required field that is not there.
func Missing(of string) Message { return message("required", field.Required(path(of), "")) }

// TooShort is the word on an empty text.
func TooShort(of string) Message {
	return message("minLength", field.Invalid(path(of), "", inBody(of, "should be at least 1 chars long")))
}

// TooLong is the word on a text with more than so many characters. The API server counts characters and
// says bytes.
func TooLong(of string, longest int) Message {
	return message("maxLength", field.TooLong(path(of), "", longest))
}

// TooMany is the word on a list of got items where most are the limit.
func TooMany(of string, got, most int) Message {
	return message("maxItems", field.TooMany(path(of), got, most))
}

// NoMatch is the word on a text that does not have the shape of a pattern.
func NoMatch(of, value, pattern string) Message {
	return message("pattern", field.Invalid(path(of), value, inBody(of, "should match '%s'", pattern)))
}

// NoneOf is the word on a text that is none of a few.
func NoneOf(of, value string, allowed ...string) Message {
	return message("enum", field.NotSupported(path(of), value, allowed))
}

// TooSmall is the word on a number below the limit of 1.
func TooSmall(of string, value int64) Message {
	return message("minimum", field.Invalid(path(of), value, inBody(of, "should be greater than or equal to 1")))
}

// WrongType is the word on a value of another type. The types are JSON's, and a number's is its format.
func WrongType(of, got, want string) Message {
	return message(ruleType, field.TypeInvalid(path(of), got, inBody(of, "must be of type %s: %q", want, got)))
}

// Breaks is the word on an object or a list that breaks a CEL rule. The API server leaves the value out.
func Breaks(of, rule string) Message {
	return message(rule, field.Invalid(path(of), field.OmitValueType{}, rule))
}

// BreaksWith is Breaks for a text or a number, which the API server repeats.
func BreaksWith(of string, value any, rule string) Message {
	return message(rule, field.Invalid(path(of), value, rule))
}

const unreadable = "type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule: "

// Unreadable is the word on a text that a CEL rule cannot read as a duration.
func Unreadable(of, rule string) Message {
	return message(rule, field.Invalid(path(of), "string", unreadable+rule))
}

// UnreadableIn is the word on an object with such a text.
func UnreadableIn(of, rule string) Message {
	return message(rule, field.Invalid(path(of), "object", unreadable+rule))
}

// Fraction is the first word on a number with a fraction where a whole one is wanted; NotWhole is the
// second, which the API server says of the object as a whole.
func Fraction(of string) Message {
	return message(ruleType, field.TypeInvalid(path(of), "float64", inBody(of, "must be of type int64: %q", "float64")))
}

// NotWhole goes with Fraction.
func NotWhole(of string) Message {
	return message(ruleType, field.Invalid(nil, "", "Checked value must be of type integer with format int64 in "+of))
}

// NotANumber is the word on a boolean where a whole number is wanted. The API server leaves out what it is.
func NotANumber(of string) Message {
	return message(ruleType, field.TypeInvalid(path(of), "", inBody(of, "must be of type int64: %q", "")))
}

// Unknown is the answer to a field that the kind does not have, under strict validation. That is what
// kubectl asks for; without it the field would be dropped, and its owner would never know.
func Unknown(kind, of string) Message {
	return Message{field: of, rule: ruleUnknownField, text: fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: unknown field %q",
		kind, v1alpha1.GroupVersion.Version, kind, of)}
}
