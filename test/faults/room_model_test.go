package faults

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// appended is a message that stands in the log at a seq.
type appended struct{ seq int64 }

// logModel says where an append may come: right behind the last message, and nowhere else. So seqs have no gap, none is
// given twice, and whoever was answered stands before whoever asked later.
var logModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		seq := input.(appended).seq
		return seq == state.(int64)+1, seq
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("append at %d", input.(appended).seq) },
}

// mentionOp is what happens to a mention: it is given to an instance, or acknowledged.
type mentionOp struct {
	kind    string // given, ack
	session string
}

// mentionModel says that an acknowledged mention is never given to anybody again. The output is false when the outcome of
// an acknowledgement is not known.
var mentionModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{false} },
	Step: func(state, input, output any) []any {
		acked, op, known := state.(bool), input.(mentionOp), output.(bool)
		switch {
		case op.kind == "ack" && known:
			return []any{true}
		case op.kind == "ack":
			return []any{acked, true}
		case acked:
			return nil
		}
		return []any{false}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v (told: %v)", input, output) },
	DescribeState:     func(state any) string { return fmt.Sprintf("acknowledged: %v", state) },
}
