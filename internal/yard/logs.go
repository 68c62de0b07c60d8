package yard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/api/naming"
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
	// Replica is one replica, as in worker-1; empty means all. Attempt is one attempt; nil means all whose logs still exist.
	Replica string
	Attempt *int32
	Since   time.Duration
	// Partial asks FollowLogs for incomplete lines too.
	Partial bool
}

func (q LogQuery) wants(pod *corev1.Pod) bool {
	replica, attempt := replicaOf(pod)
	return (q.Replica == "" || strings.EqualFold(q.Replica, replica)) && (q.Attempt == nil || *q.Attempt == attempt)
}

func replicaOf(pod *corev1.Pod) (string, int32) {
	attempt, _ := strconv.ParseInt(pod.Labels[naming.LabelAttempt], 10, 32)
	return pod.Labels[naming.LabelReplicaType] + "-" + pod.Labels[naming.LabelReplicaIndex], int32(attempt)
}

// Logs are all lines written so far, in the order of time, with an incomplete line as it is now. If some logs cannot be read, it
// returns the lines of the others, and an error for the first that cannot.
func (y *Yard) Logs(ctx context.Context, j *Job, q LogQuery) ([]Line, error) {
	pods, err := y.Pods(ctx, j)
	if err != nil {
		return nil, err
	}
	var all []Line
	var failed error
	for i := range pods {
		if !q.wants(&pods[i]) {
			continue
		}
		s := newStream(y, j, &pods[i], q, func(l Line) { all = append(all, l) })
		if restarts(&pods[i], s.container) > 0 {
			_ = s.read(ctx, corev1.PodLogOptions{Previous: true}) // it may be gone already
		}
		if err := ignoreLost(s.read(ctx, corev1.PodLogOptions{})); err != nil && failed == nil {
			failed = fmt.Errorf("reading the log of %s: %w", pods[i].Name, err)
		}
	}
	slices.SortStableFunc(all, func(a, b Line) int { return a.Time.Compare(b.Time) })
	return all, failed
}

// restarts is how often a container was restarted in its pod.
func restarts(pod *corev1.Pod, container string) int32 {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == container {
			return c.RestartCount
		}
	}
	return 0
}
