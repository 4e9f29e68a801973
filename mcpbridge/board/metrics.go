package board

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the board. Their labels take values from small fixed sets only.
type metrics struct {
	streams prometheus.Gauge
	events  prometheus.Counter
	bytes   prometheus.Counter
	acts    *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentrooms_board_open_streams", Help: "Pages that are open and kept live.",
		}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentrooms_board_events_total", Help: "Changes sent to pages.",
		}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentrooms_board_event_bytes_total", Help: "Bytes of the changes sent to pages.",
		}),
		acts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrooms_board_acts_total", Help: "What people did on the board, by outcome: ok, or the code of the problem.",
		}, []string{"act", "outcome"}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.streams, m.events, m.bytes, m.acts} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the board's metrics: %w", err)
		}
	}
	return m, nil
}
