package backup

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

var fresh = v1alpha1.TaskStatus{State: v1alpha1.TaskTodo}

// held gives a status under a claim, open one without.
func held(epoch int64, last *v1alpha1.TaskLastClaim) v1alpha1.TaskStatus {
	return v1alpha1.TaskStatus{State: v1alpha1.TaskDoing, Epoch: epoch, Claim: &v1alpha1.TaskClaim{Holder: "h", Session: "s"}, LastClaim: last}
}

func open(state v1alpha1.TaskState, epoch int64, last *v1alpha1.TaskLastClaim) v1alpha1.TaskStatus {
	return v1alpha1.TaskStatus{State: state, Epoch: epoch, LastClaim: last, Reason: "why"}
}

// The API server holds the steps to its rules in test/backup. Here it is the way that counts: its length, and where it ends.
func TestATaskGetsToItsStateStepByStep(t *testing.T) {
	ended := func(epoch int64) *v1alpha1.TaskLastClaim {
		return &v1alpha1.TaskLastClaim{Holder: "h", Session: "s", Epoch: epoch, Ended: v1alpha1.ClaimReleased}
	}
	for name, c := range map[string]struct {
		from, to v1alpha1.TaskStatus
		want     int
	}{
		"untouched":                 {fresh, open(v1alpha1.TaskTodo, 0, nil), 1},
		"blocked before any claim":  {fresh, open(v1alpha1.TaskBlocked, 0, nil), 1},
		"failed before any claim":   {fresh, open(v1alpha1.TaskFailed, 0, nil), 2},
		"held at once":              {fresh, held(1, nil), 1},
		"done by the first holder":  {fresh, open(v1alpha1.TaskDone, 2, ended(1)), 2},
		"held by the third":         {fresh, held(5, ended(3)), 5},
		"open after the third":      {fresh, open(v1alpha1.TaskTodo, 6, ended(5)), 6},
		"going on where it was cut": {held(3, ended(1)), open(v1alpha1.TaskFailed, 6, ended(5)), 3},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := steps(&c.from, &c.to)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != c.want {
				t.Errorf("there are %d steps, want %d", len(list), c.want)
			}
			if diff := cmp.Diff(c.to, list[len(list)-1]); diff != "" {
				t.Errorf("the last step (-want +got):\n%s", diff)
			}
			before := c.from
			for _, s := range list {
				if (s.Claim != nil) != (s.State == v1alpha1.TaskDoing) {
					t.Errorf("%s with the claim %v", s.State, s.Claim)
				}
				if rises := s.Epoch - before.Epoch; (rises == 1) != ((s.Claim != nil) != (before.Claim != nil)) || rises > 1 {
					t.Errorf("the epoch goes from %d to %d", before.Epoch, s.Epoch)
				}
				before = s
			}
		})
	}
}

func TestAStateThatCannotBeIsRefused(t *testing.T) {
	later := held(3, nil)
	unheld := open(v1alpha1.TaskDone, 3, nil)
	past := held(1, nil)
	for name, pair := range map[string][2]*v1alpha1.TaskStatus{
		"held by nobody":     {&fresh, &unheld},
		"back in its epochs": {&later, &past},
	} {
		if _, err := steps(pair[0], pair[1]); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
