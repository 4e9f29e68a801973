package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of an Inbox that its writers must keep. The schema holds them too.
const (
	// MaxSparseAcks is how many acknowledged mentions may lie beyond the oldest one that is not acknowledged.
	MaxSparseAcks = 512
	// MaxDeliveries is how many mentions may be out at once.
	MaxDeliveries = 128
)

// InboxSpec says whose Inbox it is.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an Inbox may not change hands"
type InboxSpec struct {
	// roomRef names the Room.
	// +required
	RoomRef RoomReference `json:"roomRef"`

	// plate of the Agent.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=35
	Plate string `json:"plate"`
}

// MentionKey names a mention in a Room's log.
type MentionKey struct {
	// seq of the message.
	// +required
	// +kubebuilder:validation:Minimum=1
	Seq int64 `json:"seq"`

	// index of the mention within the message.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=49
	Index int32 `json:"index"`
}

// Delivery is a mention that an instance was given to handle.
type Delivery struct {
	MentionKey `json:",inline"`

	// session that was given the mention.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Session string `json:"session"`

	// until is when the mention may be given to another instance.
	// +required
	Until metav1.MicroTime `json:"until"`
}

// InboxStatus is how far an Agent has come with a Room's log.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ackedThrough) || (has(self.ackedThrough) && self.ackedThrough >= oldSelf.ackedThrough)",message="ackedThrough may not go back"
type InboxStatus struct {
	// lastReadSeq is the last message that the agent has seen.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LastReadSeq int64 `json:"lastReadSeq,omitempty"`

	// ackedThrough is the seq up to which every mention of the agent is acknowledged.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AckedThrough int64 `json:"ackedThrough,omitempty"`

	// deliveredThrough is the seq up to which mentions were given out at least once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DeliveredThrough int64 `json:"deliveredThrough,omitempty"`

	// acked are the acknowledged mentions beyond ackedThrough.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Acked []MentionKey `json:"acked,omitempty"`

	// deliveries are the mentions that are out and not acknowledged.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// Inbox is how far an Agent has come with the mentions of a Room. The bridge keeps it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=inbox,categories=rooms
// +kubebuilder:selectablefield:JSONPath=`.spec.roomRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.plate`
// +kubebuilder:printcolumn:name="Room",type=string,JSONPath=`.spec.roomRef.name`
// +kubebuilder:printcolumn:name="Plate",type=string,JSONPath=`.spec.plate`
// +kubebuilder:printcolumn:name="Read",type=integer,JSONPath=`.status.lastReadSeq`
// +kubebuilder:printcolumn:name="Acked",type=integer,JSONPath=`.status.ackedThrough`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Inbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says whose Inbox it is.
	// +required
	Spec InboxSpec `json:"spec"`
	// status is how far the agent has come.
	// +optional
	Status InboxStatus `json:"status,omitzero"`
}

// InboxList is a list of Inboxes.
// +kubebuilder:object:root=true
type InboxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Inbox `json:"items"`
}
