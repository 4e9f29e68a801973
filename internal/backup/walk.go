package backup

import (
	"fmt"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// steps gives the writes that bring the status of a task from one to another, the last of them being the other. The API
// server holds everybody to how a task moves, those who restore as well, so an archive cannot hold a state that could not
// have come about: the epoch rises by one with each claim and each end of one. In between nobody of the room holds the task:
// the claims are the archive's.
func steps(from, to *v1alpha1.TaskStatus) ([]v1alpha1.TaskStatus, error) {
	if err := plausible(to); err != nil {
		return nil, err
	}
	if (to.Claim != nil) != (to.Epoch%2 == 1) || to.Epoch < from.Epoch {
		return nil, fmt.Errorf("%w: a task cannot have come from epoch %d to epoch %d and state %s", ErrDamaged, from.Epoch, to.Epoch, to.State)
	}
	var list []v1alpha1.TaskStatus
	last := from
	add := func(s v1alpha1.TaskStatus) {
		list = append(list, s)
		last = &list[len(list)-1]
	}
	for last.Epoch+1 < to.Epoch {
		add(between(last, to))
	}
	if to.Epoch == last.Epoch && to.State == v1alpha1.TaskFailed && last.State == v1alpha1.TaskTodo {
		blocked := final(last, to)
		blocked.State = v1alpha1.TaskBlocked
		add(blocked)
	}
	add(final(last, to))
	return list, nil
}

// plausible refuses a status that takes more writes than a task can have seen.
func plausible(s *v1alpha1.TaskStatus) error {
	if s.Epoch < 0 || s.Epoch > maxEpoch {
		return fmt.Errorf("%w: a task has epoch %d, and what has been claimed so often cannot be imported (%d)", ErrDamaged, s.Epoch, maxEpoch)
	}
	return nil
}

// between gives the next status on the way: claimed when the last is not, open when it is.
func between(last, to *v1alpha1.TaskStatus) v1alpha1.TaskStatus {
	next := final(last, to)
	next.Epoch, next.Reason = last.Epoch+1, ""
	next.Consent = &v1alpha1.TaskConsent{State: v1alpha1.ConsentAuto}
	next.LastClaim = last.LastClaim
	if last.Claim != nil {
		next.State, next.Claim = v1alpha1.TaskTodo, nil
		if of := to.LastClaim; of != nil && of.Epoch == last.Epoch {
			next.LastClaim = of
		}
		return next
	}
	next.State, next.Claim = v1alpha1.TaskDoing, &v1alpha1.TaskClaim{Holder: "archive"}
	if of := to.LastClaim; of != nil && of.Epoch == next.Epoch {
		next.Claim = &v1alpha1.TaskClaim{Holder: of.Holder, Session: of.Session}
	}
	return next
}

// final gives the status that is restored, with what the controllers said of the task meanwhile.
func final(last, to *v1alpha1.TaskStatus) v1alpha1.TaskStatus {
	next := *to.DeepCopy()
	next.ObservedGeneration, next.Conditions = last.ObservedGeneration, last.Conditions
	return next
}
