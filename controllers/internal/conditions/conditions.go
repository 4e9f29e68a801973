// Package conditions keeps the conditions of a status: a condition that says what it said before stays as it is, so that
// nothing is written when nothing changed.
package conditions

import (
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxMessage is how many characters a message may have. The schema allows no more.
const MaxMessage = 1024

// New makes a condition for a generation. Its message is cut where it would be too long.
func New(kind string, status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
	if utf8.RuneCountInString(message) > MaxMessage {
		message = string([]rune(message)[:MaxMessage-1]) + "…"
	}
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
	}
}

// Set puts a condition into a list, and says whether the list differs from before. lastTransitionTime moves only when
// status does.
func Set(list *[]metav1.Condition, c metav1.Condition, now time.Time) bool {
	c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	i := slices.IndexFunc(*list, func(old metav1.Condition) bool { return old.Type == c.Type })
	if i < 0 {
		*list = append(*list, c)
		return true
	}
	old := (*list)[i]
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	(*list)[i] = c
	return old != c
}

// Reason gives the reason of a condition, empty when there is no such condition.
func Reason(list []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(list, kind); c != nil {
		return c.Reason
	}
	return ""
}
