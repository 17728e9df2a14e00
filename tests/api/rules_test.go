package api

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rule is one sentence of a CRD's schema: a constraint on a field, such as maxLength, or the message
// of a CEL rule.
type rule struct {
	kind string
	// field is the path, [] for a list's items, empty for the object itself.
	field string
	// name is required, minLength, maxLength, pattern, enum, minimum, maxItems or type; for a CEL
	// rule it is the rule's message.
	name string
}

func (r rule) String() string { return fmt.Sprintf("%s %s: %s", r.kind, r.field, r.name) }

// admission is one object, or one update, that the API server takes or refuses.
type admission struct {
	// name is a sentence about what is tried.
	name string
	// field and rule say which rule it is about.
	field, rule string
	// refused is what the API server says, empty when it takes the object. A CEL rule speaks for
	// itself; of a schema constraint these are the server's words.
	refused string
	// given is what is there before: an edit of the minimal object. Nil leaves it minimal.
	given edit
	// try is the change that is judged. For a case of creation it is part of the object created.
	try edit
	// update tells that try is an update of a stored object.
	update bool
}

// takes is a creation that is accepted.
func takes(field, rule, name string, edits ...edit) admission {
	return admission{name: name, field: field, rule: rule, try: all(edits...)}
}

// refuses is a creation that is refused. says is the API server's word on a schema constraint; it
// stays empty for a CEL rule, whose message is the rule's name.
func refuses(field, rule, says, name string, edits ...edit) admission {
	if says == "" {
		says = rule
	}
	return admission{name: name, field: field, rule: rule, refused: says, try: all(edits...)}
}

// takesUpdate and refusesUpdate are the same for an update of a stored object.
func takesUpdate(field, rule, name string, given, try edit) admission {
	return admission{name: name, field: field, rule: rule, given: given, try: try, update: true}
}

func refusesUpdate(field, rule, name string, given, try edit) admission {
	return admission{name: name, field: field, rule: rule, refused: rule, given: given, try: try, update: true}
}

// admissions are all cases, by kind.
var admissions = map[string][]admission{
	controlPlane:          controlPlaneAdmissions(),
	user:                  userAdmissions(),
	project:               projectAdmissions(),
	roleAssignment:        roleAssignmentAdmissions(),
	applicationCredential: applicationCredentialAdmissions(),
}

func TestAdmission(t *testing.T) {
	for _, kind := range allKinds {
		t.Run(kind, func(t *testing.T) {
			for _, c := range admissions[kind] {
				t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) { admit(t, kind, c) })
			}
		})
	}
}

func admit(t *testing.T, kind string, c admission) {
	t.Helper()
	object := minimal(kind, uniqueName())
	if c.given != nil {
		c.given(object)
	}
	var err error
	if c.update {
		object = store(t, object)
		c.try(object)
		err = api.Update(t.Context(), object)
	} else {
		c.try(object)
		// A dry run goes through all of admission and leaves nothing behind.
		err = api.Create(t.Context(), object, client.DryRunAll)
	}
	if c.refused == "" {
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("accepted, want %s refused with %q", c.field, c.refused)
	}
	checkRefusal(t, err, c)
}

// notChecked is what the API server adds when schema errors kept it from evaluating CEL rules.
const notChecked = "some validation rules were not checked"

var index = regexp.MustCompile(`\[\d+\]`)

// checkRefusal makes sure that the object was refused for the reason of the case and for no other:
// a case that is refused for something else proves nothing about its rule.
func checkRefusal(t *testing.T, err error, c admission) {
	t.Helper()
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.ErrStatus.Details == nil {
		t.Fatalf("want the answer Invalid with causes, got %v", err)
	}
	found := false
	for _, cause := range status.ErrStatus.Details.Causes {
		if strings.Contains(cause.Message, notChecked) {
			continue
		}
		field := causeField(cause)
		if field == c.field && strings.Contains(cause.Message, c.refused) {
			found = true
			continue
		}
		// A value that breaks one rule of a field may break others of it, and of what it is part of.
		if field != c.field && field != "" && !strings.HasPrefix(c.field, field+".") && !strings.HasPrefix(c.field, field+"[]") {
			t.Errorf("also refused for something else: %s: %s", cause.Field, cause.Message)
		}
	}
	if !found {
		t.Errorf("refused without %s: %q:\n%v", c.field, c.refused, err)
	}
}

func causeField(cause metav1.StatusCause) string {
	if cause.Field == "<nil>" { // how the API server spells the object itself
		return ""
	}
	return index.ReplaceAllString(cause.Field, "[]")
}
