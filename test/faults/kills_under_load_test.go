package faults

import (
	"testing"
	"time"
)

// TestNothingAcknowledgedIsLostOrDoubledWhenPartsAreKilled lets agents work while bridges, the manager, the API server, etcd
// and all of them are killed at random, and then holds what they were told against what is there.
func TestNothingAcknowledgedIsLostOrDoubledWhenPartsAreKilled(t *testing.T) {
	t.Logf("seed %d", seed)
	l := startLoad(t)
	k := newKiller(t, l.connect(len(l.clients)))
	for began := time.Now(); time.Since(began) < duration(t); {
		k.rest(4000)
		k.next()
	}
	l.finishSteps()
	awaitReady(t)
	l.drain()
	l.lookAtTasks()
	l.tell()
	for _, check := range []func(){l.checkTasks, l.checkExpiries, l.checkLog, l.checkMentions, l.checkInboxes, l.checkObjects} {
		check()
	}
	l.report(k)
}
