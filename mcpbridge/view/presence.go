package view

import (
	"cmp"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// InstanceTTL is how long an instance counts as live after its Lease was last seen to change.
const InstanceTTL = 180 * time.Second

// Instance is a running instance of an agent.
type Instance struct {
	// Session names the instance.
	Session string
	// Lease by which it shows that it lives. It must not be changed.
	Lease *coordinationv1.Lease
}

type sighting struct {
	lease *coordinationv1.Lease
	at    time.Time
}

// presence judges who lives by the replica's own clock since it saw a renewal, so that a wrong clock elsewhere kills
// nobody. What was there before the replica started is taken at its word until it should have been renewed again.
type presence struct {
	clock clock.PassiveClock
	mu    sync.RWMutex
	seen  map[string]map[string]sighting
}

func newPresence(clk clock.PassiveClock) *presence {
	return &presence{clock: clk, seen: map[string]map[string]sighting{}}
}

func sessionOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func (p *presence) put(plate string, l *coordinationv1.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[plate] == nil {
		p.seen[plate] = map[string]sighting{}
	}
	session, now := sessionOf(l), p.clock.Now()
	old, known := p.seen[plate][session]
	if known && old.lease.Spec.RenewTime.Equal(l.Spec.RenewTime) {
		now = old.at
	} else if !known && l.Spec.RenewTime != nil && l.Spec.RenewTime.Time.Before(now) {
		now = l.Spec.RenewTime.Time
	}
	p.seen[plate][session] = sighting{lease: l, at: now}
}

func (p *presence) remove(plate string, l *coordinationv1.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.seen[plate], sessionOf(l)); len(p.seen[plate]) == 0 {
		delete(p.seen, plate)
	}
}

func (p *presence) isLive(plate, session string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	s, ok := p.seen[plate][session]
	return ok && p.clock.Since(s.at) < InstanceTTL
}

// count gives how many Leases an agent's instances have, of live ones and of dead ones that are not collected yet.
func (p *presence) count(plate string) int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.seen[plate])
}

func (p *presence) live(plate string) []Instance {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var list []Instance
	for session, s := range p.seen[plate] {
		if p.clock.Since(s.at) < InstanceTTL {
			list = append(list, Instance{Session: session, Lease: s.lease})
		}
	}
	slices.SortFunc(list, func(a, b Instance) int { return cmp.Compare(a.Session, b.Session) })
	return list
}

// Wakeable says whether the instance was listening for pushes when it last renewed.
func (i Instance) Wakeable() bool { return i.Lease.Annotations[v1alpha1.WakeableAnnotation] == "true" }
