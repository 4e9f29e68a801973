package mcpbridge

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// unknownTool stands in labels for every name that is no tool's, so that callers cannot make series.
const unknownTool = "unknown"

// metrics of the bridge. Their labels take values from small fixed sets only.
type metrics struct {
	calls       *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	streams     prometheus.Gauge
	reviews     *prometheus.CounterVec
	rateLimited *prometheus.CounterVec
	panics      prometheus.Counter
}

func newMetrics(registry *prometheus.Registry) (*metrics, error) {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrooms_tool_calls_total",
			Help: "Tool calls by outcome: ok, or the code of the error.",
		}, []string{"toolset", "tool", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "agentrooms_tool_duration_seconds",
			Help:    "How long tool calls took.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"toolset", "tool"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentrooms_open_streams",
			Help: "Streams of subscriptions/listen that are open.",
		}),
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrooms_token_reviews_total",
			Help: "Tokens reviewed by the API server, by result: accepted, refused, or unavailable.",
		}, []string{"result"}),
		rateLimited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrooms_rate_limited_total",
			Help: "Requests refused because the agent had too many, by the limit that they ran into.",
		}, []string{"bucket"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentrooms_panics_total",
			Help: "Panics that were caught.",
		}),
	}
	for _, c := range []prometheus.Collector{m.calls, m.duration, m.streams, m.reviews, m.rateLimited, m.panics} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the bridge's metrics: %w", err)
		}
	}
	return m, nil
}
