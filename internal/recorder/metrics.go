package recorder

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	descStreams = prometheus.NewDesc("trainyard_recorder_streams", "Pods whose logs are being recorded.", nil, nil)
	descLag     = prometheus.NewDesc("trainyard_recorder_lag_seconds", "How old an entry of a log was at most when it was recorded, since the last scrape.", nil, nil)
	descGaps    = prometheus.NewDesc("trainyard_recorder_gaps_total", "Gaps in logs: what could not be recorded.", nil, nil)
	descErrors  = prometheus.NewDesc("trainyard_recorder_write_errors_total", "How often something could not be recorded and was to be retried.", nil, nil)
	descSize    = prometheus.NewDesc("trainyard_recorder_archive_bytes", "What the recorded jobs take, as it was last counted.", nil, nil)
	descLimit   = prometheus.NewDesc("trainyard_recorder_archive_limit_bytes", "What the recorded jobs may take.", nil, nil)
)

// Describe implements prometheus.Collector.
func (r *Recorder) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descStreams, descLag, descGaps, descErrors, descSize, descLimit} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (r *Recorder) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	watched, failures := r.logs.watched(), r.failures
	r.mu.Unlock()
	gauge := func(d *prometheus.Desc, value float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	count := func(d *prometheus.Desc, value float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value)
	}
	written := &r.store.Written
	gauge(descStreams, float64(watched))
	gauge(descLag, written.Lag().Seconds())
	count(descGaps, float64(written.Gaps()))
	count(descErrors, float64(failures))
	gauge(descSize, float64(written.Size()))
	gauge(descLimit, float64(r.store.Limits.Size))
}
