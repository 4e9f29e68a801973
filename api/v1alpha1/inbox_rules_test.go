package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rules on how an Inbox may change. The last step is judged, those before it must be accepted.
func TestRulesOfAnInbox(t *testing.T) {
	c := server(t)
	const (
		acked     = "status.ackedThrough may not go back"
		read      = "status.lastReadSeq may not go back"
		delivered = "status.deliveredThrough may not go back"
		beyond    = "acked, deliveries and carried may only hold mentions beyond ackedThrough"
		kept      = `carried: [{seq: 5, index: 0, session: s1, at: "2026-01-01T00:00:00.000000Z"}]`
		out       = `deliveries: [{seq: 5, index: 0, session: s1, until: "2026-01-01T00:00:00.000000Z"}]`
	)
	for _, tc := range []struct {
		name    string
		steps   []string
		refused string
	}{
		{"takes ackedThrough forward", []string{"{ackedThrough: 4}", "{ackedThrough: 5}"}, ""},
		{"takes ackedThrough as it is", []string{"{ackedThrough: 4}", "{ackedThrough: 4}"}, ""},
		{"refuses ackedThrough back", []string{"{ackedThrough: 4}", "{ackedThrough: 3}"}, acked},
		{"refuses to unset ackedThrough", []string{"{ackedThrough: 4, lastReadSeq: 4}", "{ackedThrough: null}"}, acked},
		{"refuses to unset the whole status", []string{"{ackedThrough: 4}", "null"}, acked},
		{"takes lastReadSeq forward", []string{"{lastReadSeq: 4}", "{lastReadSeq: 5}"}, ""},
		{"refuses lastReadSeq back", []string{"{lastReadSeq: 4}", "{lastReadSeq: 3}"}, read},
		{"refuses to unset lastReadSeq", []string{"{lastReadSeq: 4}", "null"}, read},
		{"takes deliveredThrough forward", []string{"{deliveredThrough: 4}", "{deliveredThrough: 5}"}, ""},
		{"refuses deliveredThrough back", []string{"{deliveredThrough: 4}", "{deliveredThrough: 3}"}, delivered},
		{"refuses to unset deliveredThrough", []string{"{deliveredThrough: 4}", "null"}, delivered},
		{"takes a mention that is acknowledged beyond ackedThrough", []string{"{ackedThrough: 4, acked: [{seq: 5, index: 0}]}"}, ""},
		{"refuses a mention that is acknowledged twice over", []string{"{ackedThrough: 5, acked: [{seq: 5, index: 0}]}"}, beyond},
		{"takes a delivery beyond ackedThrough", []string{"{ackedThrough: 4, " + out + "}"}, ""},
		{"refuses a delivery of what is acknowledged", []string{"{ackedThrough: 5, " + out + "}"}, beyond},
		{"takes a mention that is carried beyond ackedThrough", []string{"{ackedThrough: 4, " + kept + "}"}, ""},
		{"refuses to carry what is acknowledged", []string{"{ackedThrough: 5, " + kept + "}"}, beyond},
		{"takes two mentions of one message", []string{"{acked: [{seq: 5, index: 0}, {seq: 5, index: 1}]}"}, ""},
		{"refuses one mention out to two instances", []string{`{deliveries: [
			{seq: 5, index: 0, session: s1, until: "2026-01-01T00:00:00.000000Z"},
			{seq: 5, index: 0, session: s2, until: "2026-01-01T00:00:00.000000Z"}]}`}, "Duplicate value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := object(t, full["Inbox"])
			must(t, create(t, c, u))
			last := len(tc.steps) - 1
			for _, step := range tc.steps[:last] {
				must(t, patchStatus(t, c, u, step))
			}
			check(t, patchStatus(t, c, u, tc.steps[last]), tc.refused)
		})
	}
}

func TestAnInboxIsUsableWithoutAStatus(t *testing.T) {
	c := server(t)
	u := object(t, full["Inbox"], "status: null")
	must(t, create(t, c, u))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	want := map[string]any{"lastReadSeq": int64(0), "ackedThrough": int64(0), "deliveredThrough": int64(0)}
	if diff := cmp.Diff(want, u.Object["status"]); diff != "" {
		t.Errorf("the status of a new Inbox (-want +got):\n%s", diff)
	}
	check(t, patch(t, c, u, "metadata: {labels: {agentrooms.dev/room: launch}}"), "")
}
