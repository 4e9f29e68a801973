package task

import (
	"fmt"

	"github.com/agentrooms/agentrooms/internal/tasks"
)

// intervene carries out the order of a person, once. Its outcome is written with the state that follows from it, so that a
// crash leaves neither without the other.
func intervene(s *scope) {
	status, ordered := tasks.Intervene(s.next, s.now)
	if !ordered {
		return
	}
	order := s.task.Spec.Intervention
	s.next.Status = status
	if why := status.Intervention.Refused; why != "" {
		s.events.Warning("InterventionRefused", string(order.Action), fmt.Sprintf("The order of %s was refused: %s", order.By, why))
		return
	}
	s.events.Normal("Intervened", string(order.Action), fmt.Sprintf("%s ordered: %s", order.By, order.Action))
}
