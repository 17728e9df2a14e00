package v1alpha1

// Condition types. Every order has Ready, the aggregate, beside its own.
const (
	// ConditionReady is True when every other condition of the object is True. It is what
	// `kubectl wait --for=condition=Ready` and kstatus read.
	ConditionReady = "Ready"
	// ConditionUserReady tells whether a KeystoneUser exists in Keystone with its current password.
	ConditionUserReady = "UserReady"
	// ConditionProjectReady tells whether a KeystoneProject exists in Keystone.
	ConditionProjectReady = "ProjectReady"
	// ConditionAssignmentReady tells whether a KeystoneRoleAssignment's role is assigned.
	ConditionAssignmentReady = "AssignmentReady"
	// ConditionCredentialReady tells whether the delivered application credential exists in Keystone.
	ConditionCredentialReady = "CredentialReady"
	// ConditionDeliveryReady tells whether the Secret beside the order carries what Keystone holds.
	ConditionDeliveryReady = "DeliveryReady"

	// ConditionAdminCredentialReady tells whether the operator gets into a ControlPlane's Keystone.
	ConditionAdminCredentialReady = "AdminCredentialReady"
	// ConditionDependenciesReady tells whether the kinds of K-ORC and ESO are served.
	ConditionDependenciesReady = "DependenciesReady"
	// ConditionSecretStoreReady tells whether the backup store takes pushes.
	ConditionSecretStoreReady = "SecretStoreReady"
	// ConditionKeystoneReachable tells whether Keystone answered when it was last asked.
	ConditionKeystoneReachable = "KeystoneReachable"
)

// Reasons of the aggregate.
const (
	ReasonAllReady    = "AllReady"
	ReasonNotAllReady = "NotAllReady"
)

// Reasons that every order shares: the gates.
const (
	ReasonControlPlaneNotFound      = "ControlPlaneNotFound"
	ReasonNamespaceNotAssigned      = "NamespaceNotAssigned"
	ReasonClusterNameTooLong        = "ClusterNameTooLong"
	ReasonWaitingForAdminCredential = "WaitingForAdminCredential"
	// ReasonWaitingForDependencies says that a kind the order needs is not served yet.
	ReasonWaitingForDependencies = "WaitingForDependencies"
)

// Reasons of references between orders.
const (
	ReasonUserNotFound         = "UserNotFound"
	ReasonProjectNotFound      = "ProjectNotFound"
	ReasonControlPlaneMismatch = "ControlPlaneMismatch"
	ReasonWaitingForUser       = "WaitingForUser"
	ReasonWaitingForProject    = "WaitingForProject"
	ReasonNoRoleOnProject      = "NoRoleOnProject"

	ReasonReferencedByRoleAssignments        = "ReferencedByRoleAssignments"
	ReasonReferencedByApplicationCredentials = "ReferencedByApplicationCredentials"
)

// Reasons of KeystoneUser.
const (
	ReasonUserProvisioned           = "UserProvisioned"
	ReasonServiceAccountCollision   = "ServiceAccountCollision"
	ReasonProbingForCollision       = "ProbingForCollision"
	ReasonSecretStoreNotReady       = "SecretStoreNotReady"
	ReasonWaitingForServiceAccounts = "WaitingForServiceAccounts"
	ReasonServiceAccountsFailed     = "ServiceAccountsFailed"
	ReasonServiceAccountError       = "ServiceAccountError"
)

// Reasons of KeystoneProject.
const (
	ReasonProjectProvisioned = "ProjectProvisioned"
	ReasonProjectCollision   = "ProjectCollision"
	ReasonProjectFailed      = "ProjectFailed"
	ReasonProjectError       = "ProjectError"
)

// Reasons of KeystoneRoleAssignment.
const (
	ReasonRoleAssigned            = "RoleAssigned"
	ReasonRoleNotAllowed          = "RoleNotAllowed"
	ReasonDuplicateRoleAssignment = "DuplicateRoleAssignment"
	ReasonRoleAssignmentFailed    = "RoleAssignmentFailed"
	ReasonRoleAssignmentError     = "RoleAssignmentError"
)

// Reasons of KeystoneApplicationCredential.
const (
	ReasonCredentialMinted          = "CredentialMinted"
	ReasonWaitingForCABundle        = "WaitingForCABundle"
	ReasonWaitingForCredential      = "WaitingForCredential"
	ReasonCredentialFailed          = "CredentialFailed"
	ReasonTransportErrorRetryFailed = "TransportErrorRetryFailed"
	ReasonCredentialError           = "CredentialError"
)

// Reasons of DeliveryReady.
const (
	ReasonDelivered            = "Delivered"
	ReasonKeystoneNotPublished = "KeystoneNotPublished"
	ReasonBackupNotSynced      = "BackupNotSynced"
	ReasonDeliveryRefused      = "DeliveryRefused"
	ReasonDeliveryError        = "DeliveryError"
)

// Reasons of a teardown that is under way.
const (
	// ReasonWaitingForRevocation says that Keystone has not confirmed yet that everything the
	// order created is gone.
	ReasonWaitingForRevocation = "WaitingForRevocation"
	// ReasonReferencedByOrders says that a ControlPlane holds its own deletion for its orders.
	ReasonReferencedByOrders = "ReferencedByOrders"
)

// Causes of a failing conversation with Keystone, as facts of the field rather than of a kind:
// they are reasons of AdminCredentialReady, and replace a wait's reason in External mode.
const (
	ReasonAuthenticationFailed     = "AuthenticationFailed"
	ReasonEndpointUnreachable      = "EndpointUnreachable"
	ReasonTLSVerificationFailed    = "TLSVerificationFailed"
	ReasonCatalogEndpointMismatch  = "CatalogEndpointMismatch"
	ReasonCredentialDrift          = "CredentialDrift"
	ReasonAdminCredentialAccepted  = "AdminCredentialAccepted"
	ReasonWaitingForAdminPassword  = "WaitingForAdminPassword"
	ReasonWaitingForKORC           = "WaitingForKORC"
	ReasonAdminImportFailed        = "AdminImportFailed"
	ReasonKeystoneAnswers          = "KeystoneAnswers"
	ReasonKindsServed              = "KindsServed"
	ReasonKindsMissing             = "KindsMissing"
	ReasonSecretStoreValid         = "SecretStoreValid"
	ReasonSecretStoreNotFound      = "SecretStoreNotFound"
	ReasonControlPlaneError        = "ControlPlaneError"
	ReasonAssigned                 = "Assigned"
	ReasonNamespaceNotFound        = "NamespaceNotFound"
	ReasonNamespaceTerminating     = "NamespaceTerminating"
	ReasonTargetClusterUnavailable = "TargetClusterUnavailable"
	ReasonClusterUnreachable       = "ClusterUnreachable"
)
