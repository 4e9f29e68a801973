package rooms

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

type metrics struct {
	claims *prometheus.CounterVec
	lag    prometheus.Histogram
	sends  *prometheus.CounterVec
	renews *prometheus.CounterVec
	files  *prometheus.CounterVec
	// fileBytes that went through the bridge.
	fileBytes *prometheus.CounterVec
}

// wroteFile counts a write_file call.
func (m *metrics) wroteFile(size int, duplicate bool) {
	if duplicate {
		m.files.WithLabelValues("write_again").Inc()
		return
	}
	m.files.WithLabelValues("write").Inc()
	m.fileBytes.WithLabelValues("write").Add(float64(size))
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrooms_claims_total",
			Help: "Claims of tasks by result: won, held (by the caller already), or why they were lost.",
		}, []string{"result"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "agentrooms_cache_lag_seconds",
			Help:    "Time from the answer to an own write until the watch showed it.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5},
		}),
		sends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrooms_messages_total",
			Help: "Messages sent by result: new or duplicate.",
		}, []string{"result"}),
		renews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrooms_lease_renewals_total",
			Help: "Renewals of task leases by kind (explicit, implicit) and result (ok, lost).",
		}, []string{"kind", "result"}),
		files: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrooms_file_operations_total",
			Help: "Operations on files: write, write_again, read, share, available, quarantined (uploads completed), fetch, delete.",
		}, []string{"operation"}),
		fileBytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrooms_file_bytes_total",
			Help: "Bytes of files by operation: write and read through the bridge, upload as completed.",
		}, []string{"operation"}),
	}
	if r != nil {
		r.MustRegister(m.claims, m.lag, m.sends, m.renews, m.files, m.fileBytes)
	}
	return m
}

// watchSizes counts the view's objects when metrics are read, so that no counter can drift.
func (m *metrics) watchSizes(r prometheus.Registerer, v *view.View, waiting func() int) {
	if r != nil {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentrooms_messages_waiting",
			Help: "Messages that wait to be written to their room's log.",
		}, func() float64 { return float64(waiting()) }))
		r.MustRegister(&sizes{view: v, desc: prometheus.NewDesc(
			"agentrooms_view_objects", "Objects in the replica's view of the cluster, by kind.", []string{"kind"}, nil)})
	}
}

type sizes struct {
	view *view.View
	desc *prometheus.Desc
}

func (s *sizes) Describe(ch chan<- *prometheus.Desc) { ch <- s.desc }

func (s *sizes) Collect(ch chan<- prometheus.Metric) {
	for kind, n := range s.view.Sizes() {
		ch <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(n), kind)
	}
}
