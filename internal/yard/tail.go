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
	emit  func(Line)
	// emitting is held while a line is emitted, emitted counts the lines.
	emitting sync.Mutex
	emitted  atomic.Int64
	// reading ends the reading of logs, but not the watch for pods.
	reading context.Context
	readers sync.WaitGroup

	mu      sync.Mutex
	job     *Job
	streams map[types.UID]*stream
	// ending says that pods which appear from now on are not followed.
	ending bool
}

// FollowLogs emits each line when it is written, of all pods that the job has and will have. It waits for pods, and survives their
// restarts and outages of the API server. It emits one line at a time. finish ends that: it waits until the present pods have ended
// and all their lines are emitted. If ctx ends before, or no line comes for the idle timeout, it returns false.
func (y *Yard) FollowLogs(ctx context.Context, j *Job, q LogQuery, emit func(Line)) (finish func(ctx context.Context, idleTimeout time.Duration) (whole bool)) {
	watching, stopWatching := context.WithCancel(ctx)
	reading, stopReading := context.WithCancel(context.WithoutCancel(ctx))
	t := &tail{yard: y, query: q, reading: reading, job: j, streams: map[types.UID]*stream{}}
	t.emit = func(l Line) {
		t.emitting.Lock()
		defer t.emitting.Unlock()
		emit(l)
		t.emitted.Add(1)
	}
	y.followPods(watching, j, t.observe)
	return func(ctx context.Context, idleTimeout time.Duration) bool {
		limited, cancel := context.WithTimeout(ctx, idleTimeout)
		defer cancel()
		if pods, err := y.Pods(limited, j); err == nil { // after an outage the watch may not have them yet
			for i := range pods {
				t.observe(&pods[i], false)
			}
		}
		whole := t.await(ctx, t.end(), idleTimeout)
		stopReading()
		stopWatching()
		return whole
	}
}

// await reports whether all lines were emitted before ctx ended, and before no line came for the idle timeout. A slow reader of a line
// does not count as idle.
func (t *tail) await(ctx context.Context, done <-chan struct{}, idleTimeout time.Duration) bool {
	for before := int64(-1); ; {
		select {
		case <-done:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(idleTimeout):
		}
		if !t.emitting.TryLock() {
			continue // a line is being read
		}
		t.emitting.Unlock()
		if before == t.emitted.Load() {
			return false
		}
		before = t.emitted.Load()
	}
}

// observe starts a stream for a new pod, and passes the state of other pods to their streams.
func (t *tail) observe(pod *corev1.Pod, gone bool) {
	if !t.query.wants(pod) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.streams[pod.UID]
	if s == nil {
		if gone || t.ending {
			return
		}
		t.job = t.yard.withRoles(t.reading, t.job)
		s = newStream(t.yard, t.job, pod, t.query, t.emit)
		t.streams[pod.UID] = s
		t.readers.Go(func() { s.follow(t.reading) })
	}
	s.update(pod, gone)
}

// end accepts no more pods. What it returns is closed when the logs of the present pods are read to their end.
func (t *tail) end() <-chan struct{} {
	t.mu.Lock()
	t.ending = true
	t.mu.Unlock()
	done := make(chan struct{})
	go func() { t.readers.Wait(); close(done) }()
	return done
}

// withRoles is the job with its roles, which name a pod's training container. A TrainJob that was read before the operator stored its
// runtime has none. When it has pods, it has roles.
func (y *Yard) withRoles(ctx context.Context, j *Job) *Job {
	if len(j.Job.Roles) > 0 {
		return j
	}
	ctx, cancel := context.WithTimeout(ctx, extraRequestTimeout)
	defer cancel()
	if now, err := y.Find(ctx, strings.ToLower(j.Kind.Name())+"/"+j.Job.Name); err == nil && now.Job.UID == j.Job.UID {
		return now
	}
	return j
}
