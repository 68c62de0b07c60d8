package yard

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tail follows the logs of a job: a stream for each of its pods.
type tail struct {
	yard  *Yard
	query LogQuery
	tell  func(Line)
	// telling is held while a line is told, told counts them.
	telling sync.Mutex
	told    atomic.Int64
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
// there are have ended and all they wrote is told. Where ctx ends before, or nothing more comes for a time, it says that this is not so.
func (y *Yard) FollowLogs(ctx context.Context, j *Job, q LogQuery, tell func(Line)) (finish func(ctx context.Context, patience time.Duration) (whole bool)) {
	watching, stopWatching := context.WithCancel(ctx)
	reading, stopReading := context.WithCancel(context.WithoutCancel(ctx))
	t := &tail{yard: y, query: q, reading: reading, job: j, known: map[types.UID]*stream{}}
	t.tell = func(l Line) {
		t.telling.Lock()
		defer t.telling.Unlock()
		tell(l)
		t.told.Add(1)
	}
	y.followPods(watching, j, t.see)
	return func(ctx context.Context, patience time.Duration) bool {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if pods, err := y.Pods(limited, j); err == nil { // the watch may be behind, after trouble of the API server
			for i := range pods {
				t.see(&pods[i], false)
			}
		}
		whole := t.await(ctx, t.end(), patience)
		stopReading()
		stopWatching()
		return whole
	}
}

// await tells whether all was told before ctx ended, and before nothing came for a time. Who is slow to take a line does not count.
func (t *tail) await(ctx context.Context, done <-chan struct{}, patience time.Duration) bool {
	for told := int64(-1); ; {
		select {
		case <-done:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(patience):
		}
		if !t.telling.TryLock() {
			continue // somebody reads it
		}
		t.telling.Unlock()
		if told == t.told.Load() {
			return false
		}
		told = t.told.Load()
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
