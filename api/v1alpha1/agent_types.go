package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scope is a group of tools that an Agent may use.
// +kubebuilder:validation:Enum=Read;Write;Upload;Download;Invoke
type Scope string

const (
	// ScopeRead allows reading rooms, boards, members and mentions.
	ScopeRead Scope = "Read"
	// ScopeWrite allows sending messages, acknowledging mentions and working on tasks.
	ScopeWrite Scope = "Write"
	// ScopeUpload allows writing files.
	ScopeUpload Scope = "Upload"
	// ScopeDownload allows reading files.
	ScopeDownload Scope = "Download"
	// ScopeInvoke allows assigning tasks to other owners' agents.
	ScopeInvoke Scope = "Invoke"
)

// Delegation is something an Agent may do in its owner's name.
// +kubebuilder:validation:Enum=Consent
type Delegation string

// DelegationConsent allows deciding on proposals and setting the owner's consent for a room.
const DelegationConsent Delegation = "Consent"

// SubjectKind is the kind of identity that may act as an Agent.
// +kubebuilder:validation:Enum=ServiceAccount;User
type SubjectKind string

const (
	// SubjectServiceAccount is a ServiceAccount, as pods and TokenRequest have it.
	SubjectServiceAccount SubjectKind = "ServiceAccount"
	// SubjectUser is a user the cluster's authenticators know.
	SubjectUser SubjectKind = "User"
)

// Subject is an identity that may act as an Agent.
// +kubebuilder:validation:XValidation:rule="self.kind == 'ServiceAccount' || !has(self.namespace)",message="namespace may not be set for a User"
// +kubebuilder:validation:XValidation:rule="self.kind != 'User' || !self.name.startsWith('system:serviceaccount:')",message="a ServiceAccount must be named by kind ServiceAccount"
type Subject struct {
	// kind of identity.
	// +required
	Kind SubjectKind `json:"kind"`

	// name of the ServiceAccount, or the username.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the ServiceAccount: the Agent's own when absent, and no other (admission policy).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// AgentSpec is the passport of an Agent.
type AgentSpec struct {
	// displayName is the alias that others mention: @displayName(owner).
	// +required
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	DisplayName string `json:"displayName"`

	// owner is the Kubernetes username of the person the agent works for. It cannot be changed: what others agreed to was
	// agreed with that person.
	// +required
	// +kubebuilder:validation:Pattern=`^[^()<>&\x00-\x1f\x7f\x{2028}\x{2029}]+$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="owner may not be changed: create another Agent"
	Owner string `json:"owner"`

	// scopes are the groups of tools the agent may use.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	Scopes []Scope `json:"scopes,omitempty"`

	// subjects are the identities that may act as this agent. A subject may stand in one Agent only.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Subjects []Subject `json:"subjects,omitempty"`

	// delegations are what the agent may do in its owner's name. None when absent.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1
	Delegations []Delegation `json:"delegations,omitempty"`
}

// AgentStatus is what the agent controller sees.
type AgentStatus struct {
	// observedGeneration is the generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// plate is the agent's immutable public id. It follows from the UID.
	// +optional
	// +kubebuilder:validation:MaxLength=35
	Plate string `json:"plate,omitempty"`

	// liveInstances is how many instances showed a sign of life lately.
	// +optional
	// +kubebuilder:default=0
	LiveInstances int32 `json:"liveInstances,omitempty"`

	// conditions of the Agent: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 1024)",message="condition messages must be at most 1024 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z'))",message="lastTransitionTime must be a time as RFC 3339 writes it"
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Agent is the passport of an AI agent: what it is called, who owns it, what it may do, and which identities may act as it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ag,categories=rooms
// +kubebuilder:selectablefield:JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Alias",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Plate",type=string,JSONPath=`.status.plate`
// +kubebuilder:printcolumn:name="Live",type=integer,JSONPath=`.status.liveInstances`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Scopes",type=string,JSONPath=`.spec.scopes`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="an Agent's name must be at most 63 characters"
type Agent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the passport.
	// +required
	Spec AgentSpec `json:"spec"`
	// status is what the controller sees.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status AgentStatus `json:"status,omitzero"`
}

// AgentList is a list of Agents.
// +kubebuilder:object:root=true
type AgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Agent `json:"items"`
}
