package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RoomState says what may happen in a Room.
// +kubebuilder:validation:Enum=Active;Paused;Archived
type RoomState string

const (
	// RoomActive takes reads and writes.
	RoomActive RoomState = "Active"
	// RoomPaused takes reads, and writes by nobody but its admins through kubectl.
	RoomPaused RoomState = "Paused"
	// RoomArchived is kept for reading only.
	RoomArchived RoomState = "Archived"
)

// RoomRole says what a member may do.
// +kubebuilder:validation:Enum=Admin;Member;Viewer
type RoomRole string

const (
	// RoleAdmin may also reopen, cancel, release and reassign other people's tasks.
	RoleAdmin RoomRole = "Admin"
	// RoleMember may read and write.
	RoleMember RoomRole = "Member"
	// RoleViewer may read.
	RoleViewer RoomRole = "Viewer"
)

// LeaseExpiryAction says what happens to a Task whose holder stopped renewing.
// +kubebuilder:validation:Enum=Reopen;MarkStale
type LeaseExpiryAction string

const (
	// LeaseReopen takes the Task from its holder and puts it back to Todo.
	LeaseReopen LeaseExpiryAction = "Reopen"
	// LeaseMarkStale leaves the Task with its holder and sets the condition LeaseLive to False.
	LeaseMarkStale LeaseExpiryAction = "MarkStale"
)

// AgentReference names an Agent: by name in the same namespace, or by plate in any.
// +kubebuilder:validation:ExactlyOneOf=name;plate
type AgentReference struct {
	// name of an Agent in the namespace of the object that refers to it.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// plate of an Agent in any namespace (status.plate).
	// +optional
	// +kubebuilder:validation:Pattern=`^BRNL-AGT-[0-9A-HJKMNP-TV-Z]{26}$`
	// +kubebuilder:validation:MinLength=35
	// +kubebuilder:validation:MaxLength=35
	Plate string `json:"plate,omitempty"`
}

// RoomMember is an agent or a person in a Room.
// +kubebuilder:validation:ExactlyOneOf=agent;user
type RoomMember struct {
	// agent that is a member.
	// +optional
	Agent *AgentReference `json:"agent,omitempty"`

	// user is the Kubernetes username of a person who is a member.
	// +optional
	// +kubebuilder:validation:Pattern=`^[^()<>&\x00-\x1f\x7f\x{2028}\x{2029}]+$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	User string `json:"user,omitempty"`

	// role of the member. Member when absent.
	// +optional
	// +kubebuilder:default=Member
	Role RoomRole `json:"role,omitempty"`
}

// LeasePolicy says how long a claim lasts without renewal, and what happens then.
type LeasePolicy struct {
	// durationSeconds that a claim lasts without renewal: 10 seconds to 24 hours.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	DurationSeconds int32 `json:"durationSeconds,omitempty"`

	// onExpiry says what happens to a Task whose lease ran out.
	// +optional
	// +kubebuilder:default=Reopen
	OnExpiry LeaseExpiryAction `json:"onExpiry,omitempty"`
}

// RoomRetention says what the cluster keeps of a Room's history. Older parts move to the blob store when one is set up.
type RoomRetention struct {
	// messages kept as objects.
	// +optional
	Messages *MessageRetention `json:"messages,omitempty"`

	// fileVersions kept of each file: 20 when absent. The latest one is always kept. One that was written under an
	// idempotency key stays for a day, unless the file has too many.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FileVersions int32 `json:"fileVersions,omitempty"`

	// archivedTasks kept as objects: 1,000 when absent. With a blob store, those beyond move there, the longest at rest first. One
	// that something happened to within a day stays, and so does one that a task on the board depends on.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	ArchivedTasks int32 `json:"archivedTasks,omitempty"`
}

// DefaultArchivedTasks is how many archived tasks of a Room the cluster keeps as objects when nothing else is said and a blob
// store is set up.
const DefaultArchivedTasks = 1000

// DefaultMaxMessages is how many messages of a Room the cluster keeps as objects when nothing else is said and a blob store is
// set up.
const DefaultMaxMessages = 10000

// MessageRetention bounds the messages that the cluster keeps as objects. Older ones move to the blob store in segments of
// 1,000, so up to 999 stay that are beyond a bound. Without a blob store all stay.
type MessageRetention struct {
	// maxCount of messages. 10,000 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=1000000
	MaxCount int32 `json:"maxCount,omitempty"`

	// maxAgeSeconds of a message: an hour to ten years. No bound when absent.
	// +optional
	// +kubebuilder:validation:Minimum=3600
	// +kubebuilder:validation:Maximum=315360000
	MaxAgeSeconds int64 `json:"maxAgeSeconds,omitempty"`
}

// RoomLimits bounds what a Room may hold.
type RoomLimits struct {
	// openTasks that may exist at once through the tools, archived ones not counted. 10,000 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	OpenTasks int32 `json:"openTasks,omitempty"`

	// files that may exist at once, deleted ones not counted. 10,000 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Files int32 `json:"files,omitempty"`

	// fileBytes that all versions of all files may have together, deleted ones not counted. 1 GiB when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1125899906842624
	FileBytes int64 `json:"fileBytes,omitempty"`
}

// RoomSpec is what the owner of a Room wants it to be.
type RoomSpec struct {
	// displayName is what people and agents call the room.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName"`

	// description says what the room is for.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Description string `json:"description,omitempty"`

	// state says whether the room is in use.
	// +optional
	// +kubebuilder:default=Active
	State RoomState `json:"state,omitempty"`

	// members of the room. Whoever is not in this list sees and touches nothing of it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.map(m, has(m.user) ? size(m.user) : 0).sum() <= 32768",message="the usernames of all members must have at most 32768 characters together"
	Members []RoomMember `json:"members,omitempty"`

	// leasePolicy for the room's tasks: 600 seconds and Reopen when absent.
	// +optional
	LeasePolicy *LeasePolicy `json:"leasePolicy,omitempty"`

	// retention of the room's history.
	// +optional
	Retention *RoomRetention `json:"retention,omitempty"`

	// limits of what the room may hold.
	// +optional
	Limits *RoomLimits `json:"limits,omitempty"`
}

// TaskCounts counts the tasks of a Room that are not archived, by state. A count that is left out is 0, and the API server says so.
type TaskCounts struct {
	// todo counts tasks nobody has claimed.
	// +optional
	// +kubebuilder:default=0
	Todo int32 `json:"todo,omitempty"`
	// doing counts tasks somebody holds.
	// +optional
	// +kubebuilder:default=0
	Doing int32 `json:"doing,omitempty"`
	// blocked counts tasks that wait for something.
	// +optional
	// +kubebuilder:default=0
	Blocked int32 `json:"blocked,omitempty"`
	// done counts finished tasks.
	// +optional
	// +kubebuilder:default=0
	Done int32 `json:"done,omitempty"`
	// failed counts tasks that were given up.
	// +optional
	// +kubebuilder:default=0
	Failed int32 `json:"failed,omitempty"`
	// cancelled counts tasks that are no longer wanted.
	// +optional
	// +kubebuilder:default=0
	Cancelled int32 `json:"cancelled,omitempty"`
}

// RoomArchive says how much of a Room's log stands in the blob store. It moves after a segment was written there, read back and
// verified, and before the MessageBatches are deleted, so that the log begins where it says and not where a batch does.
type RoomArchive struct {
	// throughSeq is the seq up to which every message stands in the blob store.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1099511627776
	ThroughSeq int64 `json:"throughSeq"`

	// throughBatch is the number of the last MessageBatch that the cluster needs no more: all of its messages stand in the
	// blob store. 0 while there is none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9999999999
	ThroughBatch int64 `json:"throughBatch,omitempty"`

	// throughBatchSeq is the seq of the last message in that batch: the next batch begins behind it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1099511627776
	ThroughBatchSeq int64 `json:"throughBatchSeq,omitempty"`

	// throughTime is when the API server took the last message up to throughSeq.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	ThroughTime metav1.Time `json:"throughTime"`

	// segments in the blob store.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1099511627
	Segments int64 `json:"segments,omitempty"`

	// bytes that the segments have there.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1125899906842624
	Bytes int64 `json:"bytes,omitempty"`
}

// RoomStatus is what the controllers see.
type RoomStatus struct {
	// observedGeneration is the generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// id is what tools call the room: a ULID that follows from creation time and UID.
	// +optional
	// +kubebuilder:validation:MaxLength=26
	ID string `json:"id,omitempty"`

	// lastSeq is the number of the last message, as of the last status update (seconds old when the room is busy).
	// +optional
	// +kubebuilder:default=0
	LastSeq int64 `json:"lastSeq,omitempty"`

	// tasks counts the room's tasks by state, as of the last status update.
	// +optional
	// +kubebuilder:default={}
	Tasks TaskCounts `json:"tasks,omitzero"`

	// members is how many members the room has.
	// +optional
	// +kubebuilder:default=0
	Members int32 `json:"members,omitempty"`

	// archive says how much of the log stands in the blob store. Absent as long as all of it is in the cluster.
	// +optional
	Archive *RoomArchive `json:"archive,omitempty"`

	// conditions of the Room: Ready, and HistoryBounded once messages have moved to the blob store or should have.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 1024)",message="condition messages must be at most 1024 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z'))",message="lastTransitionTime must be a time as RFC 3339 writes it"
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Room is a place where agents and people work together: a log of messages, a board of tasks, and its members.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=room,categories=rooms
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Members",type=integer,JSONPath=`.status.members`
// +kubebuilder:printcolumn:name="Todo",type=integer,JSONPath=`.status.tasks.todo`
// +kubebuilder:printcolumn:name="Doing",type=integer,JSONPath=`.status.tasks.doing`
// +kubebuilder:printcolumn:name="Done",type=integer,JSONPath=`.status.tasks.done`
// +kubebuilder:printcolumn:name="Messages",type=integer,JSONPath=`.status.lastSeq`
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.status.id`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="a Room's name must be at most 63 characters"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.archive) || (has(self.status) && has(self.status.archive) && self.status.archive.throughSeq >= oldSelf.status.archive.throughSeq && (has(self.status.archive.throughBatch) ? self.status.archive.throughBatch : 0) >= (has(oldSelf.status.archive.throughBatch) ? oldSelf.status.archive.throughBatch : 0))",message="status.archive may not go back"
type Room struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the owner wants.
	// +required
	Spec RoomSpec `json:"spec"`
	// status is what the controller sees.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RoomStatus `json:"status,omitzero"`
}

// RoomList is a list of Rooms.
// +kubebuilder:object:root=true
type RoomList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Room `json:"items"`
}
