package inboxes_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/inboxes"
	"github.com/agentrooms/agentrooms/internal/problem"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const visibility = 90 * time.Second

func key(seq int64, index int32) v1alpha1.MentionKey {
	return v1alpha1.MentionKey{Seq: seq, Index: index}
}

func keys(seqs ...int64) []v1alpha1.MentionKey {
	var out []v1alpha1.MentionKey
	for _, s := range seqs {
		out = append(out, key(s, 0))
	}
	return out
}

// log gives the mentions of an agent in messages.
func log(seqs ...int64) []inboxes.Ref {
	var out []inboxes.Ref
	for _, s := range seqs {
		out = append(out, inboxes.Ref{Key: key(s, 0)})
	}
	return out
}

func seqs(refs []inboxes.Ref) []int64 {
	var out []int64
	for _, r := range refs {
		out = append(out, r.Key.Seq)
	}
	return out
}

func out(seq int64, session string, until time.Duration) v1alpha1.Delivery {
	return v1alpha1.Delivery{MentionKey: key(seq, 0), Session: session, Until: metav1.NewMicroTime(now.Add(until))}
}

func dead(string) bool  { return false }
func alive(string) bool { return true }

func TestPendingIsWhatIsNotAcknowledged(t *testing.T) {
	tests := map[string]struct {
		status v1alpha1.InboxStatus
		refs   []inboxes.Ref
		want   int
	}{
		"nothing":                                  {v1alpha1.InboxStatus{}, nil, 0},
		"all of a new inbox":                       {v1alpha1.InboxStatus{}, log(1, 5, 9), 3},
		"what lies beyond ackedThrough":            {v1alpha1.InboxStatus{AckedThrough: 5}, log(1, 5, 9), 1},
		"ackedThrough between two":                 {v1alpha1.InboxStatus{AckedThrough: 6}, log(1, 5, 9), 1},
		"but for what is acknowledged apart":       {v1alpha1.InboxStatus{AckedThrough: 1, Acked: keys(9)}, log(1, 5, 9), 1},
		"what is out too, since it is not handled": {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "s1", visibility)}}, log(1), 1},
		"two mentions of one message are two":      {v1alpha1.InboxStatus{Acked: []v1alpha1.MentionKey{key(5, 1)}}, []inboxes.Ref{{Key: key(5, 0)}, {Key: key(5, 1)}}, 1},
		"never below zero, where the log trails":   {v1alpha1.InboxStatus{Acked: keys(5, 9)}, log(5), 0},
		"nor where the log has lost its front":     {v1alpha1.InboxStatus{Acked: keys(5)}, log(9), 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := inboxes.Pending(&tc.status, tc.refs); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestDeliver(t *testing.T) {
	request := inboxes.Request{Session: "s1", Limit: 10, Visibility: visibility}
	limit := func(n int) inboxes.Request { r := request; r.Limit = n; return r }
	since := func(seq int64) inboxes.Request { r := request; r.SinceSeq = seq; return r }
	named := []inboxes.Ref{{Key: key(1, 0), Session: "s2"}, {Key: key(2, 0), Session: "s1"}, {Key: key(3, 0)}}
	crowd := v1alpha1.InboxStatus{}
	for i := range int64(v1alpha1.MaxDeliveries) {
		crowd.Deliveries = append(crowd.Deliveries, out(i+2, "s2", visibility))
	}
	mine := *crowd.DeepCopy()
	mine.Deliveries[0].Session = "s1"
	full := append(log(1), log(func() (l []int64) {
		for i := range int64(v1alpha1.MaxDeliveries) {
			l = append(l, i+2)
		}
		return l
	}()...)...)
	tests := map[string]struct {
		status  v1alpha1.InboxStatus
		refs    []inboxes.Ref
		live    inboxes.Live
		request inboxes.Request
		want    []int64
		written bool
		more    bool
	}{
		"nothing to give":                                     {v1alpha1.InboxStatus{}, nil, dead, request, nil, false, false},
		"all that is pending, oldest first":                   {v1alpha1.InboxStatus{}, log(1, 5, 9), dead, request, []int64{1, 5, 9}, true, false},
		"not what is acknowledged":                            {v1alpha1.InboxStatus{AckedThrough: 1, Acked: keys(9)}, log(1, 5, 9), dead, request, []int64{5}, true, false},
		"no more than asked for, and that there is more":      {v1alpha1.InboxStatus{}, log(1, 5, 9), dead, limit(2), []int64{1, 5}, true, true},
		"as many as asked for and there is no more":           {v1alpha1.InboxStatus{}, log(1, 5), dead, limit(2), []int64{1, 5}, true, false},
		"only what comes after a seq":                         {v1alpha1.InboxStatus{}, log(1, 5, 9), dead, since(5), []int64{9}, true, false},
		"nothing after the last seq there can be":             {v1alpha1.InboxStatus{}, log(1, 5, 9), dead, since(1<<63 - 1), nil, false, false},
		"not what another instance is handling":               {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "s2", time.Second)}}, log(1, 5), dead, request, []int64{5}, true, false},
		"what another instance let lie":                       {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "s2", 0)}}, log(1), dead, request, []int64{1}, true, false},
		"its own again, without a write while it is fresh":    {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "s1", visibility)}}, log(1), dead, request, []int64{1}, false, false},
		"its own again, with more time when half is gone":     {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "s1", visibility/2-1)}}, log(1), dead, request, []int64{1}, true, false},
		"a mention of a live instance only to it":             {v1alpha1.InboxStatus{}, named, alive, request, []int64{2, 3}, true, false},
		"a mention of a dead instance to any":                 {v1alpha1.InboxStatus{}, named, dead, request, []int64{1, 2, 3}, true, false},
		"what a live instance let lie to nobody else":         {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "s2", 0)}}, named[:1], alive, request, nil, false, false},
		"no new one while too many are out":                   {crowd, full, dead, request, nil, false, true},
		"but its own, however many are out":                   {mine, full, dead, request, []int64{2}, false, true},
		"deliveries of what left the log are in nobody's way": {crowd, log(1000), dead, request, []int64{1000}, true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.status.DeepCopy()
			given, next, more := inboxes.Deliver(&tc.status, tc.refs, tc.live, tc.request, now)
			if diff := cmp.Diff(before, &tc.status); diff != "" {
				t.Errorf("the status itself was changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, seqs(given)); diff != "" {
				t.Errorf("given (-want +got):\n%s", diff)
			}
			if (next != nil) != tc.written || more != tc.more {
				t.Errorf("written %v, more %v; want %v, %v", next != nil, more, tc.written, tc.more)
			}
		})
	}
}

func TestWhatADeliveryWrites(t *testing.T) {
	status := v1alpha1.InboxStatus{
		AckedThrough: 4, LastReadSeq: 4, DeliveredThrough: 5,
		Deliveries: []v1alpha1.Delivery{out(5, "s2", 0), out(7, "s3", time.Hour)},
	}
	_, next, _ := inboxes.Deliver(&status, log(5, 6, 7), dead, inboxes.Request{Session: "s1", Limit: 10, Visibility: visibility}, now)
	want := &v1alpha1.InboxStatus{
		AckedThrough: 4, LastReadSeq: 4, DeliveredThrough: 6,
		Deliveries: []v1alpha1.Delivery{out(7, "s3", time.Hour), out(5, "s1", visibility), out(6, "s1", visibility)},
	}
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAck(t *testing.T) {
	refs := log(1, 5, 9)
	given := func(seqs ...int64) v1alpha1.InboxStatus {
		var s v1alpha1.InboxStatus
		for _, seq := range seqs {
			s.Deliveries = append(s.Deliveries, out(seq, "s1", visibility))
		}
		return s
	}
	tests := map[string]struct {
		status         v1alpha1.InboxStatus
		refs           []inboxes.Ref
		keys           []v1alpha1.MentionKey
		acked, already []v1alpha1.MentionKey
		want           *v1alpha1.InboxStatus
		refused        bool
	}{
		"nothing":                                  {given(), refs, nil, nil, nil, nil, false},
		"the oldest":                               {given(1, 5), refs, keys(1), keys(1), nil, &v1alpha1.InboxStatus{AckedThrough: 4, LastReadSeq: 1, Deliveries: []v1alpha1.Delivery{out(5, "s1", visibility)}}, false},
		"all":                                      {given(1, 5, 9), refs, keys(9, 1, 5), keys(9, 1, 5), nil, &v1alpha1.InboxStatus{AckedThrough: 9, LastReadSeq: 9}, false},
		"one beyond one that is open":              {given(1, 5), refs, keys(5), keys(5), nil, &v1alpha1.InboxStatus{Acked: keys(5), LastReadSeq: 5, Deliveries: []v1alpha1.Delivery{out(1, "s1", visibility)}}, false},
		"twice in one call":                        {given(1), log(1), keys(1, 1), keys(1), keys(1), &v1alpha1.InboxStatus{AckedThrough: 1, LastReadSeq: 1}, false},
		"what was acknowledged before":             {v1alpha1.InboxStatus{AckedThrough: 4, Acked: keys(9)}, refs, keys(1, 9), nil, keys(1, 9), nil, false},
		"what was given to another instance":       {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "s2", 0)}}, log(1), keys(1), keys(1), nil, &v1alpha1.InboxStatus{AckedThrough: 1, LastReadSeq: 1}, false},
		"a mention that is not the agent's":        {given(1), refs, keys(1, 2), nil, nil, nil, true},
		"a mention that was not given out":         {given(1), refs, keys(1, 5), nil, nil, nil, true},
		"one of two mentions in a message":         {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(5, "s1", visibility)}}, []inboxes.Ref{{Key: key(5, 0)}, {Key: key(5, 1)}}, keys(5), keys(5), nil, &v1alpha1.InboxStatus{AckedThrough: 4, LastReadSeq: 5, Acked: keys(5)}, false},
		"the gap between two that is now closed":   {v1alpha1.InboxStatus{Acked: keys(5), Deliveries: []v1alpha1.Delivery{out(1, "s1", 0)}}, refs, keys(1), keys(1), nil, &v1alpha1.InboxStatus{AckedThrough: 8, LastReadSeq: 1}, false},
		"one whose message nobody here saw so far": {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(9, "s1", 0)}}, log(1, 5), keys(9), nil, nil, nil, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.status.DeepCopy()
			acked, already, next, p := inboxes.Ack(&tc.status, tc.refs, tc.keys)
			if diff := cmp.Diff(before, &tc.status); diff != "" {
				t.Errorf("the status itself was changed (-before +after):\n%s", diff)
			}
			if (p != nil) != tc.refused || (p != nil && p.Code != problem.Validation) {
				t.Fatalf("got %v, refused should be %v", p, tc.refused)
			}
			for _, c := range []struct {
				what      string
				want, got any
			}{{"acked", tc.acked, acked}, {"already", tc.already, already}, {"status", tc.want, next}} {
				if diff := cmp.Diff(c.want, c.got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.what, diff)
				}
			}
		})
	}
}

func TestAckThrough(t *testing.T) {
	refs := log(1, 5, 9)
	all := v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "s1", 0), out(5, "s1", 0), out(9, "s1", 0)}}
	tests := map[string]struct {
		status  v1alpha1.InboxStatus
		seq     int64
		acked   []v1alpha1.MentionKey
		want    *v1alpha1.InboxStatus
		refused bool
	}{
		"up to a mention":                         {all, 5, keys(1, 5), &v1alpha1.InboxStatus{AckedThrough: 8, LastReadSeq: 5, Deliveries: []v1alpha1.Delivery{out(9, "s1", 0)}}, false},
		"up to between two":                       {all, 7, keys(1, 5), &v1alpha1.InboxStatus{AckedThrough: 8, LastReadSeq: 7, Deliveries: []v1alpha1.Delivery{out(9, "s1", 0)}}, false},
		"all":                                     {all, 9, keys(1, 5, 9), &v1alpha1.InboxStatus{AckedThrough: 9, LastReadSeq: 9}, false},
		"over what was acknowledged apart":        {v1alpha1.InboxStatus{Acked: keys(5), Deliveries: []v1alpha1.Delivery{out(1, "s1", 0), out(9, "s1", 0)}}, 9, keys(1, 9), &v1alpha1.InboxStatus{AckedThrough: 9, LastReadSeq: 9}, false},
		"what was read and holds no mention":      {v1alpha1.InboxStatus{AckedThrough: 9, LastReadSeq: 9}, 12, nil, &v1alpha1.InboxStatus{AckedThrough: 9, LastReadSeq: 12}, false},
		"what was acknowledged and read before":   {v1alpha1.InboxStatus{AckedThrough: 9, LastReadSeq: 12}, 12, nil, nil, false},
		"nothing":                                 {all, 0, nil, nil, false},
		"a mention that was not given out":        {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "s1", 0)}}, 5, nil, nil, true},
		"but not beyond what was given":           {v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "s1", 0)}}, 4, keys(1), &v1alpha1.InboxStatus{AckedThrough: 4, LastReadSeq: 4}, false},
		"more than any message's seq":             {v1alpha1.InboxStatus{AckedThrough: 9}, 1 << 40, nil, nil, true},
		"less than what was read, with a mention": {v1alpha1.InboxStatus{LastReadSeq: 20, Deliveries: []v1alpha1.Delivery{out(1, "s1", 0)}}, 1, keys(1), &v1alpha1.InboxStatus{AckedThrough: 4, LastReadSeq: 20}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			acked, next, p := inboxes.AckThrough(&tc.status, refs, tc.seq)
			if (p != nil) != tc.refused || (p != nil && p.Code != problem.Validation) {
				t.Fatalf("got %v, refused should be %v", p, tc.refused)
			}
			if diff := cmp.Diff(tc.acked, acked, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("acked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, next, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTooManyAcksBeyondAnOpenMentionAreRefused(t *testing.T) {
	refs, status := log(1), v1alpha1.InboxStatus{}
	for i := range int64(v1alpha1.MaxSparseAcks) {
		refs = append(refs, log(i+2)...)
		status.Acked = append(status.Acked, key(i+2, 0))
	}
	refs = append(refs, log(1000)...)
	status.Deliveries = []v1alpha1.Delivery{out(1, "s1", 0), out(1000, "s1", 0)}
	if _, _, next, p := inboxes.Ack(&status, refs, keys(1000)); p == nil || p.Code != problem.Conflict || next != nil {
		t.Errorf("got %+v, %v; want a CONFLICT that tells to acknowledge the oldest first", next, p)
	}
	if _, _, next, p := inboxes.Ack(&status, refs, keys(1)); p != nil || next.AckedThrough != 999 || len(next.Acked) != 0 {
		t.Errorf("got %+v, %v", next, p)
	}
}

// A session that lives and never looks at its mentions stops nobody else: what is for it alone goes to another one before
// the acknowledgements behind it find no place any more.
func TestASessionThatNeverLooksHoldsUpNobody(t *testing.T) {
	refs := log(1)
	refs[0].Session = "lazy"
	for i := range int64(2 * v1alpha1.MaxSparseAcks) {
		refs = append(refs, inboxes.Ref{Key: key(i+2, 0)})
	}
	s := &v1alpha1.InboxStatus{}
	for range 100 {
		given, next, _ := inboxes.Deliver(s, refs, alive, inboxes.Request{Session: "busy", Limit: 50, Visibility: visibility}, now)
		if len(given) == 0 {
			break
		}
		if len(s.Acked) < 200 && given[0].Key.Seq == 1 {
			t.Fatalf("what names a live session went to another one, with %d acknowledged behind it", len(s.Acked))
		}
		if next != nil {
			s = next
		}
		var all []v1alpha1.MentionKey
		for _, ref := range given {
			all = append(all, ref.Key)
		}
		_, _, next, p := inboxes.Ack(s, refs, all)
		if p != nil {
			t.Fatalf("with %d acknowledged: %v", len(s.Acked), p)
		}
		s = next
	}
	if n := inboxes.Pending(s, refs); n != 0 {
		t.Errorf("%d are pending for ever", n)
	}
}

// While a session handles the oldest mention, others are given no more than they can acknowledge. Once its time is over, the
// oldest goes to whoever asks, even to one who asked for later ones.
func TestNoMoreIsGivenThanCanBeAcknowledged(t *testing.T) {
	var refs []inboxes.Ref
	for i := range int64(2 * v1alpha1.MaxSparseAcks) {
		refs = append(refs, inboxes.Ref{Key: key(i+1, 0)})
	}
	s := &v1alpha1.InboxStatus{Deliveries: []v1alpha1.Delivery{out(1, "stuck", visibility)}}
	request := inboxes.Request{Session: "busy", SinceSeq: 1, Limit: 50, Visibility: visibility}
	drain := func(at time.Time) {
		t.Helper()
		for range 100 {
			given, next, more := inboxes.Deliver(s, refs, alive, request, at)
			if len(given) == 0 {
				if more != (inboxes.Pending(s, refs) > 0) {
					t.Errorf("says more=%t with %d pending", more, inboxes.Pending(s, refs))
				}
				return
			}
			if next != nil {
				s = next
			}
			var all []v1alpha1.MentionKey
			for _, ref := range given {
				all = append(all, ref.Key)
			}
			_, _, next, p := inboxes.Ack(s, refs, all)
			if p != nil {
				t.Fatalf("with %d acknowledged: %v", len(s.Acked), p)
			}
			s = next
		}
		t.Fatal("gives more for ever")
	}
	drain(now)
	if len(s.Acked) == 0 || len(s.Acked) > v1alpha1.MaxSparseAcks {
		t.Fatalf("%d are acknowledged beyond the oldest", len(s.Acked))
	}
	drain(now.Add(visibility))
	if n := inboxes.Pending(s, refs); n != 0 {
		t.Errorf("%d are pending for ever", n)
	}
}
