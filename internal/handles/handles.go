// Package handles reads the handles by which agents address each other, @name(owner)#session, and finds whom they mean.
package handles

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// MaxLength of a handle in characters: a name, an owner and a session.
const MaxLength = 512

// maxSession is how many characters a session may have.
const maxSession = 64

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
	if s == "" || utf8.RuneCountInString(s) > MaxLength {
		return Handle{}, problem.Invalid(field, form)
	}
	// A name holds neither ( nor #, an owner no parenthesis, and a session may hold anything: so it is read from the left.
	rest := strings.TrimPrefix(s, "@")
	end := strings.IndexAny(rest, "(#")
	if end < 0 {
		end = len(rest)
	}
	h := Handle{Name: rest[:end]}
	rest = rest[end:]
	if strings.HasPrefix(rest, "(") {
		owner, tail, closed := strings.Cut(rest[1:], ")")
		if !closed || owner == "" || strings.Contains(owner, "(") {
			return Handle{}, problem.Invalid(field, form)
		}
		h.Owner, rest = owner, tail
	}
	session, found := strings.CutPrefix(rest, "#")
	switch {
	case h.Name == "" || strings.ContainsAny(h.Name, ") \t\r\n"), rest != "" && !found:
		return Handle{}, problem.Invalid(field, form)
	case found && (session == "" || utf8.RuneCountInString(session) > maxSession):
		return Handle{}, problem.Invalid(field, "names no session behind #: %s", form)
	}
	h.Session = session
	if h.Owner == "" && ids.IsPlate(h.Name) {
		h.Plate, h.Name = h.Name, ""
	}
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
	slices.SortFunc(agents, func(a, b Agent) int {
		return cmp.Or(cmp.Compare(a.Alias(), b.Alias()), cmp.Compare(a.Plate, b.Plate))
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
