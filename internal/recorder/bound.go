package recorder

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/api/naming"
)

// A job that always fails may be restarted for ever. Of its attempts, and of the runs of a container that is restarted in its pod, the first and the
// last are kept with their pods, events and logs. The job's counts stay exact.
const (
	keptFirst, keptLast = 10, 90
	// keptEvents is how many events of a job are kept, the newest.
	keptEvents = 2000
	// notKept is the reason of the attempt that stands for those which are not kept.
	notKept = "NotKept"
)

// bound drops what is beyond the limits. It is called before a record is written.
func (r *Recorder) bound(j *job) error {
	last := j.summary.Attempts - 1 - keptLast // the last attempt that is dropped
	if last >= keptFirst {
		if err := r.dropAttempts(j, last); err != nil {
			return err
		}
	}
	for _, p := range j.pods {
		if err := r.dropRuns(j, &p.Pod); err != nil {
			return err
		}
	}
	if over := len(j.events) - keptEvents; over > 0 {
		all := slices.SortedFunc(maps.Values(j.events), func(a, b corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		for _, e := range all[:over] {
			delete(j.events, e.UID)
		}
	}
	return nil
}

// dropAttempts drops the attempts between the first and the last ones, but for pods whose logs are not complete yet. An attempt stays in their place that
// gives the cause.
func (r *Recorder) dropAttempts(j *job, last int32) error {
	between := func(attempt int32) bool { return attempt >= keptFirst && attempt <= last }
	pending := map[int32]bool{}
	for uid, p := range j.pods {
		attempt := attemptOf(&p.Pod)
		switch {
		case !between(attempt):
		case !p.Complete || p.Gone.IsZero():
			pending[attempt] = true
		default:
			delete(j.pods, uid)
			delete(r.owners, uid)
			delete(r.present, uid)
			maps.DeleteFunc(j.events, func(_ types.UID, e corev1.Event) bool { return e.InvolvedObject.UID == uid })
		}
	}
	for attempt := max(keptFirst, j.dropped); attempt <= last && !pending[attempt]; attempt++ {
		if err := r.store.RemoveAttempt(j.namespace, j.uid, attempt); err != nil {
			return err
		}
		j.dropped = attempt + 1
	}
	gap := j.attempts[keptFirst]
	for number, a := range j.attempts {
		if between(number) {
			if gap.Start.IsZero() || !a.Start.IsZero() && a.Start.Before(gap.Start) {
				gap.Start = a.Start
			}
			if a.End.After(gap.End) {
				gap.End = a.End
			}
			delete(j.attempts, number)
		}
	}
	gap.Number, gap.Reason = keptFirst, notKept
	gap.Message = fmt.Sprintf("the %d attempts from %d to %d are not kept, because the job has more than %d", last-keptFirst+1, keptFirst+1, last+1, keptFirst+keptLast)
	j.attempts[keptFirst] = gap
	return nil
}

// dropRuns drops the logs of the runs of a pod's containers between the first and the last ones.
func (r *Recorder) dropRuns(j *job, pod *corev1.Pod) error {
	state := podState{pod: pod}
	for _, c := range state.statuses() {
		key := fmt.Sprintf("%s/%s", pod.UID, c.Name)
		for restart := max(keptFirst, j.droppedRuns[key]); restart <= c.RestartCount-keptLast; restart++ {
			if err := r.store.RemoveLog(j.namespace, j.uid, state.log(c.Name, restart)); err != nil {
				return err
			}
			j.droppedRuns[key] = restart + 1
		}
	}
	return nil
}

func attemptOf(pod *corev1.Pod) int32 {
	attempt, _ := strconv.ParseInt(pod.Labels[naming.LabelAttempt], 10, 32)
	return int32(attempt)
}
