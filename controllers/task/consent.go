package task

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/events"
	"github.com/agentrooms/agentrooms/controllers/internal/metrics"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// revoke takes a task back whose holder is no longer the one it is assigned to.
func revoke(s *scope) {
	claim := s.next.Status.Claim
	if claim == nil || s.task.Spec.Assignee == "" || s.assignee.plate == claim.Holder {
		return
	}
	status, ok := tasks.End(s.next, s.next.Status.Epoch, v1alpha1.ClaimRevoked, controllerName,
		"the task was assigned to somebody else", s.now)
	if ok {
		s.next.Status = status
	}
}

// settle brings the consent up to date with room, agents, Consents and what the owner decided with kubectl.
func settle(s *scope) {
	if s.room == nil {
		return
	}
	if s.task.Spec.Assignee != "" && s.assignee.agent == nil {
		s.next.Status.Consent = unresolved(s.next, s.assignee.plate, s.now)
		return
	}
	if c, changed := consent.Settle(s.next, s.proposal(), s.now); changed {
		s.next.Status.Consent = &c
	}
}

// heard says in a condition and an Event when the decision in the task's spec has no effect, so that whoever gave it does not wait.
func heard(s *scope) {
	kind, list := v1alpha1.DecisionValidCondition, &s.next.Status.Conditions
	if s.room == nil {
		return
	}
	reason, message := consent.Ineffective(s.next, s.proposal())
	if reason == "" {
		meta.RemoveStatusCondition(list, kind)
		return
	}
	if old := meta.FindStatusCondition(*list, kind); old == nil || old.Message != message {
		s.events.Warning("DecisionIgnored", "Decide", "The decision has no effect: "+message)
	}
	s.condition(kind, metav1.ConditionFalse, reason, message)
}

// proposal is what the assignment looks like to the assignee's owner.
func (s *scope) proposal() consent.Proposal {
	return consent.Propose(s.task, consent.Parties{
		Assigner: s.assigner.agent, Assignee: s.assignee.agent, InRoom: s.members.Person,
		InForce: func(string) *v1alpha1.Consent { return consent.InForce(s.consents) },
	})
}

// unresolved gives the consent of a task whose assignee does not exist: there is nobody who could agree, so that the
// schema refuses a claim until the assignee is found. What was decided for a plate stays decided.
func unresolved(t *v1alpha1.Task, plate string, now time.Time) *v1alpha1.TaskConsent {
	old := t.Status.Consent
	if old != nil {
		decided := old.Assignee == plate && (plate != "" || old.State == v1alpha1.ConsentPending)
		if decided || t.Status.State == v1alpha1.TaskDoing || tasks.Terminal(t.Status.State) {
			return old
		}
	}
	return &v1alpha1.TaskConsent{State: v1alpha1.ConsentPending, Assignee: plate, At: metav1.NewTime(now)}
}

// decisions remembers which decision was announced last for each task, so that those that the bridge writes are announced
// as well. It starts empty: what was decided before the process began is not news.
type decisions struct {
	mu   sync.Mutex
	last map[types.NamespacedName]string
}

// news says whether a task's consent was decided since the task was last looked at.
func (d *decisions) news(t *v1alpha1.Task) bool {
	key, now := client.ObjectKeyFromObject(t), decision(t)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		d.last = map[types.NamespacedName]string{}
	}
	before, known := d.last[key]
	if !known || now != "" {
		d.last[key] = now
	}
	return known && now != "" && now != before
}

func (d *decisions) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.last, key)
}

// decision names the decision on a task's proposal, empty when there is none.
func decision(t *v1alpha1.Task) string {
	c := t.Status.Consent
	if c == nil || (c.State != v1alpha1.ConsentAccepted && c.State != v1alpha1.ConsentRejected) {
		return ""
	}
	return fmt.Sprintf("%s/%s/%s/%d", t.UID, c.Assignee, c.State, c.At.Unix())
}

// announce tells of a decision that stands in the task's status.
func (r *Reconciler) announce(t *v1alpha1.Task) {
	if !r.decisions.news(t) {
		return
	}
	metrics.ConsentsDecided.WithLabelValues(string(t.Status.Consent.State)).Inc()
	var q events.Queue
	reason, note := decisionEvent(t.Status.Consent)
	q.Normal(reason, "Decide", note)
	q.Send(r.Events, t)
}

func decisionEvent(c *v1alpha1.TaskConsent) (reason, note string) {
	switch {
	case c.State == v1alpha1.ConsentRejected:
		return "ConsentRejected", fmt.Sprintf("%s rejected the proposal: %s", c.By, orNone(c.Reason))
	case c.Standing:
		return "ConsentAutoAccepted", fmt.Sprintf("The owner's consent for the room (%s) accepted the proposal", c.By)
	default:
		return "ConsentAccepted", fmt.Sprintf("%s accepted the proposal", c.By)
	}
}

func orNone(reason string) string {
	if reason == "" {
		return "no reason given"
	}
	return reason
}
