package metrics

import "github.com/prometheus/client_golang/prometheus"

// State is a job as the gauge of states counts it.
type State struct {
	Namespace, Framework, State string
}

// States is the gauge of jobs by state. It counts again whenever it is read, so it cannot drift.
type States struct {
	// List returns the existing jobs.
	List func() []State
}

var states = prometheus.NewDesc("trainyard_jobs", "Jobs by state.", append(labels, "state"), nil)

// Describe implements prometheus.Collector.
func (States) Describe(ch chan<- *prometheus.Desc) { ch <- states }

// Collect implements prometheus.Collector.
func (s States) Collect(ch chan<- prometheus.Metric) {
	count := map[State]int{}
	for _, state := range s.List() {
		count[state]++
	}
	for state, n := range count {
		ch <- prometheus.MustNewConstMetric(states, prometheus.GaugeValue, float64(n), state.Namespace, state.Framework, state.State)
	}
}
