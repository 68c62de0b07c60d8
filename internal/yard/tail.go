package yard

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tail follows the logs of a job: a stream for each of its pods.
type tail struct {
	yard  *Yard
	query LogQuery
	tell  func(Line)
	// reading ends what is read of pods, apart from the watch for them.
	reading context.Context
	streams sync.WaitGroup

	mu    sync.Mutex
	job   *Job
	known map[types.UID]*stream
	// ending says that a pod which is not known by now is none of this tail's.
	ending bool
}

// FollowLogs tells each line as it is written, of all pods the job has and will have. It waits for pods, and survives their
// restarts and trouble of the API server. Lines come one at a time. What it returns ends that: it returns when the pods
// there are have ended and all they wrote is told, or after a limit.
func (y *Yard) FollowLogs(ctx context.Context, j *Job, q LogQuery, tell func(Line)) (wait func(limit time.Duration)) {
	var telling sync.Mutex
	watching, stopWatching := context.WithCancel(ctx)
	reading, stopReading := context.WithCancel(context.WithoutCancel(ctx))
	t := &tail{yard: y, query: q, reading: reading, job: j, known: map[types.UID]*stream{}, tell: func(l Line) {
		telling.Lock()
		defer telling.Unlock()
		tell(l)
	}}
	y.followPods(watching, j, t.see)
	return func(limit time.Duration) {
		limited, cancel := context.WithTimeout(reading, limit)
		defer cancel()
		if pods, err := y.Pods(limited, j); err == nil { // the watch may be behind, after trouble of the API server
			for i := range pods {
				t.see(&pods[i], false)
			}
		}
		done := t.end()
		select {
		case <-done:
		case <-limited.Done():
		}
		stopReading()
		stopWatching()
		<-done
	}
}

// see begins to follow a pod that is new, and lets the stream of one that is known know what became of it.
func (t *tail) see(pod *corev1.Pod, gone bool) {
	if !t.query.wants(pod) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.known[pod.UID]
	if s == nil {
		if gone || t.ending {
			return
		}
		t.job = t.yard.whole(t.reading, t.job)
		s = newStream(t.yard, t.job, pod, t.query, t.tell)
		t.known[pod.UID] = s
		t.streams.Go(func() { s.follow(t.reading) })
	}
	s.seen(pod, gone)
}

// end lets no more pods in. What it returns is closed when those there are have been read to their end.
func (t *tail) end() <-chan struct{} {
	t.mu.Lock()
	t.ending = true
	t.mu.Unlock()
	done := make(chan struct{})
	go func() { t.streams.Wait(); close(done) }()
	return done
}

// whole is the job with its roles, without which a pod's training container is not known. A job that was read before the
// operator brought it what it is made from has none; by the time it has pods, it has.
func (y *Yard) whole(ctx context.Context, j *Job) *Job {
	if len(j.Job.Roles) > 0 {
		return j
	}
	ctx, cancel := context.WithTimeout(ctx, again*10)
	defer cancel()
	if now, err := y.Find(ctx, strings.ToLower(j.Kind.Name())+"/"+j.Job.Name); err == nil && now.Job.UID == j.Job.UID {
		return now
	}
	return j
}
