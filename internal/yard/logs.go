package yard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	sources, err := y.recordedLogs(ctx, j, q, pods)
	if err != nil {
		return err
	}
	for i := range pods {
		if q.wants(&pods[i]) {
			sources = append(sources, y.open(ctx, j, &pods[i], q))
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

// open starts to read the log of a pod, as far as it is written.
func (y *Yard) open(ctx context.Context, j *Job, pod *corev1.Pod, q LogQuery) *source {
	lines := make(chan Line, 100)
	out := &source{lines: lines}
	s := newStream(y, j, pod, q, func(l Line) {
		select {
		case lines <- l:
		case <-ctx.Done():
		}
	})
	go func() {
		defer close(lines)
		if (restarts(pod, s.container) > 0 && q.Tail == nil) || q.Previous {
			_ = s.read(ctx, corev1.PodLogOptions{Previous: true}) // it may be gone already
		}
		if q.Previous {
			return
		}
		if err := ignoreLost(s.read(ctx, corev1.PodLogOptions{})); err != nil {
			out.err = fmt.Errorf("reading the log of %s: %w", pod.Name, err)
		}
	}()
	return out
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
