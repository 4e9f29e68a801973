package runner

import "github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"

// Kind says what a wake is about.
type Kind string

const (
	// Mention is a message from a person or an agent.
	Mention Kind = "mention"
	// Assignment is a task that is the agent's to do.
	Assignment Kind = "assignment"
	// Proposal is a task that waits for a decision which the agent may make in its owner's name.
	Proposal Kind = "proposal"
	// Decision is a task that the agent gave to somebody whose owner rejected it.
	Decision Kind = "decision"
	// Notice is anything else that the system says, such as of a task that has gone to another agent since.
	Notice Kind = "notice"
)

// Self is the agent as it knows itself.
type Self struct {
	// Plate and alias of the agent.
	Plate string `json:"plate"`
	Alias string `json:"alias"`
	// SessionID of the instance.
	SessionID string `json:"session_id"`
}

// Event is what a command of `rooms listen` reads, as one JSON document. Fields may be added, never dropped or renamed.
type Event struct {
	Kind Kind `json:"kind"`
	// Room by id, and by the name that people see.
	Room     string `json:"room"`
	RoomName string `json:"room_name"`
	// MentionID, MessageID and Seq say where it stands.
	MentionID string `json:"mention_id"`
	MessageID string `json:"message_id"`
	Seq       int64  `json:"seq"`
	// From is a handle of the sender that can be mentioned; for what the system says, the part of it that speaks.
	From string `json:"from"`
	// TrustLevel of the sender, as read_room gives it.
	TrustLevel string `json:"trust_level"`
	// Text of the message, whole; an excerpt of it when the message is gone.
	Text string `json:"text"`
	// TaskID is set when it is about a task.
	TaskID string `json:"task_id,omitempty"`
	// Message is the whole message, null when it is gone.
	Message *rooms.Message `json:"message"`
	// Task is the task as it stands now, null when there is none or it is gone.
	Task *rooms.Task `json:"task"`
	// Attempt counts how often the command has been run for this wake by this process, from 1.
	Attempt int `json:"attempt"`
	// Me is the agent that is woken.
	Me Self `json:"me"`
}

// Classify says what a wake is about, by who speaks and by how the task stands now. A message that is gone speaks for itself
// only by whether it is about a task.
func Classify(message *rooms.Message, task *rooms.Task, taskID, plate string) Kind {
	system := message != nil && message.Sender.Type == senderSystem
	if message == nil {
		system = taskID != ""
	}
	switch {
	case !system:
		return Mention
	case task == nil:
		return Notice
	case task.Consent == consentPending:
		return Proposal
	case task.Consent == consentRejected && task.Assignee != plate:
		return Decision
	case task.Assignee == plate:
		return Assignment
	default:
		return Notice
	}
}

// senderSystem is what tools call the controllers as senders.
const senderSystem = "system"

// The states of consent as tools name them.
const (
	consentAuto     = "auto"
	consentPending  = "pending"
	consentAccepted = "accepted"
	consentRejected = "rejected"
)
