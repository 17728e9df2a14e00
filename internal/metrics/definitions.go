package metrics

import "slices"

// Type is a metric's type, in Prometheus' words.
type Type string

// The types in use.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Definition declares one metric.
type Definition struct {
	Name string
	Type Type
	// Help is a sentence or two: what is measured, in which unit, and when there is a series.
	Help string
	// Labels in the order in which the code gives their values.
	Labels []string
	// Buckets of a histogram, in the metric's unit.
	Buckets []float64
}

// perOrder are the labels of a series about one order.
var perOrder = []string{"kind", "namespace", "name"}

// How things are. These are computed at each scrape, by the replica that leads.
var (
	orders = Definition{
		Name: "c5c3_orders", Type: Gauge, Labels: []string{"kind", "reason"},
		Help: "Orders by kind and by the reason of the first condition that does not hold; AllReady when all hold, NotReconciled before the first look.",
	}
	frozen = Definition{
		Name: "c5c3_orders_frozen", Type: Gauge, Labels: []string{"kind"},
		Help: "Orders that are frozen because their ControlPlane does not consent to the namespace (NamespaceNotAssigned) or the role (RoleNotAllowed).",
	}
	notReadySince = Definition{
		Name: "c5c3_order_not_ready_since_timestamp_seconds", Type: Gauge, Labels: append(slices.Clone(perOrder), "reason"),
		Help: "When the order last ceased to be Ready, or was created, with the reason of the first condition that does not hold. No series while it is Ready.",
	}
	nextRotation = Definition{
		Name: "c5c3_order_next_rotation_timestamp_seconds", Type: Gauge, Labels: perOrder,
		Help: "When the schedule rotates the order's credential or password next; in the past when it is overdue. No series with the schedule off.",
	}
	rotationOverdue = Definition{
		Name: "c5c3_order_rotation_overdue_seconds", Type: Gauge, Labels: perOrder,
		Help: "For how long the scheduled rotation has been due without a switch, 0 before. No series with the schedule off, for a frozen order (its schedule pauses) and for one that is being deleted.",
	}
	credentialExpiry = Definition{
		Name: "c5c3_order_credential_expiry_timestamp_seconds", Type: Gauge, Labels: perOrder,
		Help: "When Keystone expires the delivered application credential. No series for one without an expiry.",
	}
	liveCredentials = Definition{
		Name: "c5c3_order_live_credentials", Type: Gauge, Labels: perOrder,
		Help: "Application credentials in Keystone that K-ORC reports for the order: 1, or 2 from a mint to the end of the grace period. No series while K-ORC's kind is not served.",
	}
	revocationPending = Definition{
		Name: "c5c3_order_revocation_pending_seconds", Type: Gauge, Labels: perOrder,
		Help: "For how long something of the order should have been gone from Keystone without Keystone having said so: a superseded credential after its grace period, or everything once the order is deleted. No series while nothing is due.",
	}
	backupLag = Definition{
		Name: "c5c3_order_backup_lag_seconds", Type: Gauge, Labels: perOrder,
		Help: "For how long the delivery has been held up while the current document is not in the backup, 0 when it is. Counted from the moment at which DeliveryReady ceased to be True. No series for kinds that deliver nothing and for frozen orders.",
	}
	controlPlaneCondition = Definition{
		Name: "c5c3_controlplane_condition", Type: Gauge, Labels: []string{"namespace", "name", "condition"},
		Help: "1 when the ControlPlane's condition is True, 0 when it is False, no series while it is Unknown or not reported.",
	}
)

// What the operator did. These start at 0 with each start of the operator.
var (
	rotationsStarted = Definition{
		Name: "c5c3_rotations_started_total", Type: Counter, Labels: []string{"kind", "cause"},
		Help: "Credentials and passwords that the operator began to make, by what caused it. FirstCredential is the one that a new order begins with; UnderWay carries on one whose start an earlier pass recorded and did not finish.",
	}
	rotationsSwitched = Definition{
		Name: "c5c3_rotations_switched_total", Type: Counter, Labels: []string{"kind"},
		Help: "Credentials and passwords that Keystone accepted and that became the ones to deliver, the first of an order among them.",
	}
	rotationsFailed = Definition{
		Name: "c5c3_rotations_failed_total", Type: Counter, Labels: []string{"kind", "cause"},
		Help: "Credentials and passwords that did not come to work and wait for somebody to act: TerminalByKORC when K-ORC gave up, LoginRefused when Keystone refused the verifying login. A failure that lasts counts once.",
	}
	rotationDuration = Definition{
		Name: "c5c3_rotation_duration_seconds", Type: Histogram, Labels: []string{"kind"},
		Help: "Time from the start of a rotation to the switch.",
		// K-ORC and Keystone take seconds. What takes longer waits for somebody, and the last buckets
		// tell a short outage from a long one.
		Buckets: []float64{1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 21600},
	}
	revocationsProven = Definition{
		Name: "c5c3_revocations_proven_total", Type: Counter, Labels: []string{"kind"},
		Help: "Times that Keystone confirmed that something is gone: a superseded credential, or all that a deleted order had made.",
	}
	revocationsRepaired = Definition{
		Name: "c5c3_revocations_repaired_total", Type: Counter, Labels: []string{"kind"},
		Help: "Things that Keystone still held after K-ORC had let go of them, and that the operator deleted itself.",
	}
	revocationsUnproven = Definition{
		Name: "c5c3_revocations_unproven_total", Type: Counter, Labels: []string{"kind"},
		Help: "Orders that were let go without Keystone's word because their ControlPlane was gone. The order's Event RevocationUnproven lists what to look for.",
	}
	keystoneRequests = Definition{
		Name: "c5c3_keystone_requests_total", Type: Counter, Labels: []string{"operation", "class"},
		Help: "Requests the operator sent to Keystone itself, by operation and by what the answer, or its absence, meant.",
	}
	keystoneDuration = Definition{
		Name: "c5c3_keystone_request_duration_seconds", Type: Histogram, Labels: []string{"operation"},
		Help: "Time until Keystone answered a request of the operator's, or the request was given up.",
		// A login is a password hash, some tenths of a second; the timeout is 15 s unless set otherwise.
		Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30},
	}
)

// cardMessages is the card server's, which has no other of its own.
var cardMessages = Definition{
	Name: "c5c3_card_messages_total", Type: Counter, Labels: []string{"channel", "action", "outcome"},
	Help: "Messages about cards, each try of one.",
}

// Group is a part of the table with what holds for all of it.
type Group struct {
	Title, Text string
	Definitions []Definition
}

// Table is every metric of the project's own, in the order of the documentation. What
// controller-runtime and the Go runtime add is theirs to document.
func Table() []Group {
	return []Group{
		{
			Title: "How things are",
			Text: "Computed at each scrape from what the operator's cache holds, so none of them can go stale. Only the replica that leads reports them. " +
				"Series with `namespace` and `name` are one per order, as kube-state-metrics has them: a handful for each, no more than the orders there are.",
			Definitions: []Definition{
				orders, frozen, notReadySince, nextRotation, rotationOverdue, credentialExpiry, liveCredentials, revocationPending, backupLag, controlPlaneCondition,
			},
		},
		{
			Title: "What the operator did",
			Text:  "Counted where the operator acts, once the cluster or Keystone has taken it. They begin at 0 with each start, as counters do; `rate` and `increase` allow for that.",
			Definitions: []Definition{
				rotationsStarted, rotationsSwitched, rotationsFailed, rotationDuration, revocationsProven, revocationsRepaired, revocationsUnproven,
				keystoneRequests, keystoneDuration,
			},
		},
		{
			Title:       "What the card server did",
			Text:        "Served by [c5c3-cards](cards.md) on the same port and path (Service `c5c3-cards-metrics`), and counted by the replica that leads.",
			Definitions: []Definition{cardMessages},
		},
	}
}
