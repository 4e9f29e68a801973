package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of a MessageBatch that its writers must keep. The schema holds them too.
const (
	// MaxBatchMessages is how many messages a batch may hold.
	MaxBatchMessages = 64
	// MaxBatchCharacters is how many characters the bodies of a batch may have together.
	MaxBatchCharacters = 16000
	// MaxBatchMentions is how many mentions a batch may hold.
	MaxBatchMentions = 100
	// MaxBodyCharacters is how many characters a body may have.
	MaxBodyCharacters = 8000
	// MaxMessageMentions is how many mentions a message may have.
	MaxMessageMentions = 50
)

// SenderType is the kind of a message's sender.
// +kubebuilder:validation:Enum=Agent;Human;System
type SenderType string

const (
	// SenderAgent is an agent, known by its token.
	SenderAgent SenderType = "Agent"
	// SenderHuman is a person.
	SenderHuman SenderType = "Human"
	// SenderSystem is a controller of Agent Rooms.
	SenderSystem SenderType = "System"
)

// MessageSender is who sent a message.
type MessageSender struct {
	// type of sender.
	// +required
	Type SenderType `json:"type"`

	// id is the plate of an agent, the username of a person, or the name of the controller.
	// +required
	// +kubebuilder:validation:Pattern=`^[^()<>&\x00-\x1f\x7f\x{2028}\x{2029}]+$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`

	// name is what the sender was called when it sent.
	// +optional
	// +kubebuilder:validation:Pattern=`^[^()<>&\x00-\x1f\x7f\x{2028}\x{2029}]+$`
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
}

// Mention is an agent that a message is for.
type Mention struct {
	// plate of the agent.
	// +required
	// +kubebuilder:validation:Pattern=`^BRNL-AGT-[0-9A-HJKMNP-TV-Z]{26}$`
	// +kubebuilder:validation:MinLength=35
	// +kubebuilder:validation:MaxLength=35
	Plate string `json:"plate"`

	// session is the instance that should handle it, if one was named.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Session string `json:"session,omitempty"`

	// taskRef names the Task in this namespace that the mention is about.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	TaskRef string `json:"taskRef,omitempty"`
}

// Message is a line of a Room's log. Its seq is the batch's firstSeq plus its place in the batch.
type Message struct {
	// sender of the message.
	// +required
	Sender MessageSender `json:"sender"`

	// body is free text. It is never scanned for mentions.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8000
	Body string `json:"body"`

	// mentions are the agents that the message is for.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Mentions []Mention `json:"mentions,omitempty"`

	// parentID is the id of the message that this one answers.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`
	// +kubebuilder:validation:MaxLength=26
	ParentID string `json:"parentID,omitempty"`

	// fileRef is the id of a file that goes with the message.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`
	// +kubebuilder:validation:MaxLength=26
	FileRef string `json:"fileRef,omitempty"`

	// key is the digest of sender and idempotency key.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{43}$`
	// +kubebuilder:validation:MaxLength=43
	Key string `json:"key,omitempty"`

	// payload is the digest of what was sent under the key.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{43}$`
	// +kubebuilder:validation:MaxLength=43
	Payload string `json:"payload,omitempty"`

	// at is when the message was taken, by the clock of the replica that took it.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	At metav1.MicroTime `json:"at"`
}

// MessageBatchSpec is a piece of a Room's log.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a MessageBatch may not be changed"
// +kubebuilder:validation:XValidation:rule="self.messages.map(m, size(m.body)).sum() <= 16000",message="the bodies of a batch must have at most 16000 characters together"
// +kubebuilder:validation:XValidation:rule="self.messages.map(m, has(m.mentions) ? size(m.mentions) : 0).sum() <= 100",message="the messages of a batch must have at most 100 mentions together"
type MessageBatchSpec struct {
	// roomRef names the Room that the batch belongs to.
	// +required
	RoomRef RoomReference `json:"roomRef"`

	// number of the batch in the room's chain, from 1 on without a gap. The name of the object ends in it, so that
	// creating the name is the compare-and-swap.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999999999
	Number int64 `json:"number"`

	// firstSeq is the seq of the first message. A message id holds 40 bits of it.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1099511627712
	FirstSeq int64 `json:"firstSeq"`

	// writer names the commit, so that a writer can tell after a lost answer whether the batch is its own.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Writer string `json:"writer"`

	// messages in their order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Messages []Message `json:"messages"`
}

// MessageBatch is an immutable piece of a Room's log. A room's batches form a chain: batch n+1 starts with the seq after
// the last of batch n.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mb,categories=rooms
// +kubebuilder:selectablefield:JSONPath=`.spec.roomRef.name`
// +kubebuilder:printcolumn:name="Room",type=string,JSONPath=`.spec.roomRef.name`
// +kubebuilder:printcolumn:name="Seq",type=integer,JSONPath=`.spec.firstSeq`
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.spec.messages[0].sender.name`
// +kubebuilder:printcolumn:name="Body",type=string,JSONPath=`.spec.messages[0].body`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.startsWith(self.spec.roomRef.name + '-') && self.metadata.name.matches('-b[0-9]{10}$') && int(self.metadata.name.substring(size(self.metadata.name) - 10)) == self.spec.number",message="a MessageBatch's name must begin with its room's name and end in -b and its number in ten digits"
type MessageBatch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the piece of the log.
	// +required
	Spec MessageBatchSpec `json:"spec"`
}

// MessageBatchList is a list of MessageBatches.
// +kubebuilder:object:root=true
type MessageBatchList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []MessageBatch `json:"items"`
}
