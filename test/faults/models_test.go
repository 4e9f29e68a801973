package faults

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// A checker that finds nothing wrong is worth nothing: these histories are right or wrong by what the system promises.

func claim(by string, call, ret int64, outcome string, fence int64) porcupine.Operation {
	return operation(taskOp{kind: "claim", session: by}, call, ret, taskAnswer{outcome: outcome, fence: fence})
}

func act(kind, by string, fence, call, ret int64, outcome string) porcupine.Operation {
	return operation(taskOp{kind: kind, session: by, fence: fence, summary: "s"}, call, ret, taskAnswer{outcome: outcome})
}

func look(call, ret int64, state string, epoch int64, holder string) porcupine.Operation {
	return operation(taskOp{kind: "look"}, call, ret, taskAnswer{outcome: state, fence: epoch, holder: holder})
}

func operation(op taskOp, call, ret int64, a taskAnswer) porcupine.Operation {
	return porcupine.Operation{Input: op, Output: a, Call: call, Return: ret}
}

func TestTheTaskModelTellsRightFromWrong(t *testing.T) {
	for name, c := range map[string]struct {
		right bool
		ops   []porcupine.Operation
	}{
		"one winner":  {true, []porcupine.Operation{claim("a", 0, 9, "ok", 1), claim("b", 1, 8, "lost", 0)}},
		"two winners": {false, []porcupine.Operation{claim("a", 0, 9, "ok", 1), claim("b", 1, 8, "ok", 1)}},
		"a stale loss": {true, []porcupine.Operation{
			claim("a", 0, 1, "ok", 1), act("release", "a", 1, 2, 3, "ok"), claim("b", 4, 5, "lost", 0),
		}},
		"won again under the same fence":    {true, []porcupine.Operation{claim("a", 0, 1, "ok", 1), claim("a", 2, 3, "ok", 1)}},
		"a fence that does not rise":        {false, []porcupine.Operation{claim("a", 0, 1, "ok", 1), act("release", "a", 1, 2, 3, "ok"), claim("b", 4, 5, "ok", 1)}},
		"won after expiry":                  {true, []porcupine.Operation{claim("a", 0, 1, "ok", 1), claim("b", 2, 3, "ok", 3)}},
		"renewed after another has won":     {false, []porcupine.Operation{claim("a", 0, 1, "ok", 1), claim("b", 2, 3, "ok", 3), act("renew", "a", 1, 4, 5, "ok")}},
		"renewed while another wins":        {true, []porcupine.Operation{claim("a", 0, 1, "ok", 1), claim("b", 2, 5, "ok", 3), act("renew", "a", 1, 3, 6, "ok")}},
		"renewed after it was seen open":    {false, []porcupine.Operation{claim("a", 0, 1, "ok", 1), look(2, 3, "todo", 2, ""), act("renew", "a", 1, 4, 5, "ok")}},
		"held after it was told lost":       {false, []porcupine.Operation{claim("a", 0, 1, "ok", 1), act("renew", "a", 1, 2, 3, "lost"), look(4, 5, "doing", 1, "a")}},
		"a claim that nobody was told of":   {true, []porcupine.Operation{claim("a", 0, never, "unknown", 0), look(4, 5, "doing", 1, "a")}},
		"a claim that never came":           {true, []porcupine.Operation{claim("a", 0, never, "unknown", 0), look(4, 5, "todo", 0, "")}},
		"an acknowledged claim is lost":     {false, []porcupine.Operation{claim("a", 0, 1, "ok", 1), look(4, 5, "todo", 0, "")}},
		"an acknowledged finish is lost":    {false, []porcupine.Operation{claim("a", 0, 1, "ok", 1), act("done", "a", 1, 2, 3, "ok"), look(4, 5, "doing", 1, "a")}},
		"a late finish":                     {true, []porcupine.Operation{claim("a", 0, 1, "ok", 1), look(2, 3, "todo", 2, ""), act("done", "a", 1, 4, 5, "ok")}},
		"a late finish after another claim": {false, []porcupine.Operation{claim("a", 0, 1, "ok", 1), claim("b", 2, 3, "ok", 3), act("done", "a", 1, 4, 5, "ok")}},
		"finished twice with one word":      {true, []porcupine.Operation{claim("a", 0, 1, "ok", 1), act("done", "a", 1, 2, never, "unknown"), act("done", "a", 1, 4, 5, "ok")}},
		"a release that nobody was told of": {true, []porcupine.Operation{
			claim("a", 0, 1, "ok", 1), act("release", "a", 1, 2, never, "unknown"), claim("b", 4, 5, "ok", 3), act("release", "a", 1, 6, 7, "lost"),
		}},
		"a release that did not happen": {false, []porcupine.Operation{claim("a", 0, 1, "ok", 1), act("release", "a", 1, 2, 3, "ok"), look(4, 5, "doing", 1, "a")}},
	} {
		if got := porcupine.CheckOperations(taskModel.ToModel(), c.ops); got != c.right {
			t.Errorf("%s: the model says %v, want %v", name, got, c.right)
		}
	}
}

func TestTheLogModelTellsRightFromWrong(t *testing.T) {
	at := func(seq, call, ret int64) porcupine.Operation {
		return porcupine.Operation{Input: appended{seq}, Call: call, Return: ret}
	}
	for name, c := range map[string]struct {
		right bool
		ops   []porcupine.Operation
	}{
		"in order":                      {true, []porcupine.Operation{at(1, 0, 1), at(2, 2, 3)}},
		"at once":                       {true, []porcupine.Operation{at(2, 0, 5), at(1, 1, 6)}},
		"against the order of asking":   {false, []porcupine.Operation{at(2, 0, 1), at(1, 2, 3)}},
		"a gap":                         {false, []porcupine.Operation{at(1, 0, 1), at(3, 2, 3)}},
		"one seq given twice":           {false, []porcupine.Operation{at(1, 0, 1), at(1, 2, 3)}},
		"one whose sender was not told": {true, []porcupine.Operation{at(1, 0, never), at(2, 2, 3)}},
	} {
		if got := porcupine.CheckOperations(logModel, c.ops); got != c.right {
			t.Errorf("%s: the model says %v, want %v", name, got, c.right)
		}
	}
}

func TestTheMentionModelTellsRightFromWrong(t *testing.T) {
	op := func(kind string, call, ret int64, told bool) porcupine.Operation {
		return porcupine.Operation{Input: mentionOp{kind: kind}, Call: call, Return: ret, Output: told}
	}
	for name, c := range map[string]struct {
		right bool
		ops   []porcupine.Operation
	}{
		"given, then acknowledged":           {true, []porcupine.Operation{op("given", 0, 1, true), op("ack", 2, 3, true)}},
		"given twice before":                 {true, []porcupine.Operation{op("given", 0, 1, true), op("given", 2, 3, true), op("ack", 4, 5, true)}},
		"given after":                        {false, []porcupine.Operation{op("ack", 2, 3, true), op("given", 4, 5, true)}},
		"given while it is acknowledged":     {true, []porcupine.Operation{op("ack", 2, 5, true), op("given", 4, 6, true)}},
		"given after a word that got lost":   {true, []porcupine.Operation{op("ack", 2, never, false), op("given", 4, 6, true)}},
		"given after a repeated acknowledge": {false, []porcupine.Operation{op("ack", 2, never, false), op("ack", 3, 4, true), op("given", 5, 6, true)}},
	} {
		if got := porcupine.CheckOperations(mentionModel.ToModel(), c.ops); got != c.right {
			t.Errorf("%s: the model says %v, want %v", name, got, c.right)
		}
	}
}
