// Package metrics counts what happens to jobs, for those who operate a cluster. The counters have the names of Training
// Operator 1.9; the histograms are ours.
package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trainyard/trainyard/internal/job"
)

// labels of every metric: the job's namespace, and its framework: pytorch, tensorflow, jax or trainjob.
var labels = []string{"job_namespace", "framework"}

// Metrics are the counters and histograms of all jobs. They change only after the status that they count was written.
type Metrics struct {
	counters   map[job.MetricName]*prometheus.CounterVec
	failures   *prometheus.CounterVec // by class and reason
	forced     *prometheus.CounterVec // by the state of the node
	histograms map[job.MetricName]*prometheus.HistogramVec
	lives      lives
}

// New registers the metrics.
func New(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		counters: map[job.MetricName]*prometheus.CounterVec{
			job.JobsCreated:   counter("training_operator_jobs_created_total", "Jobs that were created."),
			job.JobsSucceeded: counter("training_operator_jobs_successful_total", "Jobs that succeeded."),
			job.JobsFailed:    counter("training_operator_jobs_failed_total", "Jobs that failed."),
			job.JobsRestarted: counter("training_operator_jobs_restarted_total", "Restarts of jobs, as a whole or of one replica."),
			job.JobsDeleted:   counter("training_operator_jobs_deleted_total", "Jobs that were deleted at the end of their TTL."),
		},
		failures: counter("trainyard_job_failures_total", "Failures of replicas, by their class and reason.", "class", "reason"),
		forced:   counter("trainyard_pods_force_deleted_total", "Pods that were force-deleted, by the state of their node.", "node_state"),
		histograms: map[job.MetricName]*prometheus.HistogramVec{
			job.TimeToRunning:    histogram("trainyard_job_time_to_running_seconds", "From the start of a job until all its replicas run."),
			job.TimeToRecover:    histogram("trainyard_job_time_to_recover_seconds", "From a failure until all replicas run again."),
			job.DeadlineLateness: histogram("trainyard_job_deadline_lateness_seconds", "How late an active deadline was acted on."),
		},
		lives: newLives(),
	}
	all := append(m.lives.collectors(), m.failures, m.forced)
	for _, c := range m.counters {
		all = append(all, c)
	}
	for _, h := range m.histograms {
		all = append(all, h)
	}
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Record adds the metrics of a decision.
func (m *Metrics) Record(namespace, framework string, recorded ...job.Metric) {
	for _, metric := range recorded {
		if c, ok := m.counters[metric.Name]; ok {
			c.WithLabelValues(namespace, framework).Inc()
		}
		switch metric.Name {
		case job.Failures:
			m.failures.WithLabelValues(namespace, framework, string(metric.Class), metric.Reason).Inc()
		case job.PodsForceDeleted:
			m.forced.WithLabelValues(namespace, framework, metric.Reason).Inc()
		}
		if h, ok := m.histograms[metric.Name]; ok {
			h.WithLabelValues(namespace, framework).Observe(metric.Seconds)
		}
	}
}

func counter(name, help string, further ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, slices.Concat(labels, further))
}

func histogram(name, help string) *prometheus.HistogramVec {
	buckets := prometheus.ExponentialBuckets(0.05, 2.5, 14) // 50 ms to 2 hours
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}
