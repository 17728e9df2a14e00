package order

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
)

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestAnnounce(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, test := range map[string]struct {
		before, after []metav1.Condition
		want          []string
	}{
		"a_gate_that_turns_two_conditions_is_one_Event": {
			after: []metav1.Condition{
				condition(v1alpha1.ConditionCredentialReady, no, v1alpha1.ReasonNamespaceNotAssigned, "no entry"),
				condition(v1alpha1.ConditionDeliveryReady, no, v1alpha1.ReasonNamespaceNotAssigned, "no entry"),
				condition(v1alpha1.ConditionReady, no, v1alpha1.ReasonNotAllReady, "CredentialReady: no entry"),
			},
			want: []string{"Warning NamespaceNotAssigned CredentialReady: no entry"},
		},
		"two_conditions_that_say_different_things_are_two": {
			after: []metav1.Condition{
				condition(v1alpha1.ConditionCredentialReady, yes, v1alpha1.ReasonCredentialMinted, "generation 1"),
				condition(v1alpha1.ConditionDeliveryReady, no, v1alpha1.ReasonBackupNotSynced, "not yet"),
			},
			want: []string{"Normal CredentialMinted CredentialReady: generation 1", "Normal BackupNotSynced DeliveryReady: not yet"},
		},
		"a_message_alone_is_no_news": {
			before: []metav1.Condition{condition(v1alpha1.ConditionDeliveryReady, yes, v1alpha1.ReasonDelivered, "generation 1")},
			after:  []metav1.Condition{condition(v1alpha1.ConditionDeliveryReady, yes, v1alpha1.ReasonDelivered, "generation 2")},
		},
		"a_reason_that_only_the_aggregate_has_is_told": {
			before: []metav1.Condition{condition(v1alpha1.ConditionReady, yes, v1alpha1.ReasonAllReady, "")},
			after:  []metav1.Condition{condition(v1alpha1.ConditionReady, no, v1alpha1.ReasonReferencedByOrders, "orders are left")},
			want:   []string{"Normal ReferencedByOrders Ready: orders are left"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			Announce(logr.Discard(), ChangedConditions(test.before, test.after), func(eventType, reason, action, note string) {
				got = append(got, eventType+" "+reason+" "+action+": "+note)
			})
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
