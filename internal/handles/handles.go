// Package handles reads the handles by which agents address each other, @name(owner)#session, and finds whom they mean.
package handles

import (
	"sort"
	"strings"

	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// MaxLength of a handle in characters: a name, an owner and a session.
const MaxLength = 512

// Handle is what a handle says. Either Plate or Name is set.
type Handle struct {
	// Plate of the agent, when the handle is one.
	Plate string
	// Name is the alias.
	Name string
	// Owner narrows the alias to one person's agents. It may be empty.
	Owner string
	// Session names one instance. It may be empty.
	Session string
}

// Agent is somebody a handle may mean.
type Agent struct {
	// Plate of the agent.
	Plate string
	// Name is its display name.
	Name string
	// Owner is the person it works for.
	Owner string
}

// Alias gives the handle that means an agent and, within a room, rarely anybody else.
func (a Agent) Alias() string { return Alias(a.Name, a.Owner) }

// Alias gives the handle of a name and its owner.
func Alias(name, owner string) string { return "@" + name + "(" + owner + ")" }

// Parse reads a handle: a plate or an alias, with or without a leading @, an owner in parentheses, and a session behind #.
// The problem it returns names the field.
func Parse(field, s string) (Handle, *problem.Problem) {
	const form = "must be a plate (BRNL-AGT-…) or an alias such as @name(owner) or @name(owner)#session"
	if s == "" || len(s) > MaxLength {
		return Handle{}, problem.Invalid(field, form)
	}
	rest, h := strings.TrimPrefix(s, "@"), Handle{}
	// The owner may hold a #, so the session is what stands behind the closing parenthesis, if there is one.
	tail := max(strings.LastIndex(rest, ")"), 0)
	if i := strings.Index(rest[tail:], "#"); i >= 0 {
		h.Session, rest = rest[tail+i+1:], rest[:tail+i]
		if h.Session == "" || len(h.Session) > 64 {
			return Handle{}, problem.Invalid(field, "names no session behind #: %s", form)
		}
	}
	if ids.IsPlate(rest) {
		h.Plate = rest
		return h, nil
	}
	name, owner, found := strings.Cut(rest, "(")
	if found {
		var closed bool
		owner, closed = strings.CutSuffix(owner, ")")
		if !closed || owner == "" || strings.ContainsAny(owner, "()") {
			return Handle{}, problem.Invalid(field, form)
		}
	}
	if name == "" || strings.ContainsAny(name, ")# \t\r\n") {
		return Handle{}, problem.Invalid(field, form)
	}
	h.Name, h.Owner = name, owner
	return h, nil
}

// Match gives the agents that a handle may mean, in the order of their aliases.
func Match(h Handle, agents []Agent) []Agent {
	var found []Agent
	for _, a := range agents {
		switch {
		case h.Plate != "":
			if a.Plate == h.Plate {
				found = append(found, a)
			}
		case a.Name == h.Name && (h.Owner == "" || a.Owner == h.Owner):
			found = append(found, a)
		}
	}
	sortAgents(found)
	return found
}

func sortAgents(agents []Agent) {
	sort.Slice(agents, func(i, j int) bool {
		if x, y := agents[i].Alias(), agents[j].Alias(); x != y {
			return x < y
		}
		return agents[i].Plate < agents[j].Plate
	})
}

// maxCandidates that a problem lists.
const maxCandidates = 20

// Resolve finds the one agent of a room that a handle means. Nobody and several are problems that list the candidates.
func Resolve(field, s string, members []Agent) (Agent, Handle, *problem.Problem) {
	h, p := Parse(field, s)
	if p != nil {
		return Agent{}, Handle{}, p
	}
	found := Match(h, members)
	switch len(found) {
	case 1:
		return found[0], h, nil
	case 0:
		all := append([]Agent(nil), members...)
		sortAgents(all)
		return Agent{}, h, problem.Invalid(field, "names nobody in this room: %q", s).
			WithCandidates(names(all, false)).
			WithHint("use one of candidates, or ask a room admin to add the agent")
	default:
		return Agent{}, h, problem.Invalid(field, "could mean several agents of this room: %q", s).
			WithCandidates(names(found, true)).
			WithHint("name one of candidates: the owner in parentheses, or the plate")
	}
}

// names lists aliases, or plates where an alias would still mean several.
func names(agents []Agent, unique bool) []string {
	count := map[string]int{}
	for _, a := range agents {
		count[a.Alias()]++
	}
	var out []string
	for _, a := range agents {
		if len(out) == maxCandidates {
			break
		}
		if unique && count[a.Alias()] > 1 {
			out = append(out, a.Plate)
			continue
		}
		out = append(out, a.Alias())
	}
	return out
}
