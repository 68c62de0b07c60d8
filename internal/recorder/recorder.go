// Package recorder writes what happens to jobs into a store of package record. It takes jobs, pods and events from the caches of the
// operator's manager, so it costs the API server only a watch of events. It takes logs from kubelet's files, or on a cluster from the API server, and what
// pods use from whoever measures it.
//
// A record is written a moment after a change, and as a whole. After a crash, a recorder continues with the records and logs that it finds:
// entries of a log are known by their times. What happened meanwhile and cannot be found any more is a gap with its cause.
package recorder

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/record"
)

const (
	// readInterval is how often logs are read, saveInterval how often records are written that have changed.
	readInterval = 200 * time.Millisecond
	saveInterval = time.Second
	// pruneInterval is how often old records are removed.
	pruneInterval = time.Hour
)

// Recorder records the jobs of a cluster.
type Recorder struct {
	store *record.Store
	// synced say that everything which the caches have at first was seen.
	synced []toolscache.InformerSynced

	mu sync.Mutex // guards what follows
	// jobs are those whose records may still change; settled are those that need nothing as long as they stay as they are.
	jobs    map[jobKey]*job
	settled map[types.UID]*settledJob
	// owners are the jobs of pods, by the pods' UIDs; present says which pods the API server has; early are events about pods that were
	// not seen yet.
	owners  map[types.UID]jobKey
	present map[types.UID]bool
	early   []*corev1.Event

	logs  logSource
	usage usage
	// namespaceUID is nil if the UIDs of namespaces are not recorded.
	namespaceUID func(name string) types.UID
	problem      string // the last error that was logged
	// failures is how often something was not recorded and is to be retried.
	failures int64
	saved    time.Time
	pruned   time.Time
}

// Sources are where a recorder finds what the API server does not tell.
type Sources struct {
	// LogDir is kubelet's directory of logs on a node. If it is nil, logs are read from the API server by Pods, at most Streams of them at once.
	LogDir  func(node string) string
	Pods    corev1client.PodsGetter
	Streams int
	// NamespaceUID is the UID of a namespace, empty if it is not known. It may be nil.
	NamespaceUID func(name string) types.UID
	// Usage is what pods use now, by namespace and name. It is nil if nothing measures that.
	Usage func() map[types.NamespacedName]Use
}

// New makes a recorder that continues what is in the store.
func New(store *record.Store, from Sources) (*Recorder, error) {
	r := &Recorder{
		store: store, jobs: map[jobKey]*job{}, settled: map[types.UID]*settledJob{}, owners: map[types.UID]jobKey{}, present: map[types.UID]bool{},
		usage: usage{read: from.Usage, pods: map[types.UID]*meanUse{}}, namespaceUID: from.NamespaceUID,
	}
	if from.LogDir != nil {
		r.logs = newLogs(store, from.LogDir)
	} else {
		r.logs = newFollower(store, from.Pods, from.Streams)
	}
	summaries, err := store.Summaries()
	if err != nil {
		return nil, err
	}
	for _, summary := range summaries {
		if !summary.Deleted.IsZero() {
			continue
		}
		if summary.Over() && summary.Complete {
			r.settled[summary.UID] = &settledJob{Summary: summary}
			continue
		}
		old, err := store.LoadFetched(summary.Namespace, summary.UID)
		switch {
		case err == nil:
			j := newJob(summary.Namespace, summary.UID)
			r.jobs[j.key()] = j
			r.resume(j, old)
		case !errors.Is(err, record.ErrNone): // if the job still exists, its record is read again
			klog.ErrorS(err, "The record of a job cannot be continued", "namespace", summary.Namespace, "job", summary.Name)
		}
	}
	return r, nil
}

// Watch lets the recorder learn of all jobs, their pods and events. The caches may not have started yet.
func (r *Recorder) Watch(ctx context.Context, caches cache.Cache) error {
	watch := func(example client.Object, handler toolscache.ResourceEventHandlerDetailedFuncs) error {
		informer, err := caches.GetInformer(ctx, example, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		registered, err := informer.AddEventHandler(handler)
		if err == nil {
			r.synced = append(r.synced, registered.HasSynced)
		}
		return err
	}
	for _, kind := range kinds.All {
		if err := watch(kind.New(), handler(func(o manifest.Object, gone bool) { r.jobChanged(kind, o, gone) })); err != nil {
			return err
		}
	}
	if err := watch(&corev1.Pod{}, handler(r.podChanged)); err != nil {
		return err
	}
	return watch(&corev1.Event{}, handler(func(e *corev1.Event, gone bool) {
		if !gone {
			r.eventHappened(e)
		}
	}))
}

// handler calls changed for every object of an informer when it appears, changes and goes.
func handler[O any](changed func(object O, gone bool)) toolscache.ResourceEventHandlerDetailedFuncs {
	call := func(object any, gone bool) {
		if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if o, ok := object.(O); ok {
			changed(o, gone)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, _ bool) { call(object, false) },
		UpdateFunc: func(_, object any) { call(object, false) },
		DeleteFunc: func(object any) { call(object, true) },
	}
}

// Start records until ctx ends.
func (r *Recorder) Start(ctx context.Context) error {
	if toolscache.WaitForCacheSync(ctx.Done(), r.synced...) {
		r.markUnseen(time.Now())
	}
	tick := time.NewTicker(readInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			r.step(now)
		}
	}
}

// step reads logs and, if it is time, writes records and removes old ones.
func (r *Recorder) step(now time.Time) {
	r.record(now)
	if now.Sub(r.pruned) >= pruneInterval && !r.pruned.IsZero() {
		r.prune(now) // without the lock: an object store may take long
	}
	if r.pruned.IsZero() {
		r.pruned = now.Add(time.Minute - pruneInterval) // not while the cluster starts
	}
}

func (r *Recorder) record(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.logs.read(now)
	if now.Sub(r.saved) >= saveInterval {
		r.saved = now
		if saveErr := r.save(now); err == nil {
			err = saveErr
		}
	}
	if useErr := r.measure(now); err == nil {
		err = useErr
	}
	r.report(err)
}

// Drain records what is still to be read. It is called when all containers have ended, before the process does.
func (r *Recorder) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	err := r.logs.drain(now)
	if saveErr := r.save(now); err == nil {
		err = saveErr
	}
	if r.store.PruneDue(now) {
		r.prune(now)
	}
	r.report(err)
}

func (r *Recorder) prune(now time.Time) {
	r.pruned = now
	done, err := r.store.Prune(r.store.Limits, now)
	if err != nil {
		klog.ErrorS(err, "Old records of jobs are not removed")
	} else if done.Jobs > 0 {
		klog.InfoS("Old records of jobs are removed", "jobs", done.Jobs, "bytes", done.Bytes)
	}
	for _, why := range done.Unreadable {
		klog.ErrorS(why, "The record of a job is not removed")
	}
}

// report logs an error once, until there is another or none.
func (r *Recorder) report(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
		r.failures++
	}
	if problem != r.problem && err != nil {
		klog.ErrorS(err, "Recording of jobs fails and is retried")
	} else if problem != r.problem {
		klog.InfoS("Recording of jobs works again")
	}
	r.problem = problem
}
