package board

import (
	"html/template"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/deps"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
)

// maxCards that are kept, over all rooms.
const maxCards = 20_000

// cardView is a task as a board shows it.
type cardView struct {
	ID, Title, State, Type string
	Priority               int32
	// Consent is set while the task waits for its assignee's owner, or was refused.
	Consent string
	// Open are the tasks that this one waits for.
	Open int
	// Holder of the task, and until when. Stale is true when the lease ran out and the task stays with its holder.
	Holder string
	Until  time.Time
	Stale  bool
	Reason string
	// Edit says whether the person may move the card.
	Edit bool
}

// card is the HTML of a task on a board, for those who may or may not move it.
type card struct {
	task     *v1alpha1.Task
	lease    *coordinationv1.Lease
	standing int64
	html     template.HTML
}

type cardKey struct {
	uid  types.UID
	edit bool
}

// cards keeps the HTML of what was shown. All pages that show a task share it.
type cards struct {
	mu    sync.RWMutex
	known map[cardKey]*card
}

func newCards() *cards { return &cards{known: map[cardKey]*card{}} }

func (c *cards) get(k cardKey) *card {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.known[k]
}

func (c *cards) put(k cardKey, made *card) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCards {
		clear(c.known)
	}
	c.known[k] = made
}

// card gives a task of a room as a part of a board. It is made anew when the task, its lease, or what else counts for it has
// changed, and each time when it waits for other tasks.
func (b *Board) card(a *access, task *v1alpha1.Task) (part, error) {
	key, standing := cardKey{task.UID, a.may.Edit}, b.view.Standing()
	lease, _ := b.view.TaskLease(task)
	id := "t-" + ids.ID(task)
	if known := b.cards.get(key); known != nil && known.task == task && known.lease == lease && known.standing == standing {
		return part{id, known.html}, nil
	}
	html, err := b.fragment("card", b.cardView(a, task))
	if err != nil {
		return part{}, err
	}
	if len(task.Spec.DependsOn) == 0 {
		b.cards.put(key, &card{task: task, lease: lease, standing: standing, html: html})
	}
	return part{id, html}, nil
}

func (b *Board) cardView(a *access, task *v1alpha1.Task) cardView {
	v := cardView{
		ID: ids.ID(task), Title: task.Spec.Title, State: string(task.Status.State), Type: task.Spec.Type,
		Priority: task.Spec.Priority, Reason: task.Status.Reason, Edit: a.may.Edit,
	}
	if c := b.consentOf(a.room, task); c.State == v1alpha1.ConsentPending || c.State == v1alpha1.ConsentRejected {
		v.Consent = string(c.State)
	}
	if len(task.Spec.DependsOn) > 0 {
		v.Open = len(deps.Open(task, b.lookup(task.Namespace)))
	}
	if claim := task.Status.Claim; claim != nil {
		v.Holder, v.Until, v.Stale = b.holderName(claim), b.until(a.room, task), stale(task)
	}
	return v
}

func stale(task *v1alpha1.Task) bool {
	return meta.IsStatusConditionPresentAndEqual(task.Status.Conditions, v1alpha1.LeaseLiveCondition, metav1.ConditionFalse)
}

// consentOf gives the consent to a task as it stands now.
func (b *Board) consentOf(room *v1alpha1.Room, task *v1alpha1.Task) v1alpha1.TaskConsent {
	settled, _ := consent.Settle(task, b.view.Proposal(room, task), b.clock.Now())
	return settled
}

func (b *Board) lookup(namespace string) deps.Lookup {
	return func(name string) (*v1alpha1.Task, bool) { return b.view.Task(namespace, name) }
}

// until gives when a claim ends unless it is renewed, by the clock of whoever renewed it, so that all replicas say the same.
// It is for people to look at, and decides nothing.
func (b *Board) until(room *v1alpha1.Room, task *v1alpha1.Task) time.Time {
	at := task.Status.Claim.AcquiredAt.Add(leases.Duration(task, room))
	if l, ok := b.view.TaskLease(task); ok && leases.Current(l, task) {
		at = leases.ExpiresAt(l)
	}
	return at.Truncate(time.Second)
}

func (b *Board) holderName(claim *v1alpha1.TaskClaim) string {
	name := b.alias(claim.Holder)
	if claim.Session != "" {
		name += "#" + claim.Session
	}
	return name
}

// alias gives how an agent is called, by its plate; what is no plate of a known agent is given back.
func (b *Board) alias(plate string) string {
	if agent, ok := b.view.AgentByPlate(plate); ok {
		return handles.Alias(agent.Spec.DisplayName, agent.Spec.Owner)
	}
	return plate
}

// whoName gives how the creator or assigner of a task is called.
func (b *Board) whoName(by *v1alpha1.TaskCreator) string {
	switch {
	case by == nil:
		return "somebody"
	case by.User != "":
		return by.User
	default:
		return b.alias(by.Plate)
	}
}

// byName gives how history calls somebody: a plate, perhaps with a session behind it, is shown by its alias.
func (b *Board) byName(by string) string {
	plate, session, found := strings.Cut(by, "/")
	if !ids.IsPlate(plate) {
		return by
	}
	if found {
		return b.alias(plate) + "#" + session
	}
	return b.alias(plate)
}

// newestFirst compares tasks by when something last happened to them.
func newestFirst(at func(*v1alpha1.Task) time.Time) func(x, y *v1alpha1.Task) int {
	return func(x, y *v1alpha1.Task) int {
		if c := at(y).Compare(at(x)); c != 0 {
			return c
		}
		return strings.Compare(x.Name, y.Name)
	}
}

// sorted gives a sorted copy.
func sorted[T any](list []T, by func(x, y T) int) []T {
	list = slices.Clone(list)
	slices.SortFunc(list, by)
	return list
}
