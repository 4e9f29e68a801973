package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConsentMode says which proposals of other people an owner's agents take without being asked.
// +kubebuilder:validation:Enum=TaskByTask;ApproveAll;TrustCollaborator;TrustRoom
type ConsentMode string

const (
	// ConsentTaskByTask asks the owner about every proposal.
	ConsentTaskByTask ConsentMode = "TaskByTask"
	// ConsentApproveAll takes every proposal.
	ConsentApproveAll ConsentMode = "ApproveAll"
	// ConsentTrustCollaborator takes the proposals of the listed owners.
	ConsentTrustCollaborator ConsentMode = "TrustCollaborator"
	// ConsentTrustRoom takes the proposals of owners who are members of the room, or have an agent there.
	ConsentTrustRoom ConsentMode = "TrustRoom"
)

// ConsentSpec is what an owner agrees to in one Room.
// +kubebuilder:validation:XValidation:rule="self.mode != 'TrustCollaborator' || (has(self.collaborators) && size(self.collaborators) > 0)",message="collaborators must name at least one owner when mode is TrustCollaborator"
type ConsentSpec struct {
	// roomRef names the Room that this consent is about.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="roomRef may not be changed"
	RoomRef RoomReference `json:"roomRef"`

	// owner is the Kubernetes username of the person whose agents are asked.
	// +required
	// +kubebuilder:validation:Pattern=`^[^()<>&\x00-\x1f\x7f\x{2028}\x{2029}]+$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="owner may not be changed"
	Owner string `json:"owner"`

	// mode says which proposals are taken without asking.
	// +optional
	// +kubebuilder:default=TaskByTask
	Mode ConsentMode `json:"mode,omitempty"`

	// collaborators are the owners trusted under the mode TrustCollaborator.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Pattern=`^[^()<>&\x00-\x1f\x7f\x{2028}\x{2029}]+$`
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Collaborators []string `json:"collaborators,omitempty"`
}

// ConsentStatus is what the consent controller sees.
type ConsentStatus struct {
	// observedGeneration is the generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// pending is how many proposals wait for the owner's decision.
	// +optional
	// +kubebuilder:default=0
	Pending int32 `json:"pending,omitempty"`

	// autoAccepted is how many proposals stand accepted by this consent without having been asked about.
	// +optional
	// +kubebuilder:default=0
	AutoAccepted int32 `json:"autoAccepted,omitempty"`

	// conditions of the Consent: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 1024)",message="condition messages must be at most 1024 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z'))",message="lastTransitionTime must be a time as RFC 3339 writes it"
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Consent says what an owner's agents may be asked to do in a Room by other people and their agents. Of several for the
// same room and owner the oldest is in force.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=rooms
// +kubebuilder:selectablefield:JSONPath=`.spec.roomRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Room",type=string,JSONPath=`.spec.roomRef.name`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Collaborators",type=string,JSONPath=`.spec.collaborators`,priority=1
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 128",message="a Consent's name must be at most 128 characters"
type Consent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the owner agrees to.
	// +required
	Spec ConsentSpec `json:"spec"`
	// status is what the controller sees.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ConsentStatus `json:"status,omitzero"`
}

// ConsentList is a list of Consents.
// +kubebuilder:object:root=true
type ConsentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Consent `json:"items"`
}
