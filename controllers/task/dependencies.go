package task

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// dependencyMessages say what the reasons mean, before the names of the tasks concerned.
var dependencyMessages = map[string]string{
	v1alpha1.NoDependenciesReason:   "the task waits for nothing",
	v1alpha1.DependenciesDoneReason: "every task that this one waited for is done",
	v1alpha1.WaitingReason:          "waiting for ",
	v1alpha1.BlockerFailedReason:    "failed or cancelled, reopen or remove from dependsOn: ",
	v1alpha1.BlockerMissingReason:   "tasks that do not exist: ",
	v1alpha1.DependencyCycleReason:  "the task waits for itself: ",
}

// dependencies says whether everything that the task waits for is done.
func dependencies(s *scope) {
	if frozen(s, v1alpha1.DependenciesMetCondition) {
		return
	}
	status, separator := metav1.ConditionFalse, ", "
	switch {
	case s.blockers.met():
		status = metav1.ConditionTrue
	case s.blockers.reason == v1alpha1.DependencyCycleReason:
		separator = " → "
	}
	message := dependencyMessages[s.blockers.reason] + strings.Join(s.blockers.names, separator)
	s.condition(v1alpha1.DependenciesMetCondition, status, s.blockers.reason, message)
}
