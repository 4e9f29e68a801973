// Package events sends Kubernetes Events for what was written, and for nothing else: they are collected while a controller
// decides, and sent when the write that makes them true has succeeded.
package events

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Recorder sends Events. It is the part of client-go's events.EventRecorder that controllers use.
type Recorder interface {
	// Eventf sends an Event.
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// Event is one to be sent.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is a short word for machines.
	Reason string
	// Action is what the controller did.
	Action string
	// Note is for people.
	Note string
}

// Queue collects the Events of one reconcile. The zero value is ready.
type Queue struct {
	list []Event
}

// Normal adds an Event about a normal outcome.
func (q *Queue) Normal(reason, action, note string) {
	q.list = append(q.list, Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: note})
}

// Warning adds an Event about something that somebody should look at.
func (q *Queue) Warning(reason, action, note string) {
	q.list = append(q.list, Event{Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: note})
}

// Send sends what was collected, regarding an object, and empties the queue.
func (q *Queue) Send(r Recorder, regarding runtime.Object) {
	for _, e := range q.list {
		r.Eventf(regarding, nil, e.Type, e.Reason, e.Action, "%s", e.Note)
	}
	q.list = nil
}
