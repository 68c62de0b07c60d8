package proof

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is a controller's queue that gives a job out only when the test says so, and keeps timers by the history's clock. Otherwise it
// behaves as client-go's: a job that is added while a pass looks at it is looked at again, and of two timers the earlier counts.
type queue struct {
	now     func() time.Time
	limiter workqueue.TypedRateLimiter[reconcile.Request]

	sync.Mutex
	changed *sync.Cond
	waiting map[reconcile.Request]bool
	due     map[reconcile.Request]time.Time
	ready   []reconcile.Request
	busy    int
	// started says that a worker waits for the first job; paused that the pass is held at a request.
	started, paused, shut bool
}

func newQueue(now func() time.Time, limiter workqueue.TypedRateLimiter[reconcile.Request]) *queue {
	q := &queue{now: now, limiter: limiter, waiting: map[reconcile.Request]bool{}, due: map[reconcile.Request]time.Time{}}
	q.changed = sync.NewCond(q)
	return q
}

// Add wakes a job.
func (q *queue) Add(r reconcile.Request) {
	q.Lock()
	defer q.Unlock()
	q.waiting[r] = true
}

// AddAfter wakes a job later.
func (q *queue) AddAfter(r reconcile.Request, d time.Duration) {
	if d <= 0 {
		q.Add(r)
		return
	}
	q.Lock()
	defer q.Unlock()
	at := q.now().Add(d)
	if old, set := q.due[r]; !set || at.Before(old) {
		q.due[r] = at
	}
}

// AddRateLimited wakes a job whose pass has failed.
func (q *queue) AddRateLimited(r reconcile.Request) { q.AddAfter(r, q.limiter.When(r)) }

// Forget says that a pass has not failed.
func (q *queue) Forget(r reconcile.Request) { q.limiter.Forget(r) }

// NumRequeues is how often the job's pass has failed in a row.
func (q *queue) NumRequeues(r reconcile.Request) int { return q.limiter.NumRequeues(r) }

// Len is how many jobs wait.
func (q *queue) Len() int {
	q.Lock()
	defer q.Unlock()
	return len(q.waiting)
}

// Get is the worker's: it waits for a job that the test gives out.
func (q *queue) Get() (reconcile.Request, bool) {
	q.Lock()
	defer q.Unlock()
	q.started = true
	q.changed.Broadcast()
	for len(q.ready) == 0 && !q.shut {
		q.changed.Wait()
	}
	if q.shut {
		return reconcile.Request{}, true
	}
	r := q.ready[0]
	q.ready = q.ready[1:]
	return r, false
}

// Done says that a pass is over.
func (q *queue) Done(reconcile.Request) {
	q.Lock()
	defer q.Unlock()
	q.busy--
	q.changed.Broadcast()
}

// ShutDown ends the worker.
func (q *queue) ShutDown() {
	q.Lock()
	defer q.Unlock()
	q.shut = true
	q.changed.Broadcast()
}

// ShutDownWithDrain ends the worker.
func (q *queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown says that the worker ends.
func (q *queue) ShuttingDown() bool {
	q.Lock()
	defer q.Unlock()
	return q.shut
}

// awaitStart waits until the controller has started its watches and its worker.
func (q *queue) awaitStart() {
	q.Lock()
	defer q.Unlock()
	for !q.started && !q.shut {
		q.changed.Wait()
	}
}

// pass gives a job out, if one waits or is due, and returns when its pass is over or held at a request.
func (q *queue) pass() bool {
	q.Lock()
	defer q.Unlock()
	if q.shut || q.busy > 0 {
		return false
	}
	for _, r := range slices.Collect(maps.Keys(q.due)) {
		if !q.due[r].After(q.now()) {
			delete(q.due, r)
			q.waiting[r] = true
		}
	}
	for r := range q.waiting {
		delete(q.waiting, r)
		q.ready = append(q.ready, r)
		q.busy++
		break
	}
	if q.busy == 0 {
		return false
	}
	q.changed.Broadcast()
	q.wait()
	return true
}

// wait returns when the pass is over or held; the queue is locked.
func (q *queue) wait() {
	for q.busy > 0 && !q.paused {
		q.changed.Wait()
	}
}

// pause says that the pass is held at a request.
func (q *queue) pause(held bool) {
	q.Lock()
	defer q.Unlock()
	q.paused = held
	q.changed.Broadcast()
}

// finish waits for the end of a pass that was held.
func (q *queue) finish() {
	q.Lock()
	defer q.Unlock()
	q.wait()
}

// next is when the next timer is due, zero where there is none.
func (q *queue) next() time.Time {
	q.Lock()
	defer q.Unlock()
	var next time.Time
	for _, at := range q.due {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}
