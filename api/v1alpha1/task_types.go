package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TaskState is where a Task stands. The edges between the states are CEL rules on TaskStatus.
// +kubebuilder:validation:Enum=Todo;Doing;Blocked;Done;Failed;Cancelled
type TaskState string

const (
	// TaskTodo waits to be claimed.
	TaskTodo TaskState = "Todo"
	// TaskDoing is held by an instance under a lease.
	TaskDoing TaskState = "Doing"
	// TaskBlocked waits for something outside.
	TaskBlocked TaskState = "Blocked"
	// TaskDone is finished.
	TaskDone TaskState = "Done"
	// TaskFailed was given up.
	TaskFailed TaskState = "Failed"
	// TaskCancelled is no longer wanted.
	TaskCancelled TaskState = "Cancelled"
)

// ConsentState says whether the assignee's owner agreed to a Task.
// +kubebuilder:validation:Enum=Auto;Pending;Accepted;Rejected
type ConsentState string

const (
	// ConsentAuto needs nobody's consent: creator and assignee have one owner, or nobody is assigned.
	ConsentAuto ConsentState = "Auto"
	// ConsentPending waits for the assignee's owner.
	ConsentPending ConsentState = "Pending"
	// ConsentAccepted was agreed to.
	ConsentAccepted ConsentState = "Accepted"
	// ConsentRejected was refused.
	ConsentRejected ConsentState = "Rejected"
)

// ClaimEnd says how a claim ended.
// +kubebuilder:validation:Enum=Released;Expired;Finished;Revoked
type ClaimEnd string

const (
	// ClaimReleased was given back by its holder.
	ClaimReleased ClaimEnd = "Released"
	// ClaimExpired was taken away since its lease ran out.
	ClaimExpired ClaimEnd = "Expired"
	// ClaimFinished ended with a result: Done, Failed, Cancelled or Blocked.
	ClaimFinished ClaimEnd = "Finished"
	// ClaimRevoked was taken away by reassignment, the creator or an admin.
	ClaimRevoked ClaimEnd = "Revoked"
)

// Verdict is an owner's answer to a proposal.
// +kubebuilder:validation:Enum=Accept;Reject
type Verdict string

const (
	// VerdictAccept takes the proposal.
	VerdictAccept Verdict = "Accept"
	// VerdictReject refuses it.
	VerdictReject Verdict = "Reject"
)

// TaskCreator is who created a Task: an agent through the bridge, or a user through kubectl.
// +kubebuilder:validation:ExactlyOneOf=plate;user
type TaskCreator struct {
	// plate of the Agent that created the Task. Only the bridge may set it (admission policy).
	// +optional
	// +kubebuilder:validation:Pattern=`^BRNL-AGT-[0-9A-HJKMNP-TV-Z]{26}$`
	// +kubebuilder:validation:MinLength=35
	// +kubebuilder:validation:MaxLength=35
	Plate string `json:"plate,omitempty"`

	// user that created the Task. Stamped from the request by the admission policy.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	User string `json:"user,omitempty"`
}

// TaskDecision is a person's answer to a proposal, given with kubectl. The controller carries it out when by is the
// assignee's owner and not the creator's. While it has no effect, the condition DecisionValid says why.
type TaskDecision struct {
	// verdict on the proposal.
	// +required
	Verdict Verdict `json:"verdict"`

	// reason for the creator to read.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Reason string `json:"reason,omitempty"`

	// terms of the proposal that was decided on, as status.consent.terms gave them. When given, the decision counts for these and no
	// others: somebody may change what the task asks for between reading and deciding.
	// +optional
	// +kubebuilder:validation:MaxLength=43
	Terms string `json:"terms,omitempty"`

	// by is the user who decided. Stamped from the request by the admission policy.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
}

// InterventionAction is what a person does to a task over its holder's head.
// +kubebuilder:validation:Enum=Release;Cancel;Reopen
type InterventionAction string

const (
	// InterventionRelease takes a Doing task from its holder and puts it back to Todo.
	InterventionRelease InterventionAction = "Release"
	// InterventionCancel cancels a task that has not ended.
	InterventionCancel InterventionAction = "Cancel"
	// InterventionReopen puts a Blocked, Done, Failed or Cancelled task back to Todo.
	InterventionReopen InterventionAction = "Reopen"
)

// TaskIntervention is an order of a person about a task, given with kubectl, the plugin or the board. Whoever may update
// tasks may give one. The controller carries each out once, and says in status.intervention what came of it.
// +kubebuilder:validation:XValidation:rule="self.action != 'Cancel' || (has(self.reason) && size(self.reason) > 0)",message="reason must be given with Cancel: say why"
type TaskIntervention struct {
	// id names the order. One with the id that status.intervention names was carried out and is not looked at again.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// action to take.
	// +required
	Action InterventionAction `json:"action"`

	// reason for others to read. Cancel needs one.
	// +optional
	// +kubebuilder:validation:MaxLength=300
	Reason string `json:"reason,omitempty"`

	// epoch that the task must still have, so that nobody is met who was not meant. Any when absent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Epoch *int64 `json:"epoch,omitempty"`

	// by is the user who gave the order. Stamped from the request by the admission policy.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
}

// TaskSpec is what is to be done.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.creator) || (has(self.creator) && self.creator == oldSelf.creator)",message="creator may not be changed"
// +kubebuilder:validation:XValidation:rule="!has(self.decision) || !has(oldSelf.decision) || (has(self.assignee) == has(oldSelf.assignee) && (!has(self.assignee) || self.assignee == oldSelf.assignee))",message="decision must be removed when assignee changes: the new assignee's owner decides anew"
// +kubebuilder:validation:XValidation:rule="!has(self.decision) || !has(oldSelf.decision) || (self.title == oldSelf.title && has(self.detail) == has(oldSelf.detail) && (!has(self.detail) || self.detail == oldSelf.detail) && self.definitionOfDone == oldSelf.definitionOfDone)",message="decision must be removed when title, detail or definitionOfDone changes: the assignee's owner decides anew"
type TaskSpec struct {
	// roomRef names the Room that the task belongs to.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="roomRef may not be changed"
	RoomRef RoomReference `json:"roomRef"`

	// title says in a line what is to be done.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title"`

	// detail says more.
	// +optional
	// +kubebuilder:validation:MaxLength=8000
	Detail string `json:"detail,omitempty"`

	// definitionOfDone says how anybody can check that the task is done.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	DefinitionOfDone string `json:"definitionOfDone"`

	// assignee is the plate of an Agent, or the name of one in this namespace. Any member with the scope Write may claim
	// the task when it is absent.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Assignee string `json:"assignee,omitempty"`

	// order within the lane, smaller first.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000000
	// +kubebuilder:validation:Maximum=1000000000
	Order int64 `json:"order,omitempty"`

	// priority of the task, larger is more urgent: 0 to 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Priority int32 `json:"priority,omitempty"`

	// type of task, in the words of those who use the room: bug, feature, research.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:MaxLength=32
	Type string `json:"type,omitempty"`

	// dependsOn names the Tasks in this namespace that must be Done before this one may be claimed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	DependsOn []string `json:"dependsOn,omitempty"`

	// creator of the task. It cannot be changed.
	// +optional
	Creator *TaskCreator `json:"creator,omitempty"`

	// assignedBy is who chose the present assignee, or last changed what that one is asked to do (title, detail,
	// definitionOfDone), the creator when absent. Consent is judged by its owner, so that nobody uses the trust that another
	// has earned. Stamped by the admission policy and the bridge.
	// +optional
	AssignedBy *TaskCreator `json:"assignedBy,omitempty"`

	// decision of the assignee's owner on a proposal, for those who decide with kubectl.
	// +optional
	Decision *TaskDecision `json:"decision,omitempty"`

	// intervention is the last order of a person about the task: to release, cancel or reopen it.
	// +optional
	Intervention *TaskIntervention `json:"intervention,omitempty"`

	// leaseDurationSeconds overrides the room's lease duration: 10 seconds to 24 hours.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`

	// archived takes a Done, Failed or Cancelled task off the board.
	// +optional
	Archived bool `json:"archived,omitempty"`
}

// TaskConsent says whether the assignee's owner agreed.
type TaskConsent struct {
	// state of the consent.
	// +required
	State ConsentState `json:"state"`

	// assignee is the plate for which this was decided, empty when nobody was assigned.
	// +optional
	// +kubebuilder:validation:MaxLength=35
	Assignee string `json:"assignee,omitempty"`

	// by is the user who decided, or the mode of the Consent that did.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`

	// standing is true when a Consent accepted, and not the owner in person. Such a decision returns to Pending when the
	// Consent is withdrawn before work starts.
	// +optional
	Standing bool `json:"standing,omitempty"`

	// terms is a digest of the title, detail and definitionOfDone that wait for a decision, or that the owner decided on in
	// person. What was accepted is asked anew when they change before work starts.
	// +optional
	// +kubebuilder:validation:MaxLength=43
	Terms string `json:"terms,omitempty"`

	// reason given with the decision.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Reason string `json:"reason,omitempty"`

	// at is when it was decided.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	At metav1.Time `json:"at,omitzero"`
}

// TaskClaim is who holds a Doing task.
type TaskClaim struct {
	// holder is the plate of the Agent that holds the task.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder"`

	// session is the instance of the holder.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Session string `json:"session,omitempty"`

	// acquiredAt is when the claim was made.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	AcquiredAt metav1.MicroTime `json:"acquiredAt,omitzero"`
}

// TaskLastClaim is the claim before, after it ended.
type TaskLastClaim struct {
	// holder is the plate of the Agent that held the task.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder"`

	// session is the instance that held the task.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Session string `json:"session,omitempty"`

	// epoch under which it was held.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Epoch int64 `json:"epoch"`

	// ended says how it ended.
	// +required
	Ended ClaimEnd `json:"ended"`

	// at is when it ended.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	At metav1.Time `json:"at,omitzero"`
}

// MaxArtifactCharacters is how many characters the artifacts of a record may have together. The schema holds it too.
const MaxArtifactCharacters = 2000

// TaskRecord is what an agent says of its work when it changes the state of a task.
// +kubebuilder:validation:XValidation:rule="!has(self.artifacts) || self.artifacts.map(a, size(a)).sum() <= 2000",message="the artifacts of a record must have at most 2000 characters together"
type TaskRecord struct {
	// plate of the Agent that wrote the record, or the user.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Plate string `json:"plate"`

	// session of the Agent.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Session string `json:"session,omitempty"`

	// epoch of the claim that the record belongs to.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`

	// state that the record goes with.
	// +required
	State TaskState `json:"state"`

	// summary in a line of what happened.
	// +optional
	// +kubebuilder:validation:MaxLength=1000
	Summary string `json:"summary,omitempty"`

	// artifacts made, as file:path or msg:id.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=200
	Artifacts []string `json:"artifacts,omitempty"`

	// next says what should happen now.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Next string `json:"next,omitempty"`

	// reason for Blocked, Failed or Cancelled.
	// +optional
	// +kubebuilder:validation:MaxLength=1000
	Reason string `json:"reason,omitempty"`

	// resultRef is the result, as file:path or a message id.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ResultRef string `json:"resultRef,omitempty"`

	// late is true when the record came after the lease ran out and before anybody else claimed.
	// +optional
	Late bool `json:"late,omitempty"`

	// at is when the record was written.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	At metav1.Time `json:"at,omitzero"`
}

// TaskEvent is a line of a Task's history.
type TaskEvent struct {
	// at is when it happened.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	At metav1.Time `json:"at,omitzero"`

	// from is the state before.
	// +optional
	From TaskState `json:"from,omitempty"`

	// to is the state after.
	// +required
	To TaskState `json:"to"`

	// by is the plate, user or controller that did it, truncated.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	By string `json:"by,omitempty"`

	// epoch after it.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`

	// note says why, truncated.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Note string `json:"note,omitempty"`
}

// TaskIntervened is what came of a person's order.
type TaskIntervened struct {
	// id of the order, as in spec.intervention.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// refused says why the order was not carried out, empty when it was.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Refused string `json:"refused,omitempty"`
}

// TaskStatus is where the task stands.
// +kubebuilder:validation:XValidation:rule="has(self.claim) == (self.state == 'Doing')",message="a Doing task must have a claim, and no other may have one"
// +kubebuilder:validation:XValidation:rule="self.epoch == oldSelf.epoch + (has(self.claim) == has(oldSelf.claim) ? 0 : 1)",message="epoch must rise by one when a claim is made or ended, and may not change otherwise: somebody else was faster"
// +kubebuilder:validation:XValidation:rule="!has(self.claim) || !has(oldSelf.claim) || self.claim == oldSelf.claim",message="a held task may not change hands: already claimed"
// +kubebuilder:validation:XValidation:rule="self.state == oldSelf.state || (oldSelf.state == 'Todo' && self.state in ['Doing', 'Blocked', 'Cancelled']) || (oldSelf.state == 'Doing' && self.state != 'Doing') || (oldSelf.state == 'Blocked' && self.state in ['Todo', 'Doing', 'Failed', 'Cancelled']) || (oldSelf.state in ['Done', 'Failed', 'Cancelled'] && self.state == 'Todo') || (oldSelf.state == 'Todo' && self.state in ['Done', 'Failed'] && has(oldSelf.lastClaim) && oldSelf.lastClaim.ended == 'Expired')",message="a task may go from Todo to Doing, Blocked or Cancelled, from Doing to any state, from Blocked to Todo, Doing, Failed or Cancelled, and from Done, Failed or Cancelled only to Todo"
// +kubebuilder:validation:XValidation:rule="oldSelf.state != 'Todo' || !(self.state in ['Done', 'Failed']) || (has(oldSelf.lastClaim) && oldSelf.epoch == oldSelf.lastClaim.epoch + 1 && has(self.lastClaim) && self.lastClaim.ended == 'Finished' && has(self.record) && has(self.record.late) && self.record.late && self.record.state == self.state && self.record.plate == oldSelf.lastClaim.holder && has(self.record.epoch) && self.record.epoch == oldSelf.lastClaim.epoch)",message="a task that is not held may only be finished late: by its last holder, whose lease ran out, if nobody has claimed it since"
// +kubebuilder:validation:XValidation:rule="has(self.lastClaim) ? ((has(oldSelf.lastClaim) && self.lastClaim == oldSelf.lastClaim) || (has(oldSelf.claim) && !has(self.claim) && self.lastClaim.holder == oldSelf.claim.holder && self.lastClaim.epoch == oldSelf.epoch) || (oldSelf.state == 'Todo' && self.state in ['Done', 'Failed'] && has(oldSelf.lastClaim) && self.lastClaim.holder == oldSelf.lastClaim.holder && self.lastClaim.epoch == oldSelf.lastClaim.epoch)) : !has(oldSelf.lastClaim)",message="lastClaim may only change when a claim ends, and then to that claim"
// +kubebuilder:validation:XValidation:rule="self.state != 'Doing' || oldSelf.state == 'Doing' || (has(self.consent) && self.consent.state in ['Auto', 'Accepted'])",message="a task may not be claimed before its assignee's owner agreed (status.consent)"
// +kubebuilder:validation:XValidation:rule="!(self.state in ['Blocked', 'Failed', 'Cancelled']) || (has(self.reason) && size(self.reason) > 0)",message="reason must be given for Blocked, Failed and Cancelled"
type TaskStatus struct {
	// observedGeneration is the generation that the controller has dealt with.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state of the task.
	// +required
	State TaskState `json:"state"`

	// epoch counts the claims and their ends. It is the fencing token of the present claim.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Epoch int64 `json:"epoch"`

	// consent of the assignee's owner.
	// +optional
	Consent *TaskConsent `json:"consent,omitempty"`

	// claim of a Doing task.
	// +optional
	Claim *TaskClaim `json:"claim,omitempty"`

	// lastClaim is the claim before.
	// +optional
	LastClaim *TaskLastClaim `json:"lastClaim,omitempty"`

	// reason for Blocked, Failed or Cancelled.
	// +optional
	// +kubebuilder:validation:MaxLength=1000
	Reason string `json:"reason,omitempty"`

	// record is the latest record of work.
	// +optional
	Record *TaskRecord `json:"record,omitempty"`

	// contested keeps the last records of holders who finished after somebody else had claimed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Contested []TaskRecord `json:"contested,omitempty"`

	// history is what happened last, oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	History []TaskEvent `json:"history,omitempty"`

	// intervention is what came of the last order of a person (spec.intervention).
	// +optional
	Intervention *TaskIntervened `json:"intervention,omitempty"`

	// lastNotice names the last notice that the controller posted to the room about this task.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	LastNotice string `json:"lastNotice,omitempty"`

	// conditions of the Task: Ready, DependenciesMet, LeaseLive, DecisionValid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 1024)",message="condition messages must be at most 1024 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z'))",message="lastTransitionTime must be a time as RFC 3339 writes it"
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Task is a piece of work on a Room's board. Exactly one instance holds it at a time.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=task,categories=rooms
// +kubebuilder:selectablefield:JSONPath=`.spec.roomRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.assignee`
// +kubebuilder:selectablefield:JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Room",type=string,JSONPath=`.spec.roomRef.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Assignee",type=string,JSONPath=`.spec.assignee`
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.status.claim.holder`
// +kubebuilder:printcolumn:name="Consent",type=string,JSONPath=`.status.consent.state`
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`,priority=1
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.status.epoch`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="a Task's name must be at most 63 characters"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || !(self.metadata.name in self.spec.dependsOn)",message="a task may not depend on itself"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.archived) || !self.spec.archived || self.status.state in ['Done', 'Failed', 'Cancelled']",message="only a Done, Failed or Cancelled task may be archived"
type Task struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is to be done.
	// +required
	Spec TaskSpec `json:"spec"`
	// status is where the task stands.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1,"state":"Todo","epoch":0}
	Status TaskStatus `json:"status,omitzero"`
}

// TaskList is a list of Tasks.
// +kubebuilder:object:root=true
type TaskList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Task `json:"items"`
}
