package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
)

// What the GPUs of an attempt were used for. Time counts as lost if the attempt ended with a failure: what it computed after its last
// checkpoint has to be computed again, and only the program knows how much that is.
const (
	useWaiting  = "waiting"
	useTraining = "training"
	useLost     = "lost"
)

// Step is a job before and after a pass whose status was recorded. What is measured by it follows from the two statuses, so the rules
// need not know of it.
type Step struct {
	Created       time.Time
	Before, After job.Status
	// Pods are those of the job, of whatever attempt.
	Pods []*corev1.Pod
	// GPUs is how many all replicas of the job have.
	GPUs float64
}

// lives are the metrics of steps.
type lives struct {
	queue, schedule *prometheus.HistogramVec
	duration        *prometheus.HistogramVec // by result
	gpus            *prometheus.CounterVec   // by use
}

func newLives() lives {
	return lives{
		queue:    histogram("trainyard_job_queue_seconds", "From the creation of a job until its first attempt begins."),
		schedule: histogram("trainyard_job_schedule_seconds", "From the start of an attempt until its last replica has a node."),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trainyard_job_duration_seconds", Help: "From the start of a job until its end, by its result.",
			Buckets: prometheus.ExponentialBuckets(1, 3, 14), // a second to 18 days
		}, append(slices.Clone(labels), "result")),
		gpus: counter("trainyard_gpu_seconds_total", "Seconds of GPUs, by what they were used for. They are counted when an attempt ends.", "use"),
	}
}

func (l lives) collectors() []prometheus.Collector {
	return []prometheus.Collector{l.queue, l.schedule, l.duration, l.gpus}
}

// RecordStep measures what a step shows. It is called once for each status that was written.
func (m *Metrics) RecordStep(namespace, framework string, s Step) {
	l := m.lives
	if len(s.Before.Attempts) == 0 && len(s.After.Attempts) > 0 {
		l.queue.WithLabelValues(namespace, framework).Observe(seconds(s.Created, s.After.Attempts[0].Start))
	}
	if !s.Before.Is(job.Running) && s.After.Is(job.Running) {
		if began, ok := lastAttempt(s.After); ok {
			l.schedule.WithLabelValues(namespace, framework).Observe(seconds(began.Start, lastPlaced(s.Pods)))
		}
	}
	if !s.Before.Finished() && s.After.Finished() {
		result := string(job.Succeeded)
		if s.After.Is(job.Failed) {
			result = string(job.Failed)
		}
		l.duration.WithLabelValues(namespace, framework, result).Observe(seconds(s.After.StartTime, s.After.CompletionTime))
	}
	for use, n := range s.gpuSeconds() {
		l.gpus.WithLabelValues(namespace, framework, use).Add(n)
	}
}

// gpuSeconds are the seconds of GPUs of the attempt that ended in this step, by what they were used for.
func (s Step) gpuSeconds() map[string]float64 {
	open, ok := lastAttempt(s.Before)
	i := slices.IndexFunc(s.After.Attempts, func(a job.Attempt) bool { return a.Number == open.Number && !a.End.IsZero() })
	if !ok || !open.End.IsZero() || i < 0 || s.GPUs == 0 {
		return nil
	}
	ended := s.After.Attempts[i]
	runs, end := runsSince(s.Before), ended.End
	if runs.IsZero() || runs.After(end) { // conditions are at least a second apart, so one can be ahead of the clock
		runs = end
	}
	use := useLost
	if slices.Contains([]string{job.ReasonSucceeded, job.ReasonScaled, job.ReasonSuspended}, ended.Reason) {
		use = useTraining
	}
	return map[string]float64{useWaiting: s.GPUs * seconds(ended.Start, runs), use: s.GPUs * seconds(runs, end)}
}

func lastAttempt(s job.Status) (job.Attempt, bool) {
	if len(s.Attempts) == 0 {
		return job.Attempt{}, false
	}
	return s.Attempts[len(s.Attempts)-1], true
}

// runsSince is when all replicas were first seen to run, zero if they do not.
func runsSince(s job.Status) time.Time {
	for _, c := range s.Conditions {
		if c.Type == job.Running && c.Status {
			return c.LastTransition
		}
	}
	return time.Time{}
}

// lastPlaced is when the last of the pods got a node.
func lastPlaced(pods []*corev1.Pod) (last time.Time) {
	for _, pod := range pods {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(last) {
				last = c.LastTransitionTime.Time
			}
		}
	}
	return last
}

// seconds between two moments. Stored times are whole seconds, so a moment can seem to be before the one that it follows.
func seconds(from, until time.Time) float64 { return max(until.Sub(from), 0).Seconds() }
