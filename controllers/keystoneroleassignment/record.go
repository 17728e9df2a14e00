package keystoneroleassignment

import (
	"strings"

	orcv1alpha1 "github.com/k-orc/openstack-resource-controller/v2/api/v1alpha1"
)

// tuple are Keystone's ids of one assignment, which has no id of its own.
type tuple struct{ RoleID, UserID, ProjectID string }

func (t tuple) complete() bool { return t.RoleID != "" && t.UserID != "" && t.ProjectID != "" }

// progress is how far an assignment got, and who looks after it.
type progress string

const (
	// assigning: the operator is about to assign the role itself. It is written down before Keystone
	// is asked, so that a crash in between leaves a trace for the teardown.
	assigning progress = "assigning"
	// direct: the operator assigned the role, and Keystone confirmed it.
	direct progress = "direct"
	// moving: the operator had assigned the role, and K-ORC is taking it over.
	moving progress = "moving"
	// byKORC: K-ORC vouches for the assignment.
	byKORC progress = "k-orc"
)

// recordAnnotation, on the Role import, keeps the record. The order's status would not do: its owner
// may be able to write it, and it is lost with a restored backup.
const recordAnnotation = "c5c3.io/keystoneroleassignment-assigned"

// record is what was asked of Keystone for an order. Its zero value is: nothing yet.
type record struct {
	Progress progress
	tuple
}

// String is the annotation's value: the progress and three ids.
func (r record) String() string {
	return strings.Join([]string{string(r.Progress), r.RoleID, r.UserID, r.ProjectID}, " ")
}

// recordOf reads the record. One that cannot be read counts as none: the worst it costs is that a role
// is assigned once more.
func recordOf(role *orcv1alpha1.Role) record {
	fields := strings.Fields(role.Annotations[recordAnnotation])
	if len(fields) != 4 {
		return record{}
	}
	return record{progress(fields[0]), tuple{fields[1], fields[2], fields[3]}}
}
