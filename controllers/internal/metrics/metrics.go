// Package metrics holds what the controllers count, beside what controller-runtime counts by itself.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

var (
	// LeaseExpiries counts leases that ran out, by what was done about it: Reopen or MarkStale.
	LeaseExpiries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentrooms_lease_expiries_total",
		Help: "Leases of tasks that ran out, by what was done about it.",
	}, []string{"action"})

	// ConsentsDecided counts proposals that were decided, by the state they came to: Accepted or Rejected.
	ConsentsDecided = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentrooms_consents_decided_total",
		Help: "Proposals that were decided, in person or by a Consent, by the state they came to.",
	}, []string{"state"})

	// NoticesPosted counts notices about tasks posted to rooms, by kind.
	NoticesPosted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentrooms_notices_posted_total",
		Help: "Notices about tasks that were posted to rooms, by kind.",
	}, []string{"kind"})
)

func init() {
	metrics.Registry.MustRegister(LeaseExpiries, ConsentsDecided, NoticesPosted)
	// A series that is there from the start shows its first increment to those who watch rates.
	for counter, labels := range map[*prometheus.CounterVec][]string{
		LeaseExpiries:   {string(v1alpha1.LeaseReopen), string(v1alpha1.LeaseMarkStale)},
		ConsentsDecided: {string(v1alpha1.ConsentAccepted), string(v1alpha1.ConsentRejected)},
		NoticesPosted:   {"assigned", "proposed", "rejected", "unblocked"},
	} {
		for _, label := range labels {
			counter.WithLabelValues(label)
		}
	}
}
