package yard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/record"
)

// Line is one line of a replica's log, as a terminal shows it: without text that the program has overwritten.
type Line struct {
	// Time is when the line began.
	Time    time.Time `json:"time"`
	Replica string    `json:"replica"`
	Attempt int32     `json:"attempt"`
	Text    string    `json:"text"`
	// Partial says that the line is not complete yet, for example a progress bar. The replica's next line replaces it.
	Partial bool `json:"-"`
}

// LogQuery says which lines are wanted.
type LogQuery struct {
	// Replica is one replica, as in worker-1; empty means all. Attempt is one attempt; nil means all whose logs still exist, or are recorded.
	Replica string
	Attempt *int32
	Since   time.Duration
	// Container is another container than the one that trains; empty means that one.
	Container string
	// Tail is how many of the last lines of each replica are wanted, nil for all. They come from the container's present run.
	Tail *int64
	// Previous asks Logs for the run of each container before the present one only.
	Previous bool
	// Partial asks FollowLogs for incomplete lines too.
	Partial bool
}

func (q LogQuery) wants(pod *corev1.Pod) bool {
	replica, attempt := ReplicaOf(pod)
	return (q.Replica == "" || strings.EqualFold(q.Replica, replica)) && (q.Attempt == nil || *q.Attempt == attempt)
}

// Logs emits all lines written so far, in the order of time, with an incomplete line as it is now. It reads all logs at the same time
// and keeps only a few lines of each in memory. If some logs cannot be read, it emits the lines of the others, and returns an error for
// the first that cannot.
func (y *Yard) Logs(ctx context.Context, j *Job, q LogQuery, emit func(Line)) error {
	var pods []corev1.Pod
	if j.Recorded == nil {
		var err error
		if pods, err = y.Pods(ctx, j); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sources, recorded, err := y.recordedLogs(ctx, j, q, pods)
	if err != nil {
		return err
	}
	for i := range pods {
		if q.wants(&pods[i]) {
			sources = append(sources, y.open(ctx, j, &pods[i], q, recorded))
		}
	}
	merge(sources, emit)
	for _, s := range sources {
		if s.err != nil {
			return s.err
		}
	}
	return ctx.Err()
}

// open starts to read the log of a pod, as far as it is written: first what is recorded of it, because kubelet shows only the newest file of a log
// that was rotated, then what the API server has after that.
func (y *Yard) open(ctx context.Context, j *Job, pod *corev1.Pod, q LogQuery, recorded []record.Log) *source {
	lines := make(chan Line, 100)
	out := &source{lines: lines}
	tail := &lastLines{limit: q.Tail, emit: func(l Line) error {
		select {
		case lines <- l:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	s := newStream(y, j, pod, q, func(l Line) { _ = tail.add(l) }) // the context has ended
	read := func(restart int32, options corev1.PodLogOptions) error {
		at := slices.IndexFunc(recorded, func(l record.Log) bool {
			return l.Pod == pod.UID && l.Container == s.container && l.Restart == restart
		})
		if at < 0 {
			return s.read(ctx, options)
		}
		return s.readAfter(ctx, j, recorded[at], q, options)
	}
	go func() {
		defer close(lines)
		n := restarts(pod, s.container)
		if (n > 0 && q.Tail == nil) || q.Previous {
			_ = read(n-1, corev1.PodLogOptions{Previous: true}) // it may be gone already
		}
		if !q.Previous {
			if err := ignoreLost(read(n, corev1.PodLogOptions{})); err != nil {
				out.err = fmt.Errorf("reading the log of %s: %w", pod.Name, err)
			}
		}
		_ = tail.end() // the context has ended
	}()
	return out
}

// readAfter emits the lines of a log that are recorded, and then those that the API server has after them. A line that was open when it was recorded comes
// from the API server, if that still has it.
func (s *stream) readAfter(ctx context.Context, j *Job, l record.Log, q LogQuery, options corev1.PodLogOptions) error {
	query := q.recorded()
	join := &joined{line: Line{Replica: s.replica, Attempt: s.attempt}, emit: func(line Line) error {
		s.last = line.Time
		if !line.Time.Before(query.Since) {
			s.emit(line)
		}
		return ctx.Err()
	}}
	if err := s.yard.Past.ReadLog(j.Job.Namespace, j.Job.UID, l, query, join.add); err != nil {
		return err
	}
	err := s.read(ctx, options)
	if join.open && join.line.Time.After(s.last) {
		return errors.Join(err, join.end())
	}
	return err
}

// restarts is how often a container was restarted in its pod.
func restarts(pod *corev1.Pod, container string) int32 {
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if c.Name == container {
			return c.RestartCount
		}
	}
	return 0
}
