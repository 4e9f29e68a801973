package task

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/metrics"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// kind of notice.
type kind string

const (
	// noticeAssigned tells an assignee that a task is theirs.
	noticeAssigned kind = "assigned"
	// noticeProposed tells those who may decide for the assignee's owner that a proposal waits.
	noticeProposed kind = "proposed"
	// noticeRejected tells the assigning agent that the proposal was rejected.
	noticeRejected kind = "rejected"
	// noticeUnblocked tells an assignee that the task waits for nothing any more.
	noticeUnblocked kind = "unblocked"
	// noticeQuiet stands for an assignment that nobody needs to be told of.
	noticeQuiet kind = "quiet"
)

// mark is what status.lastNotice says: which notice was posted last, and whether the task has been waiting since. The count
// makes the name of each notice of a task its own, and the same again when a crash came before the mark was written.
type mark struct {
	count   int
	kind    kind
	plate   string
	waiting bool
}

// String gives the mark as it stands in the status, empty for the mark of a task of which nothing was said.
func (m mark) String() string {
	if m == (mark{kind: noticeQuiet}) || m == (mark{}) {
		return ""
	}
	s := fmt.Sprintf("%d:%s:%s", m.count, m.kind, m.plate)
	if m.waiting {
		s += ":waiting"
	}
	return s
}

// parseMark reads a mark. What cannot be read counts as nothing said.
func parseMark(s string) mark {
	parts := strings.Split(s, ":")
	if len(parts) < 3 {
		return mark{kind: noticeQuiet}
	}
	count, err := strconv.Atoi(parts[0])
	if err != nil || count < 0 {
		return mark{kind: noticeQuiet}
	}
	return mark{
		count: count, kind: kind(parts[1]), plate: parts[2], waiting: len(parts) > 3 && parts[3] == "waiting",
	}
}

// situation is what decides about notices.
type situation struct {
	// kind of notice that the assignment calls for, noticeQuiet for none. Empty when it is not the time to say anything.
	kind kind
	// plate of the assignee.
	plate string
	// waiting is true when the task may not be claimed before others are done.
	waiting bool
	// recipients of the notice.
	recipients []string
	// unblock are the recipients of the notice that the waiting is over.
	unblock []string
}

// decideNotice says which notice to post, if any, and what to remember. It looks at the present situation and at what was
// said last, so that nothing is lost when the controller was away.
func decideNotice(m mark, s situation) (next mark, post kind) {
	if s.kind == "" {
		return m, ""
	}
	if m.plate == s.plate && (m.kind == s.kind || (m.kind == noticeUnblocked && s.open())) {
		return decideUnblocked(m, s)
	}
	next = mark{count: m.count, kind: noticeQuiet, plate: s.plate, waiting: s.waiting && s.open()}
	switch {
	case s.kind != noticeQuiet && len(s.recipients) > 0:
		next.count, next.kind = m.count+1, s.kind
		return next, s.kind
	case m.count == 0 && !next.waiting && !m.waiting:
		return m, "" // Nothing was said, and nothing is to be remembered.
	default:
		return next, ""
	}
}

// open says whether the task can be worked on as far as consent goes.
func (s situation) open() bool {
	return s.plate != "" && (s.kind == noticeAssigned || s.kind == noticeQuiet)
}

// decideUnblocked remembers that a task waits, and says so when it waits no more.
func decideUnblocked(m mark, s situation) (next mark, post kind) {
	next = m
	switch {
	case !s.open() || s.waiting == m.waiting:
		return m, ""
	case s.waiting:
		next.waiting = true
		return next, ""
	case len(s.unblock) == 0:
		return m, ""
	default:
		return mark{count: m.count + 1, kind: noticeUnblocked, plate: s.plate}, noticeUnblocked
	}
}

// situation gathers what decides about notices.
func (s *scope) situation() situation {
	state, c := s.next.Status.State, s.next.Status.Consent
	if state != s.task.Status.State {
		// Being taken from its holder, unless the holder is faster. The room hears of it when it is written.
		return situation{}
	}
	if s.room == nil || s.room.Spec.State == v1alpha1.RoomPaused || s.room.Spec.State == v1alpha1.RoomArchived ||
		(state != v1alpha1.TaskTodo && state != v1alpha1.TaskBlocked) || c == nil {
		return situation{}
	}
	if s.task.Spec.Assignee == "" {
		return situation{kind: noticeQuiet}
	}
	if !s.assignee.member {
		return situation{}
	}
	out := situation{plate: s.assignee.plate, waiting: !s.blockers.met(), unblock: []string{s.assignee.plate}}
	switch {
	case c.State == v1alpha1.ConsentPending:
		out.kind, out.recipients = noticeProposed, s.deciders()
	case c.State == v1alpha1.ConsentRejected:
		out.kind = noticeRejected
		if _, member := s.members.Agent(s.assigner.plate); member {
			out.recipients = []string{s.assigner.plate}
		}
	case s.assigner.plate == s.assignee.plate:
		out.kind = noticeQuiet
	default:
		out.kind, out.recipients = noticeAssigned, []string{s.assignee.plate}
	}
	return out
}

// deciders are the agents in the room that may decide in the name of the assignee's owner.
func (s *scope) deciders() []string {
	var plates []string
	for _, m := range s.members.Agents {
		if m.Agent.Spec.Owner == s.assignee.agent.Spec.Owner && len(plates) < v1alpha1.MaxMessageMentions &&
			slices.Contains(m.Agent.Spec.Delegations, v1alpha1.DelegationConsent) {
			plates = append(plates, m.Plate)
		}
	}
	return plates
}

// reconcileNotice posts at most one notice, and remembers it in the status that is to be written.
func (r *Reconciler) reconcileNotice(ctx context.Context, s *scope) error {
	if r.Poster == nil {
		return nil
	}
	situation := s.situation()
	next, post := decideNotice(parseMark(s.task.Status.LastNotice), situation)
	if post != "" {
		recipients := situation.recipients
		if post == noticeUnblocked {
			recipients = situation.unblock
		}
		if err := r.Poster.Post(ctx, s.room, s.notice(next, recipients)); err != nil {
			return fmt.Errorf("posting the notice %q of task %s: %w", post, s.task.Name, err)
		}
		s.counts = append(s.counts, metrics.NoticesPosted.WithLabelValues(string(post)).Inc)
	}
	s.next.Status.LastNotice = next.String()
	return nil
}

// notice writes the message of a notice. The payload names the notice and not its words, since the words may have changed
// when it is posted again after a crash.
func (s *scope) notice(m mark, recipients []string) v1alpha1.Message {
	name := fmt.Sprintf("%d:%s:%s", m.count, m.kind, m.plate)
	message := v1alpha1.Message{
		Sender:  v1alpha1.MessageSender{Type: v1alpha1.SenderSystem, ID: controllerName, Name: "rooms"},
		Body:    s.body(m.kind),
		Key:     ids.Digest("notice", string(s.task.UID), name),
		Payload: ids.Digest("notice", name),
		At:      metav1.NewMicroTime(s.now),
	}
	for _, plate := range recipients {
		message.Mentions = append(message.Mentions, v1alpha1.Mention{Plate: plate, TaskRef: s.task.Name})
	}
	return message
}

// maxDone is how many characters of a definition of done a notice quotes.
const maxDone = 1000

func (s *scope) body(k kind) string {
	spec, who := s.task.Spec, alias(s.assignee.agent)
	done := tasks.Truncate(spec.DefinitionOfDone, maxDone)
	owner := s.assignee.agent.Spec.Owner
	switch k {
	case noticeProposed:
		return fmt.Sprintf("Task %q for %s was proposed by %s and waits for the consent of %s. Definition of done: %s",
			spec.Title, who, s.assigner.label, owner, done)
	case noticeRejected:
		return fmt.Sprintf("Task %q for %s was rejected by %s: %s",
			spec.Title, who, s.next.Status.Consent.By, orNone(s.next.Status.Consent.Reason))
	case noticeUnblocked:
		return fmt.Sprintf("Task %q of %s waits for nothing any more and can be claimed. Definition of done: %s",
			spec.Title, who, done)
	default:
		body := fmt.Sprintf("Task %q is assigned to %s by %s. Definition of done: %s", spec.Title, who, s.assigner.label, done)
		if !s.blockers.met() {
			body += "\nIt waits for other tasks first: " + strings.Join(s.blockers.names, ", ")
		}
		return body
	}
}

// alias is how messages call an agent.
func alias(a *v1alpha1.Agent) string { return handles.Alias(a.Spec.DisplayName, a.Spec.Owner) }
