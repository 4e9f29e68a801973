package view

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// View is what the replica sees. It is safe for concurrent use.
type View struct {
	// Book holds the rooms' logs.
	Book *roomlog.Book
	// Hub tells of changes.
	Hub *Hub

	clock    clock.PassiveClock
	rooms    *objects[*v1alpha1.Room]
	agents   *objects[*v1alpha1.Agent]
	tasks    *objects[*v1alpha1.Task]
	consents *objects[*v1alpha1.Consent]
	inboxes  *objects[*v1alpha1.Inbox]
	files    *objects[*v1alpha1.File]
	leases   *objects[*coordinationv1.Lease]
	presence *presence
	lag      *lag
	progress progress
	behind   func() bool
	expiry   leases.Observer

	mu        sync.RWMutex
	roomByID  map[string]types.NamespacedName
	chains    map[roomlog.Key]string
	taskByID  map[string]types.NamespacedName
	boards    map[types.NamespacedName]map[string]*v1alpha1.Task
	held      map[string]map[types.NamespacedName]bool
	consentOf map[consentKey]map[string]*v1alpha1.Consent
	fileIndex fileIndex

	membersMu      sync.Mutex
	membersVersion atomic.Int64
	members        atomic.Pointer[roster]
}

type consentKey struct{ namespace, room, owner string }

// New makes an empty View. onLag, which may be nil, is told how long an own write took to come back by the watch.
func New(clk clock.PassiveClock, onLag func(time.Duration)) *View {
	v := &View{
		Hub: newHub(), clock: clk, presence: newPresence(clk), lag: newLag(clk, onLag),
		roomByID: map[string]types.NamespacedName{}, chains: map[roomlog.Key]string{},
		taskByID: map[string]types.NamespacedName{}, boards: map[types.NamespacedName]map[string]*v1alpha1.Task{},
		held: map[string]map[types.NamespacedName]bool{}, consentOf: map[consentKey]map[string]*v1alpha1.Consent{},
		fileIndex: newFileIndex(),
	}
	v.progress.seen = map[string]string{}
	v.Book = roomlog.NewBook(v.onBatch)
	v.rooms = newObjects(v.onRoom)
	v.agents = newObjects(v.onAgent)
	v.tasks = newObjects(v.onTask)
	v.consents = newObjects(v.onConsent)
	v.inboxes = newObjects(v.onInbox)
	v.files = newObjects(v.onFile)
	v.leases = newObjects(v.onLease)
	return v
}

// Wrote takes in the API server's answer to a write of this replica.
func (v *View) Wrote(obj any) {
	switch o := obj.(type) {
	case *v1alpha1.Task:
		// What the watch has shown already is not waited for.
		if known, ok := v.tasks.get(o.Namespace, o.Name); !ok || newer(o, known) {
			v.lag.wrote(o)
		}
		v.tasks.put(o)
	case *v1alpha1.Consent:
		v.consents.put(o)
	case *v1alpha1.Inbox:
		v.inboxes.put(o)
	case *v1alpha1.File:
		v.files.put(o)
	case *coordinationv1.Lease:
		v.leases.put(o)
	}
}

// Saw takes in what a watch or a read of the API server showed.
func (v *View) Saw(obj any) {
	switch o := obj.(type) {
	case *v1alpha1.Room:
		v.rooms.put(o)
	case *v1alpha1.Agent:
		v.agents.put(o)
	case *v1alpha1.Task:
		v.tasks.put(o)
		v.lag.saw(o)
	case *v1alpha1.Consent:
		v.consents.put(o)
	case *v1alpha1.Inbox:
		v.inboxes.put(o)
	case *v1alpha1.File:
		v.files.put(o)
	case *v1alpha1.MessageBatch:
		v.Book.Apply(o)
	case *coordinationv1.Lease:
		v.leases.put(o)
	}
}

// Gone takes in that a watch showed a deletion.
func (v *View) Gone(obj any) {
	switch o := obj.(type) {
	case *v1alpha1.Room:
		v.rooms.remove(o)
	case *v1alpha1.Agent:
		v.agents.remove(o)
	case *v1alpha1.Task:
		v.lag.forget(o)
		v.tasks.remove(o)
	case *v1alpha1.Consent:
		v.consents.remove(o)
	case *v1alpha1.Inbox:
		v.inboxes.remove(o)
	case *v1alpha1.File:
		v.files.remove(o)
	case *v1alpha1.MessageBatch:
		v.Book.Forget(o)
	case *coordinationv1.Lease:
		v.leases.remove(o)
	}
}

func (v *View) onBatch(k roomlog.Key, batch *v1alpha1.MessageBatch) {
	plates := map[string]bool{}
	for i := range batch.Spec.Messages {
		for _, m := range batch.Spec.Messages[i].Mentions {
			plates[m.Plate] = true
		}
	}
	for plate := range plates {
		v.Hub.publish(InboxTopic(plate))
	}
	v.mu.RLock()
	room, known := v.chains[k]
	v.mu.RUnlock()
	if known {
		v.Hub.publish(LogTopic(room))
	}
}

func (v *View) onRoom(old, next *v1alpha1.Room) {
	v.mu.Lock()
	if old != nil {
		if k := keyOf(old); v.roomByID[ids.ID(old)] == k {
			delete(v.roomByID, ids.ID(old))
		}
		delete(v.chains, roomlog.KeyOf(old))
	}
	if next != nil {
		claimID(v.roomByID, ids.ID(next), ids.NaturalID(next), keyOf(next))
		v.chains[roomlog.KeyOf(next)] = ids.ID(next)
	}
	v.mu.Unlock()
	if old != nil && (next == nil || next.UID != old.UID) {
		v.Book.Drop(roomlog.KeyOf(old))
	}
	if next != nil {
		v.Book.Saw(next)
	}
	v.Hub.publish(RoomsTopic)
	if old == nil || next == nil || old.Generation != next.Generation || old.UID != next.UID {
		v.dropMembership()
		v.Hub.publish(MembersTopic)
	}
}

// claimID enters an object under its id. One that has the id by nature keeps it against one that an annotation gives it.
func claimID(index map[string]types.NamespacedName, id, natural string, k types.NamespacedName) {
	if holder, taken := index[id]; taken && holder != k && id != natural {
		return
	}
	index[id] = k
}

func (v *View) onAgent(old, next *v1alpha1.Agent) {
	if old == nil || next == nil || old.Generation != next.Generation || old.UID != next.UID {
		v.dropMembership()
		v.Hub.publish(MembersTopic)
	}
}

func (v *View) onTask(old, next *v1alpha1.Task) {
	v.mu.Lock()
	if old != nil {
		v.unindexTask(old)
	}
	if next != nil {
		v.indexTask(next)
	}
	v.mu.Unlock()
	touched := next
	if next == nil {
		touched = old
	}
	if room, ok := v.rooms.get(touched.Namespace, touched.Spec.RoomRef.Name); ok {
		v.Hub.publish(BoardTopic(ids.ID(room)))
	}
	if old == nil {
		v.Hub.publish(TasksTopic)
	}
}

func (v *View) unindexTask(t *v1alpha1.Task) {
	k := keyOf(t)
	if v.taskByID[ids.ID(t)] == k {
		delete(v.taskByID, ids.ID(t))
	}
	board := types.NamespacedName{Namespace: t.Namespace, Name: t.Spec.RoomRef.Name}
	if delete(v.boards[board], t.Name); len(v.boards[board]) == 0 {
		delete(v.boards, board)
	}
	if c := t.Status.Claim; c != nil {
		instance := c.Holder + "/" + c.Session
		if delete(v.held[instance], k); len(v.held[instance]) == 0 {
			delete(v.held, instance)
		}
	}
}

func (v *View) indexTask(t *v1alpha1.Task) {
	k := keyOf(t)
	claimID(v.taskByID, ids.ID(t), ids.NaturalID(t), k)
	board := types.NamespacedName{Namespace: t.Namespace, Name: t.Spec.RoomRef.Name}
	if v.boards[board] == nil {
		v.boards[board] = map[string]*v1alpha1.Task{}
	}
	v.boards[board][t.Name] = t
	if c := t.Status.Claim; c != nil {
		instance := c.Holder + "/" + c.Session
		if v.held[instance] == nil {
			v.held[instance] = map[types.NamespacedName]bool{}
		}
		v.held[instance][k] = true
	}
}

func (v *View) onConsent(old, next *v1alpha1.Consent) {
	defer v.Hub.publish(ConsentsTopic)
	v.mu.Lock()
	defer v.mu.Unlock()
	if old != nil {
		k := consentKey{old.Namespace, old.Spec.RoomRef.Name, old.Spec.Owner}
		if delete(v.consentOf[k], old.Name); len(v.consentOf[k]) == 0 {
			delete(v.consentOf, k)
		}
	}
	if next != nil {
		k := consentKey{next.Namespace, next.Spec.RoomRef.Name, next.Spec.Owner}
		if v.consentOf[k] == nil {
			v.consentOf[k] = map[string]*v1alpha1.Consent{}
		}
		v.consentOf[k][next.Name] = next
	}
}

func (v *View) onInbox(_, next *v1alpha1.Inbox) {
	if next != nil {
		v.Hub.publish(InboxTopic(next.Spec.Plate))
	}
}

func (v *View) onLease(old, next *coordinationv1.Lease) {
	l := next
	if next == nil {
		l = old
	}
	if l.Labels[v1alpha1.TaskLabel] != "" {
		if next == nil {
			v.expiry.Forget(keyOf(l).String())
		} else {
			v.expiry.Remaining(keyOf(l).String(), next, v.clock.Now())
		}
		v.publishLease(l)
	}
	if plate := l.Labels[v1alpha1.InstanceLabel]; plate != "" {
		if next == nil {
			v.presence.remove(plate, l)
		} else {
			v.presence.put(plate, next)
		}
		if old == nil || next == nil || !maps.Equal(old.Annotations, next.Annotations) {
			v.Hub.publish(PresenceTopic)
		}
	}
}

// publishLease tells of the Lease of a task.
func (v *View) publishLease(l *coordinationv1.Lease) {
	task, ok := v.tasks.get(l.Namespace, l.Labels[v1alpha1.TaskLabel])
	if !ok {
		return
	}
	if room, ok := v.rooms.get(task.Namespace, task.Spec.RoomRef.Name); ok {
		v.Hub.publish(LeasesTopic(ids.ID(room)))
	}
}

// RoomByID finds a room by its id.
func (v *View) RoomByID(id string) (*v1alpha1.Room, bool) {
	v.mu.RLock()
	k, ok := v.roomByID[id]
	v.mu.RUnlock()
	if !ok {
		return nil, false
	}
	return v.rooms.get(k.Namespace, k.Name)
}

// Room finds a room by namespace and name.
func (v *View) Room(namespace, name string) (*v1alpha1.Room, bool) {
	return v.rooms.get(namespace, name)
}

// Rooms gives all rooms in no order.
func (v *View) Rooms() []*v1alpha1.Room { return v.rooms.all() }

// Agents gives all agents in no order.
func (v *View) Agents() []*v1alpha1.Agent { return v.agents.all() }

// TaskByID finds a task by its id.
func (v *View) TaskByID(id string) (*v1alpha1.Task, bool) {
	v.mu.RLock()
	k, ok := v.taskByID[id]
	v.mu.RUnlock()
	if !ok {
		return nil, false
	}
	return v.tasks.get(k.Namespace, k.Name)
}

// Task finds a task by namespace and name.
func (v *View) Task(namespace, name string) (*v1alpha1.Task, bool) {
	return v.tasks.get(namespace, name)
}

// Tasks gives the tasks of a room in no order.
func (v *View) Tasks(room *v1alpha1.Room) []*v1alpha1.Task {
	v.mu.RLock()
	defer v.mu.RUnlock()
	board := v.boards[keyOf(room)]
	list := make([]*v1alpha1.Task, 0, len(board))
	for _, t := range board {
		list = append(list, t)
	}
	return list
}

// HeldBy gives the tasks that an instance holds, as far as the view knows.
func (v *View) HeldBy(plate, session string) []*v1alpha1.Task {
	v.mu.RLock()
	keys := make([]types.NamespacedName, 0, len(v.held[plate+"/"+session]))
	for k := range v.held[plate+"/"+session] {
		keys = append(keys, k)
	}
	v.mu.RUnlock()
	var list []*v1alpha1.Task
	for _, k := range keys {
		if t, ok := v.tasks.get(k.Namespace, k.Name); ok {
			list = append(list, t)
		}
	}
	return list
}

// Consent gives the Consent of an owner that is in force in a room, nil when there is none.
func (v *View) Consent(room *v1alpha1.Room, owner string) *v1alpha1.Consent {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var all []*v1alpha1.Consent
	for _, c := range v.consentOf[consentKey{room.Namespace, room.Name, owner}] {
		all = append(all, c)
	}
	return consent.InForce(all)
}

// Inbox gives the Inbox of an agent in a room.
func (v *View) Inbox(room *v1alpha1.Room, plate string) (*v1alpha1.Inbox, bool) {
	return v.inboxes.get(room.Namespace, ids.InboxName(room.Name, room.UID, plate))
}

// TaskLease gives the Lease of a task.
func (v *View) TaskLease(t *v1alpha1.Task) (*coordinationv1.Lease, bool) {
	return v.leases.get(t.Namespace, ids.LeaseName(t.Name))
}

// LeaseRemaining gives how long the Lease of a task lasts: by this replica's clock since it saw the last renewal, as
// whoever renewed may have a clock that is wrong. What the Lease itself says shortens it where it makes sense: this replica
// may have seen the renewal late.
func (v *View) LeaseRemaining(l *coordinationv1.Lease) time.Duration {
	now := v.clock.Now()
	seen := v.expiry.Remaining(keyOf(l).String(), l, now)
	if said := leases.ExpiresAt(l).Sub(now); said > 0 {
		return min(seen, said)
	}
	return seen
}

// InstanceLease gives the Lease by which an instance shows that it lives.
func (v *View) InstanceLease(namespace, plate, session string) (*coordinationv1.Lease, bool) {
	return v.leases.get(namespace, ids.InstanceLeaseName(plate, session))
}

// Instances gives the live instances of an agent, by session.
func (v *View) Instances(plate string) []Instance { return v.presence.live(plate) }

// InstanceCount gives how many Leases the instances of an agent have, live or not collected yet.
func (v *View) InstanceCount(plate string) int { return v.presence.count(plate) }

// Live says whether an instance shows signs of life.
func (v *View) Live(plate, session string) bool { return v.presence.isLive(plate, session) }

// Log gives the log of a room.
func (v *View) Log(room *v1alpha1.Room) *roomlog.Log { return v.Book.Log(roomlog.KeyOf(room)) }

// Sizes counts what the view holds, by kind.
func (v *View) Sizes() map[string]int {
	return map[string]int{
		"rooms": v.rooms.len(), "agents": v.agents.len(), "tasks": v.tasks.len(), "consents": v.consents.len(),
		"inboxes": v.inboxes.len(), "files": v.files.len(), "leases": v.leases.len(),
	}
}

// TaskCount counts the tasks of a room, archived ones too.
func (v *View) TaskCount(room *v1alpha1.Room) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.boards[keyOf(room)])
}
