package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/agentrooms/agentrooms/test/harness"
)

// What comes of a call.
const (
	told    = "told"    // the tool answered, with a result or an error that is its last word
	unsent  = "unsent"  // nobody can have carried it out
	unknown = "unknown" // it may have been carried out, or may be yet
)

const (
	// callTimeout is how long a client waits for an answer.
	callTimeout = 15 * time.Second
	// patience is how long a client goes on asking before the test takes the system for dead.
	patience = time.Minute
)

// instance is one of an agent that calls any replica, as behind a load balancer.
type instance struct {
	load    *load
	id      int
	agent   string
	session string
	lives   []string // the sessions that it has been
	links   []*harness.Session
	random  *rand.Rand
	count   int
	holding *holding
}

// holding is a task that the client was told it holds.
type holding struct {
	task  string
	fence int64
}

// wasTold is what a tool answered.
type wasTold struct {
	result json.RawMessage
	err    *harness.Error
	by     int // replica
}

// calls counts what became of all calls.
type calls struct{ told, unsent, unknown atomic.Int64 }

// once calls a tool at a random replica.
func (c *instance) once(tool string, args harness.Args) (wasTold, string) {
	return c.at(c.random.IntN(len(c.links)), tool, args)
}

// at calls a tool at a replica.
func (c *instance) at(replica int, tool string, args harness.Args) (wasTold, string) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if _, given := args["session_id"]; !given {
		args["session_id"] = c.session
	}
	r, err := c.links[replica].Do(ctx, tool, args)
	outcome := c.judge(tool, r, err)
	switch outcome {
	case told:
		c.load.calls.told.Add(1)
		return wasTold{r.Raw, r.Err, replica}, outcome
	case unsent:
		c.load.calls.unsent.Add(1)
	default:
		c.load.calls.unknown.Add(1)
	}
	return wasTold{by: replica}, outcome
}

// judge says what is known of a call. That a token is bad, or that something broke inside the bridge, may never be said.
func (c *instance) judge(tool string, r *harness.Result, err error) string {
	var unauthorized *transport.AuthorizationRequiredError
	switch {
	case errors.As(err, &unauthorized):
		c.load.complain("%s was refused for a token that is good: %v", tool, err)
		return unsent
	case errors.Is(err, syscall.ECONNREFUSED), err != nil && strings.Contains(err.Error(), "status 503"):
		return unsent
	case err != nil:
		c.load.note(tool, err.Error())
		return unknown
	case r.Err == nil:
		return told
	case r.Err.Code == "INTERNAL":
		c.load.complain("%s: %v: %s", tool, r.Err.Code, incident(r.Err.Message))
		return unknown
	case r.Err.Retryable:
		c.load.note(tool, r.Err.String())
		return unknown
	}
	return told
}

var incidentID = regexp.MustCompile(`incident (\w+)`)

// incident gives what the bridges' logs say of what they told a client as a mere number.
func incident(message string) string {
	id := incidentID.FindStringSubmatch(message)
	logs, err := filepath.Glob(filepath.Join(plane.DataDir, "logs", "bridge-*.log"))
	if id == nil || err != nil {
		return message
	}
	for _, name := range logs {
		raw, _ := os.ReadFile(name)
		for line := range strings.Lines(string(raw)) {
			var entry struct{ Incident, Error, Panic, Stack string }
			if strings.Contains(line, id[1]) && json.Unmarshal([]byte(line), &entry) == nil {
				return entry.Error + entry.Panic + entry.Stack
			}
		}
	}
	return message
}

// until calls a tool at any replica until it is told something. It is for calls that may be repeated.
func (c *instance) until(tool string, args harness.Args) (wasTold, bool) {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if answer, outcome := c.once(tool, args); outcome == told {
			return answer, true
		}
		c.pause()
	}
	c.load.complain("%s was not answered in %s", tool, patience)
	return wasTold{}, false
}

// pause before asking again: some 150 ms, so that clients do not march in step.
func (c *instance) pause() {
	timer := time.NewTimer(time.Duration(50+c.random.IntN(200)) * time.Millisecond)
	defer timer.Stop()
	<-timer.C
}

// next gives a name that no other client and no other step of this one uses.
func (c *instance) next(what string) string {
	c.count++
	return fmt.Sprintf("%s-%d-%d", what, c.id, c.count)
}

// die makes the client somebody new: what its former self held runs out.
func (c *instance) die() {
	c.holding = nil
	c.session = fmt.Sprintf("%s-%d-life%d", c.agent, c.id, len(c.lives)+1)
	c.lives = append(c.lives, c.session)
}

// holder gives how the client is called as the holder of a task.
func (c *instance) holder() string { return c.load.world.Plates[c.agent] + "/" + c.session }

func into[T any](raw json.RawMessage) (v T) {
	if err := json.Unmarshal(raw, &v); err != nil {
		panic(fmt.Sprintf("reading %s: %v", raw, err))
	}
	return v
}
