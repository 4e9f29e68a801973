package v1alpha1

// Condition types and reasons. All are set by the controller of the kind; True is the good state unless it says otherwise.
const (
	// ReadyCondition says that the object is in order and in force.
	ReadyCondition = "Ready"

	// ReadyReason says that nothing is wrong.
	ReadyReason = "Ready"
	// RoomPausedReason says that the room takes no writes from agents for now.
	RoomPausedReason = "Paused"
	// RoomArchivedReason says that the room is closed and kept for reading.
	RoomArchivedReason = "Archived"
	// UnknownMemberReason says that a member's Agent does not exist.
	UnknownMemberReason = "UnknownMember"
	// RoomNotFoundReason says that the Room an object refers to does not exist.
	RoomNotFoundReason = "RoomNotFound"
	// UnknownAssigneeReason says that a Task is assigned to an Agent that does not exist or is no member of the room.
	UnknownAssigneeReason = "UnknownAssignee"
	// AmbiguousSubjectReason says that another Agent lists the same subject, so that neither can be told from the token.
	AmbiguousSubjectReason = "AmbiguousSubject"
	// DuplicateConsentReason says that an older Consent of the same owner for the same room is in force instead.
	DuplicateConsentReason = "Duplicate"
)

const (
	// DependenciesMetCondition says whether every Task in spec.dependsOn is Done.
	DependenciesMetCondition = "DependenciesMet"

	// NoDependenciesReason says that the Task waits for nothing.
	NoDependenciesReason = "NoDependencies"
	// DependenciesDoneReason says that every blocker is Done.
	DependenciesDoneReason = "DependenciesDone"
	// WaitingReason says that some blocker is still open.
	WaitingReason = "Waiting"
	// BlockerFailedReason says that a blocker is Failed or Cancelled and will not unblock this Task by itself.
	BlockerFailedReason = "BlockerFailed"
	// BlockerMissingReason says that a blocker does not exist.
	BlockerMissingReason = "BlockerMissing"
	// DependencyCycleReason says that the Task depends on itself through others.
	DependencyCycleReason = "DependencyCycle"
)

const (
	// LeaseLiveCondition says whether the holder of a Doing Task keeps renewing its lease. It is False, and the Task stays
	// Doing, when the lease ran out under the policy MarkStale.
	LeaseLiveCondition = "LeaseLive"

	// LeaseHeldReason says that the lease was renewed in time.
	LeaseHeldReason = "Held"
	// LeaseExpiredReason says that the lease ran out.
	LeaseExpiredReason = "Expired"
)

const (
	// DecisionValidCondition says whether spec.decision of a Task counts. It is there, and False, only while it does not.
	DecisionValidCondition = "DecisionValid"

	// NoSayReason says that the decision is of somebody else than the assignee's owner.
	NoSayReason = "NoSay"
	// OwnProposalReason says that the decision is of the one whose proposal it is.
	OwnProposalReason = "OwnProposal"
	// TermsChangedReason says that the task asks for something else now than what was decided on.
	TermsChangedReason = "TermsChanged"
	// NotPendingReason says that something else was decided before.
	NotPendingReason = "NotPending"
)

const (
	// HistoryBoundedCondition says whether the messages of a Room that are beyond its retention move to the blob store. Absent
	// as long as there are none.
	HistoryBoundedCondition = "HistoryBounded"

	// WithinRetentionReason says that the cluster holds what the retention says.
	WithinRetentionReason = "WithinRetention"
	// MentionsPendingReason says that an agent has too many pending mentions in messages that should move.
	MentionsPendingReason = "MentionsPending"
	// BlobStoreFailedReason says that the blob store did not take a segment, or not as it was written.
	BlobStoreFailedReason = "BlobStoreFailed"
)
