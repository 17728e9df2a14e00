package rotation

import "time"

// Spec is what an order asks for, with every default already resolved.
type Spec struct {
	// Generation is the lowest generation that the order must hold. Below 1 reads as 1.
	Generation int64
	// Interval is the time between two scheduled rotations; 0 turns the schedule off.
	Interval time.Duration
	// GracePeriod is how long the superseded credential outlives the switch.
	GracePeriod time.Duration
}

// Previous is the superseded credential, recorded from the switch until Keystone
// is proven not to hold it.
type Previous struct {
	ID         string
	Generation int64
	// DeleteAt is on the operator's clock.
	DeleteAt time.Time
}

// Status is the part of an order's status that rotation reads and writes.
type Status struct {
	// ID is the Keystone id of the live credential; "" before the first one.
	ID string
	// Generation is the live credential's generation; 0 before the first one.
	Generation int64
	// ExpiresAt is on Keystone's clock; nil for a credential without expiry.
	ExpiresAt *time.Time
	// LastRotation is when the live credential became live, on the operator's clock.
	LastRotation *time.Time
	// Previous is nil outside a grace period.
	Previous *Previous
}

// ChildState is what K-ORC says about one of its ApplicationCredentials.
type ChildState int

const (
	// Pending: neither available nor given up. A latched transport error counts
	// as pending, because the controller clears it.
	Pending ChildState = iota
	// Available: K-ORC reports the current generation of the object as available.
	Available
	// Terminal: K-ORC has given up. A hint only, Keystone has the last word.
	Terminal
)

// Child is a K-ORC ApplicationCredential of the order.
type Child struct {
	Generation int64
	State      ChildState
	// ID is the Keystone id K-ORC reports; "" when it reports none.
	ID string
	// ExpiresAt is the expiry fixed in the object's spec, on Keystone's clock.
	ExpiresAt *time.Time
	// Deleting: the object has a deletion timestamp.
	Deleting bool
	// Message is K-ORC's own text for a Terminal state.
	Message string
	// Conflict: K-ORC gave up because Keystone answered that the name is taken.
	Conflict bool
}

// Existence is Keystone's word about a credential.
type Existence int

const (
	// Unknown: not asked on this pass, or no usable answer.
	Unknown Existence = iota
	// Held: Keystone lists it.
	Held
	// Gone: Keystone itself said that it is not there. A proxy's 404 is Unknown.
	Gone
)

// Login is the result of a login with a generation's id and secret.
type Login int

const (
	// NotTried: no login was tried on this pass.
	NotTried Login = iota
	// Accepted: Keystone issued a token.
	Accepted
	// Refused: a definite 401 or 404 of Keystone's own. A controller that still
	// remembers a refusal passes it instead of a later Unanswered.
	Refused
	// Unanswered: tried, without a definite answer.
	Unanswered
)

// Input is everything one decision rests on.
type Input struct {
	// Now is the operator's clock, in any precision.
	Now time.Time
	// KeystoneNow is Keystone's clock as its Date header gives it, or Now shifted
	// by the last difference measured. Zero reads as Now.
	KeystoneNow time.Time

	Spec   Spec
	Status Status

	// Children are the listed K-ORC ApplicationCredentials of the order.
	Children []Child
	// Secrets has a key for every secret-v<N> that exists; the value says whether
	// it holds one. A missing entry must follow a live read, never a cache.
	Secrets map[int64]bool
	// Keystone is what Keystone said on this pass about the credential named like
	// generation N's child. It is asked after the children were read.
	Keystone map[int64]Existence
	// LiveID is what Keystone said on this pass about Status.ID itself.
	LiveID Existence
	// Logins are this pass's login results by generation.
	Logins map[int64]Login
	// DeliveredID is the application_credential_id that a live read found in the
	// delivered Secret; "" when there is none.
	DeliveredID string
	// StoreReady: the secret store takes backups, so a new credential can be delivered.
	StoreReady bool
	// RotateID is the id that the healing annotation calls dead; "" without one.
	// Any other id than Status.ID is ignored: it was replaced already.
	RotateID string
}

// Trigger says why Plan.Desired is not the live generation.
type Trigger string

const (
	// NoTrigger: the live generation is the desired one.
	NoTrigger Trigger = ""
	// FirstCredential: the order has no credential yet.
	FirstCredential Trigger = "FirstCredential"
	// UnderWay: a successor exists and is continued.
	UnderWay Trigger = "UnderWay"
	// LiveGone: Keystone says that the live credential is gone.
	LiveGone Trigger = "LiveGone"
	// SuccessorReplaced: the successor under way can no longer work.
	SuccessorReplaced Trigger = "SuccessorReplaced"
	// GenerationRaised: the spec asks for a higher generation.
	GenerationRaised Trigger = "GenerationRaised"
	// ScheduleDue: the clock reached NextRotation.
	ScheduleDue Trigger = "ScheduleDue"
	// LiveExpired: the live credential has expired on Keystone's clock, or is about to with the schedule off.
	LiveExpired Trigger = "LiveExpired"
	// SecretLost: the Secret with the live credential's secret is gone or empty.
	SecretLost Trigger = "SecretLost"
	// PasswordRefused: Keystone does not take the current password, which a claim said.
	PasswordRefused Trigger = "PasswordRefused"
	// ChildLost: Keystone holds the live credential, but K-ORC's object for it is
	// gone or going.
	ChildLost Trigger = "ChildLost"
)

// Mint asks for secret-v<N> where it is missing, and then credential-v<N>. The
// plan never mints a generation whose credential-v<N> is listed.
type Mint struct {
	Generation int64
	// ExpiresAt is the expiry on Keystone's clock; nil with the schedule off.
	ExpiresAt *time.Time
}

// WaitReason is a stable name for what a plan waits for.
type WaitReason string

const (
	// WaitingForProof: an older generation is not yet proven gone, or the name of
	// the one to mint is not yet known to be free.
	WaitingForProof WaitReason = "WaitingForProof"
	// StoreNotReady: a new credential could not be delivered.
	StoreNotReady WaitReason = "StoreNotReady"
	// SuccessorPending: K-ORC has not made the credential available.
	SuccessorPending WaitReason = "SuccessorPending"
	// LoginUnanswered: no definite answer to the verifying login yet.
	LoginUnanswered WaitReason = "LoginUnanswered"
	// LiveUnanswered: Keystone has not said yet whether the live credential exists.
	LiveUnanswered WaitReason = "LiveUnanswered"
	// GracePeriod: a rotation waits for the end of the grace period.
	GracePeriod WaitReason = "GracePeriod"
	// SecretNotDelivered: the delivered Secret does not carry the live credential
	// yet, so the superseded one must stay.
	SecretNotDelivered WaitReason = "SecretNotDelivered"
	// PasswordNotApplied: K-ORC has not applied the current password yet.
	PasswordNotApplied WaitReason = "PasswordNotApplied"
	// CredentialOrderDeleting: a scheduled password rotation waits for the teardown
	// of a credential order of the same user.
	CredentialOrderDeleting WaitReason = "CredentialOrderDeleting"
)

// Wait is what holds a plan up. Of several waits the one nearest to the rotation's
// progress is reported.
type Wait struct {
	Reason WaitReason
	// Detail is a sentence for a condition's message. It never holds a secret.
	Detail string
	// Until is when the wait ends by the clock; nil when it ends by an event.
	Until *time.Time
}

// FailureKind says who rejected a credential.
type FailureKind string

const (
	// TerminalByKORC: K-ORC reported a terminal error.
	TerminalByKORC FailureKind = "TerminalByKORC"
	// LoginRefused: Keystone refused the verifying login.
	LoginRefused FailureKind = "LoginRefused"
)

// Failure is a first or succeeding credential that does not come to work. The plan
// continues it until the spec's generation is raised above it.
type Failure struct {
	Generation int64
	Kind       FailureKind
	// Message is K-ORC's text; "" for a refused login.
	Message string
	// Confirmed: Keystone itself was heard on this pass. False with TerminalByKORC
	// may be an outage that K-ORC took for an error.
	Confirmed bool
}

// Plan is what to ask and what to do. The package's documentation gives the
// protocol and the order of the effects.
type Plan struct {
	// Desired is the generation that the order should come to hold.
	Desired int64
	Trigger Trigger

	// AskLive: ask whether Keystone holds Status.ID.
	AskLive bool
	// Ask lists generations, ascending, whose name Keystone is to be asked about.
	// Nothing is to be deleted on the answer.
	Ask []int64
	// Prove lists generations, ascending, that have no K-ORC object and must not
	// exist in Keystone: ask for the name, and delete what is Held there.
	Prove []int64
	// Verify is the generation to log in with; 0 for none.
	Verify int64

	// Mark lists generations, descending, whose secret-v<N> must be created before
	// anything else happens: to reserve the number of a replacement, or to keep a
	// generation on record whose Secret was lost and whose K-ORC object goes.
	Mark []int64
	// Delete lists generations, ascending, whose credential-v<N> is deleted now. The
	// live one is among them only while the consumers use an older one, and it is gone
	// in Keystone or was lost before it was delivered.
	Delete []int64
	Mint   *Mint
	// Switch is the whole status to persist; nil for no switch.
	Switch *Status
	// ClearPrevious: the grace period is over and its credential proven gone.
	ClearPrevious bool
	// Forget lists generations, ascending, that are proven gone: delete secret-v<N>.
	Forget []int64

	// Refuted lists generations, ascending, whose terminal condition Keystone
	// contradicts: the credential is there, or its name is free that K-ORC found
	// taken. The condition is to be cleared, for K-ORC to look again.
	Refuted []int64
	Wait    *Wait
	Failed  *Failure
	// NextRotation is when the schedule rotates next, on the operator's clock and
	// possibly in the past; nil with the schedule off. With a Switch it belongs to
	// the new status.
	NextRotation *time.Time
	// Wake lists future moments at which to decide again, ascending.
	Wake []time.Time
}
