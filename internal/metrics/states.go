package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// State is a job as the gauges of present jobs count it.
type State struct {
	Namespace, Framework, State string
	// Waiting is since when the job waits for its replicas to run, zero if it does not.
	Waiting time.Time
}

// States are the gauges of present jobs: how many there are by state, and how long the oldest waits. They are computed again whenever they
// are read, so they cannot drift.
type States struct {
	// List returns the existing jobs.
	List func() []State
	Now  func() time.Time
}

var (
	states = prometheus.NewDesc("trainyard_jobs", "Jobs by state.", append(labels, "state"), nil)
	oldest = prometheus.NewDesc("trainyard_oldest_waiting_job_seconds", "For how long a job has been waiting for its replicas to run, at most. Suspended jobs do not wait.", labels, nil)
)

// Describe implements prometheus.Collector.
func (States) Describe(ch chan<- *prometheus.Desc) { ch <- states; ch <- oldest }

// Collect implements prometheus.Collector.
func (s States) Collect(ch chan<- prometheus.Metric) {
	count, waits := map[State]int{}, map[State]float64{}
	now := s.Now()
	for _, state := range s.List() {
		count[State{Namespace: state.Namespace, Framework: state.Framework, State: state.State}]++
		wait := 0.0
		if !state.Waiting.IsZero() {
			wait = seconds(state.Waiting, now)
		}
		of := State{Namespace: state.Namespace, Framework: state.Framework}
		waits[of] = max(waits[of], wait)
	}
	for state, n := range count {
		ch <- prometheus.MustNewConstMetric(states, prometheus.GaugeValue, float64(n), state.Namespace, state.Framework, state.State)
	}
	for of, wait := range waits {
		ch <- prometheus.MustNewConstMetric(oldest, prometheus.GaugeValue, wait, of.Namespace, of.Framework)
	}
}
