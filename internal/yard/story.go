package yard

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/story"
)

// Brief is a job's story from its object only. For a job that is recorded and had not ended, time stops with its record.
func (j *Job) Brief(now time.Time) story.Story {
	if j.Recorded != nil && !j.Status.Finished() {
		now = j.Recorded.Updated
	}
	s := story.Story{Job: j.Job, Status: j.Status, Created: j.Object.GetCreationTimestamp().Time, Now: now}
	if j.Kueue != nil && j.Kueue.Active && j.Job.Policy.Suspend {
		s.Kueue = j.Kueue.Waits()
	}
	return s
}

// Story is a job's story with its pods, Kubernetes' warnings and what Kueue says.
func (y *Yard) Story(ctx context.Context, j *Job, now time.Time) (story.Story, error) {
	err := y.AskKueue(ctx, j)
	s := j.Brief(now)
	if err != nil {
		return s, err
	}
	if s.Pods, err = y.Pods(ctx, j); err != nil {
		return s, err
	}
	events, err := y.Events(ctx, j)
	if err != nil {
		return s, err
	}
	for _, e := range events {
		present := slices.ContainsFunc(s.Pods, func(p corev1.Pod) bool { return p.UID == e.UID })
		if e.Type == corev1.EventTypeWarning && present {
			s.Warnings = append(s.Warnings, fmt.Sprintf("pod %s: %s", e.Name, e.Text))
		}
	}
	return s, nil
}
