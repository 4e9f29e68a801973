package view

import (
	"context"
	"sync"
)

// Hub tells listeners that something under a topic may have changed. Several changes may come as one.
type Hub struct {
	mu     sync.Mutex
	topics map[string]map[chan struct{}]bool
}

func newHub() *Hub { return &Hub{topics: map[string]map[chan struct{}]bool{}} }

// InboxTopic is the topic of an agent's mentions.
func InboxTopic(plate string) string { return "inbox/" + plate }

// BoardTopic is the topic of a room's tasks.
func BoardTopic(roomID string) string { return "board/" + roomID }

// MembersTopic is the topic of who may see what: rooms, memberships and agents.
const MembersTopic = "members"

// TasksTopic is the topic of tasks that appear.
const TasksTopic = "tasks"

// LogTopic is the topic of a room's messages.
func LogTopic(roomID string) string { return "log/" + roomID }

// LeasesTopic is the topic of the Leases of a room's tasks: renewals, above all.
func LeasesTopic(roomID string) string { return "leases/" + roomID }

// RoomsTopic is the topic of rooms, with all that their controller counts in them.
const RoomsTopic = "rooms"

// ConsentsTopic is the topic of Consents.
const ConsentsTopic = "consents"

// PresenceTopic is the topic of instances that come, go, or say something else of themselves. That one falls silent is not
// announced.
const PresenceTopic = "presence"

// Listen subscribes to topics until the context ends.
func (h *Hub) Listen(ctx context.Context, topics ...string) <-chan struct{} {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	for _, t := range topics {
		if h.topics[t] == nil {
			h.topics[t] = map[chan struct{}]bool{}
		}
		h.topics[t][ch] = true
	}
	h.mu.Unlock()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, t := range topics {
			delete(h.topics[t], ch)
			if len(h.topics[t]) == 0 {
				delete(h.topics, t)
			}
		}
	})
	return ch
}

// publish tells the listeners of a topic. It never blocks: a listener that has not taken the last word yet needs no other.
func (h *Hub) publish(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.topics[topic] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
