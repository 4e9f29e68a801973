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
	// MaxCarried is how many mentions may be pending whose messages have moved to the blob store.
	MaxCarried = 1024
)

// InboxSpec says whose Inbox it is.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an Inbox may not change hands"
type InboxSpec struct {
	// roomRef names the Room.
	// +required
	RoomRef RoomReference `json:"roomRef"`

	// plate of the Agent.
	// +required
	// +kubebuilder:validation:Pattern=`^BRNL-AGT-[0-9A-HJKMNP-TV-Z]{26}$`
	// +kubebuilder:validation:MinLength=35
	// +kubebuilder:validation:MaxLength=35
	Plate string `json:"plate"`
}

// MentionKey names a mention in a Room's log.
type MentionKey struct {
	// seq of the message.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1099511627776
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
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	Until metav1.MicroTime `json:"until"`
}

// CarriedMention is a pending mention whose message has moved to the blob store.
type CarriedMention struct {
	MentionKey `json:",inline"`

	// session that was named, if any. One with other characters is left out: then any instance may handle the mention.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:/@-]*$`
	// +kubebuilder:validation:MaxLength=64
	Session string `json:"session,omitempty"`

	// at is when the message was taken. Its id follows from that.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	At metav1.MicroTime `json:"at"`
}

// InboxStatus is how far an Agent has come with a Room's log.
// +kubebuilder:validation:XValidation:rule="!has(self.ackedThrough) || ((!has(self.acked) || self.acked.all(k, k.seq > self.ackedThrough)) && (!has(self.deliveries) || self.deliveries.all(d, d.seq > self.ackedThrough)) && (!has(self.carried) || self.carried.all(c, c.seq > self.ackedThrough)))",message="acked, deliveries and carried may only hold mentions beyond ackedThrough"
type InboxStatus struct {
	// lastReadSeq is the last message that the agent has seen.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1099511627776
	LastReadSeq int64 `json:"lastReadSeq,omitempty"`

	// ackedThrough is the seq up to which every mention of the agent is acknowledged.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1099511627776
	AckedThrough int64 `json:"ackedThrough,omitempty"`

	// deliveredThrough is the seq up to which mentions were given out at least once.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1099511627776
	DeliveredThrough int64 `json:"deliveredThrough,omitempty"`

	// acked are the acknowledged mentions beyond ackedThrough.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Acked []MentionKey `json:"acked,omitempty"`

	// deliveries are the mentions that are out and not acknowledged. Each is out to one instance.
	// +optional
	// +listType=map
	// +listMapKey=seq
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=128
	Deliveries []Delivery `json:"deliveries,omitempty"`

	// carried are the pending mentions whose messages have moved to the blob store, in their order. The manager adds them, the
	// bridge takes out what is acknowledged.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Carried []CarriedMention `json:"carried,omitempty"`
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
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.ackedThrough) || (has(self.status) && has(self.status.ackedThrough) && self.status.ackedThrough >= oldSelf.status.ackedThrough)",message="status.ackedThrough may not go back"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.lastReadSeq) || (has(self.status) && has(self.status.lastReadSeq) && self.status.lastReadSeq >= oldSelf.status.lastReadSeq)",message="status.lastReadSeq may not go back"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.deliveredThrough) || (has(self.status) && has(self.status.deliveredThrough) && self.status.deliveredThrough >= oldSelf.status.deliveredThrough)",message="status.deliveredThrough may not go back"
type Inbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says whose Inbox it is.
	// +required
	Spec InboxSpec `json:"spec"`
	// status is how far the agent has come.
	// +optional
	// +kubebuilder:default={}
	Status InboxStatus `json:"status,omitzero"`
}

// InboxList is a list of Inboxes.
// +kubebuilder:object:root=true
type InboxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Inbox `json:"items"`
}
