// Package v1alpha1 holds the kinds of Agent Rooms: Room, Agent, Task, Consent, MessageBatch and Inbox.
//
// The API server enforces what it can: immutable fields, the task state machine and the claim rule are CEL rules on the
// types here, so that they hold for the bridge, for the controllers and for kubectl alike. What depends on who is asking
// is held by the admission policies in config/policy.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=agentrooms.dev
package v1alpha1
