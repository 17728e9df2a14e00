package api

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/tests/e2e/admission"
)

// columns are what `kubectl get` prints, in its order. Name is kubectl's own. A column with a
// priority shows with -o wide only.
var columns = map[string]struct {
	resource    string
	names, wide []string
}{
	admission.ControlPlane:          {"controlplanes", []string{"Name", "Ready", "AdminCredential", "AuthURL", "Age"}, []string{"Region"}},
	admission.User:                  {"keystoneusers", []string{"Name", "Ready", "ControlPlane", "Generation", "Age"}, nil},
	admission.Project:               {"keystoneprojects", []string{"Name", "Ready", "ControlPlane", "Project", "Age"}, nil},
	admission.RoleAssignment:        {"keystoneroleassignments", []string{"Name", "Ready", "ControlPlane", "User", "Project", "Role", "Age"}, nil},
	admission.ApplicationCredential: {"keystoneapplicationcredentials", []string{"Name", "Ready", "ControlPlane", "User", "Project", "Generation", "NextRotation", "Age"}, nil},
}

func TestColumns(t *testing.T) {
	const next = "2031-02-03T04:05:06Z"
	cells := map[string]struct {
		status    values
		want, new values
	}{
		admission.ControlPlane: {
			status: values{"authURL": "https://keystone.example.com/v3", "conditions": conditions("Ready", "False", "NotAllReady", "AdminCredentialReady", "False", "EndpointUnreachable")},
			want:   values{"Ready": "False", "AdminCredential": "EndpointUnreachable", "AuthURL": "https://keystone.example.com/v3", "Region": "RegionOne"},
			new:    values{"Ready": nil, "AdminCredential": nil, "AuthURL": nil, "Region": "RegionOne"},
		},
		admission.User: {
			status: values{"passwordGeneration": 7, "conditions": conditions("UserReady", "False", "x", "Ready", "True", "AllReady")},
			want:   values{"Ready": "True", "ControlPlane": "cp", "Generation": int64(7)},
			new:    values{"Ready": nil, "ControlPlane": "cp", "Generation": nil},
		},
		admission.Project: {
			status: values{"projectName": "in-keystone", "conditions": conditions("Ready", "Unknown", "x")},
			want:   values{"Ready": "Unknown", "ControlPlane": "cp", "Project": "in-keystone"},
			new:    values{"Ready": nil, "ControlPlane": "cp", "Project": nil},
		},
		admission.RoleAssignment: {
			status: values{"conditions": conditions("AssignmentReady", "True", "x", "Ready", "False", "NotAllReady")},
			want:   values{"Ready": "False", "ControlPlane": "cp", "User": "workflow", "Project": "workflow-project", "Role": "member"},
			new:    values{"Ready": nil, "ControlPlane": "cp", "User": "workflow", "Project": "workflow-project", "Role": "member"},
		},
		admission.ApplicationCredential: {
			status: values{"credentialGeneration": 2, "nextRotation": next, "conditions": conditions("Ready", "True", "AllReady")},
			want:   values{"Ready": "True", "ControlPlane": "cp", "User": "workflow", "Project": "workflow-project", "Generation": int64(2), "NextRotation": next},
			new:    values{"Ready": nil, "ControlPlane": "cp", "User": "workflow", "Project": "workflow-project", "Generation": nil, "NextRotation": nil},
		},
	}
	for _, kind := range admission.Kinds {
		t.Run(kind, func(t *testing.T) {
			stored := store(t, admission.Minimal(kind, uniqueName()))
			t.Run("are_the_contracts", func(t *testing.T) {
				var names, wide []string
				for _, column := range table(t, kind, stored.GetName()).ColumnDefinitions {
					if column.Priority == 0 {
						names = append(names, column.Name)
					} else {
						wide = append(wide, column.Name)
					}
				}
				if want := columns[kind]; !slices.Equal(names, want.names) || !slices.Equal(wide, want.wide) {
					t.Errorf("columns %v and with -o wide %v, want %v and %v", names, wide, want.names, want.wide)
				}
			})
			t.Run("of_a_new_object", func(t *testing.T) { checkCells(t, kind, stored.GetName(), cells[kind].new) })
			t.Run("of_an_object_with_a_status", func(t *testing.T) {
				admission.Set("status", cells[kind].status)(stored)
				admission.Set("status.observedGeneration", stored.GetGeneration())(stored)
				if err := api.Status().Update(t.Context(), stored); err != nil {
					t.Fatal(err)
				}
				checkCells(t, kind, stored.GetName(), cells[kind].want)
			})
		})
	}
}

func checkCells(t *testing.T, kind, name string, want values) {
	t.Helper()
	printed := table(t, kind, name)
	if len(printed.Rows) != 1 {
		t.Fatalf("%d rows", len(printed.Rows))
	}
	for i, column := range printed.ColumnDefinitions {
		cell := printed.Rows[0].Cells[i]
		switch column.Name {
		case "Name":
			if cell != name {
				t.Errorf("Name prints %v, want %s", cell, name)
			}
		case "Age":
			// The API server prints an age, such as 3s, and not a time.
			if text, ok := cell.(string); !ok {
				t.Errorf("Age prints %v", cell)
			} else if _, err := time.ParseDuration(text); err != nil {
				t.Errorf("Age prints %q, want an age such as 3s", text)
			}
		default:
			value, expected := want[column.Name]
			if !expected {
				t.Errorf("column %s prints %v, and no case says what it should print", column.Name, cell)
			} else if cell != value {
				t.Errorf("%s prints %v (%T), want %v", column.Name, cell, cell, value)
			}
		}
	}
}

// table asks for what kubectl get asks for: the API server's own table.
func table(t *testing.T, kind, name string) *metav1.Table {
	t.Helper()
	shallow := rest.CopyConfig(config)
	shallow.GroupVersion, shallow.APIPath = &v1alpha1.GroupVersion, "/apis"
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	metav1.AddToGroupVersion(scheme, v1alpha1.GroupVersion)
	shallow.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(shallow)
	if err != nil {
		t.Fatal(err)
	}
	printed := &metav1.Table{}
	err = client.Get().Namespace(admission.Namespace).Resource(columns[kind].resource).Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(printed)
	if err != nil {
		t.Fatal(err)
	}
	return printed
}

// conditions builds conditions from triples of type, status and reason.
func conditions(triples ...string) []values {
	var list []values
	for i := 0; i+2 < len(triples); i += 3 {
		list = append(list, values{
			"type": triples[i], "status": triples[i+1], "reason": triples[i+2],
			"message": "", "lastTransitionTime": "2030-01-01T00:00:00Z",
		})
	}
	return list
}
