package v1alpha1

// Labels and annotations. Who sets and who reads each of them stands with its name.
const (
	// IDAnnotation overrides the id or plate that would follow from the UID. An import sets it, so that a restored object
	// keeps its old id; setting it needs the verb "restore" (admission policy). Read by internal/ids.
	IDAnnotation = "agentrooms.dev/id"

	// RestoringAnnotation marks a Room that an import is still filling; its value names the archive. Such a Room has no members
	// yet, and the controllers leave its tasks and its log alone. Set and removed by the import, which takes the verb "restore"
	// (admission policy).
	RestoringAnnotation = "agentrooms.dev/restoring"

	// RequestAnnotation holds the digest of the request that created a Task under an idempotency key. Set by the bridge at
	// creation, read by the bridge when the same key comes again.
	RequestAnnotation = "agentrooms.dev/request-digest"

	// AssignRequestsAnnotation holds the last keyed assign_task requests of a Task, newest last. Set and read by the bridge.
	AssignRequestsAnnotation = "agentrooms.dev/assign-requests"

	// TaskLabel marks a Lease as the lease of a Task; its value is the Task's name. Set by the task controller and the
	// bridge, read by both.
	TaskLabel = "agentrooms.dev/task"

	// InstanceLabel marks a Lease as the presence of a running instance of an Agent; its value is the Agent's plate. Set by
	// the bridge, read by the bridge and the instance collector.
	InstanceLabel = "agentrooms.dev/instance"

	// RoomLabel names the Room of a generated object (MessageBatch, Inbox). Set by whoever creates it.
	RoomLabel = "agentrooms.dev/room"

	// HostAnnotation says on which host an instance runs, in its own words. Set by the bridge on instance Leases.
	HostAnnotation = "agentrooms.dev/host"

	// WorkspaceAnnotation says in which workspace an instance works, in its own words. Set by the bridge on instance Leases.
	WorkspaceAnnotation = "agentrooms.dev/workspace"

	// SummaryAnnotation is one line on what an instance is doing. Set by the bridge on instance Leases.
	SummaryAnnotation = "agentrooms.dev/summary"

	// WakeableAnnotation is "true" on the Lease of an instance that was listening for pushes at its last renewal.
	WakeableAnnotation = "agentrooms.dev/wakeable"
)
