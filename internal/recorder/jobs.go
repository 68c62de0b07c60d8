package recorder

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/story"
)

// jobKey identifies a job. The UID alone does not: the owner references of a pod and what an event is about are free text, and anybody who may
// write these in one namespace could claim to belong to a job of another.
type jobKey struct {
	namespace string
	uid       types.UID
}

// validUID is a UID as the API server makes them. Others are not names of directories that we want.
var validUID = regexp.MustCompile(`^[0-9a-zA-Z-]+$`)

// settledJob is a job that is over, whose record is complete.
type settledJob struct {
	record.Summary
	// seen says that this process has seen the job as it is in the record.
	seen bool
}

// maxEarly is how many events are kept that are about jobs and pods which were not seen yet.
const maxEarly = 1000

// job is a job that is being recorded.
type job struct {
	namespace string
	uid       types.UID
	// namespaceUID is the UID of the namespace, empty if it is not known.
	namespaceUID types.UID
	// summary and attempts are taken from the object when it is seen. The object is nil until then.
	summary  record.Summary
	attempts map[int32]record.Attempt
	object   json.RawMessage
	pods     map[types.UID]*record.Pod
	events   map[types.UID]corev1.Event
	dirty    bool
	// dropped is the first attempt that is not dropped yet, beginning with keptFirst; droppedRuns the same of the runs of a container.
	dropped     int32
	droppedRuns map[string]int32
	// seen says that this process has seen the job. unread says that the job may have a record that could not be read yet, so it must not be replaced.
	seen, unread bool
	// listed is the summary that the index has.
	listed record.Summary
}

func (j *job) key() jobKey { return jobKey{j.namespace, j.uid} }

func newJob(namespace string, uid types.UID) *job {
	return &job{
		namespace: namespace, uid: uid, attempts: map[int32]record.Attempt{}, pods: map[types.UID]*record.Pod{}, events: map[types.UID]corev1.Event{}, droppedRuns: map[string]int32{},
	}
}

// resume continues a record. What this process has seen of the job is newer. Logs that were being read are opened at once, before kubelet removes
// them.
func (r *Recorder) resume(j *job, old *record.Record) {
	j.listed = old.Summary
	if j.namespaceUID == "" {
		j.namespaceUID = old.Summary.NamespaceUID
		j.summary.NamespaceUID = j.namespaceUID
	}
	if j.object == nil {
		j.summary, j.object = old.Summary, old.Object
	} else if j.summary.Deleted.IsZero() {
		j.summary.Deleted, j.summary.Unseen = old.Summary.Deleted, old.Summary.Unseen
	}
	for _, a := range old.Attempts {
		if _, ok := j.attempts[a.Number]; !ok {
			j.attempts[a.Number] = a
		}
	}
	for _, p := range old.Pods {
		if j.pods[p.Pod.UID] != nil {
			continue
		}
		pod := p
		j.pods[p.Pod.UID] = &pod
		r.owners[p.Pod.UID] = j.key()
		if !p.Complete {
			r.logs.watch(j.uid, &pod.Pod, !p.Gone.IsZero())
		}
	}
	for _, e := range old.Events {
		if _, ok := j.events[e.UID]; !ok {
			j.events[e.UID] = e
		}
	}
	if s := r.settled[j.uid]; s != nil {
		j.seen = j.seen || s.seen
		delete(r.settled, j.uid)
	}
}

// find is a job that is being recorded. One that has a record is continued.
func (r *Recorder) find(namespace string, uid types.UID) *job {
	key := jobKey{namespace, uid}
	if r.jobs[key] == nil {
		r.jobs[key] = newJob(namespace, uid)
		r.jobs[key].unread = true
		_ = r.load(r.jobs[key]) // save tries again, and reports it
	}
	return r.jobs[key]
}

// load continues the record of a job if there is one. A damaged one is set aside, and a new one begins: the object of the job has most of what
// was in it. If the record cannot be read now, the job stays unread.
func (r *Recorder) load(j *job) error {
	old, err := r.store.LoadFetched(j.namespace, j.uid)
	switch {
	case err == nil:
		r.resume(j, old)
	case errors.Is(err, record.ErrDamaged):
		aside, asideErr := r.store.SetAside(j.namespace, j.uid)
		klog.ErrorS(errors.Join(err, asideErr), "The record of a job begins again", "was", aside)
	case !errors.Is(err, record.ErrNone):
		return err
	}
	j.unread = false
	return nil
}

// jobChanged takes a job as it is now.
func (r *Recorder) jobChanged(kind kinds.Kind, o manifest.Object, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	settled, ok := r.settled[o.GetUID()]
	if ok && settled.Version == o.GetResourceVersion() && !gone {
		settled.seen = true
		return
	}
	m := kind.Read(o)
	if ended := m.Status.CompletionTime; r.jobs[jobKey{o.GetNamespace(), o.GetUID()}] == nil && !ok && !ended.IsZero() && time.Since(ended) > r.store.Limits.Age {
		return // its record was removed because of its age
	}
	j := r.find(o.GetNamespace(), o.GetUID())
	if !j.seen {
		j.seen = true
		defer r.takeEarly()
	}
	if j.summary.NamespaceUID == "" && r.namespaceUID != nil {
		j.namespaceUID = r.namespaceUID(j.namespace)
	}
	if err := j.observe(kind, o, m, gone); err != nil {
		r.report(err)
	}
}

// observe takes over what is recorded of a job's object.
func (j *job) observe(kind kinds.Kind, o manifest.Object, m *manifest.Manifest, gone bool) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("recording job %s: %w", o.GetName(), err)
	}
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Name()
	record.Mask(content)
	if j.object, err = json.Marshal(content); err != nil {
		return fmt.Errorf("recording job %s: %w", o.GetName(), err)
	}
	now := time.Now()
	s := story.Story{Job: m.Job, Status: m.Status, Created: o.GetCreationTimestamp().Time, Now: now}
	deleted, unseen := j.summary.Deleted, j.summary.Unseen
	if gone && deleted.IsZero() {
		deleted = now
	}
	state := s.State()
	if m.Job.Deleting && m.Status.Finished() { // how it ended matters more
		s.Job.Deleting = false
		state = s.State()
	}
	j.summary = record.Summary{
		Namespace: j.namespace, UID: j.uid, Kind: kind.Name(), Name: o.GetName(), Created: s.Created, Started: m.Status.StartTime, Ended: m.Status.CompletionTime,
		State: state, Message: s.Message(), Attempts: s.Attempt(), Retries: m.Status.Retries, Disruptions: m.Status.Disruptions,
		Deleted: deleted, Unseen: unseen, Version: o.GetResourceVersion(), Replicas: replicas(m), NamespaceUID: j.namespaceUID,
	}
	for _, a := range m.Status.Attempts {
		if a.Number < j.dropped && a.Number >= keptFirst {
			continue
		}
		j.attempts[a.Number] = record.Attempt{Number: a.Number, Start: a.Start, End: a.End, Reason: a.Reason, Message: a.Message}
	}
	j.dirty = true
	return nil
}

func replicas(m *manifest.Manifest) (n int32) {
	for _, role := range m.Job.Roles {
		n += m.Job.Size(role)
	}
	return n
}

// podChanged takes a pod as it is now.
func (r *Recorder) podChanged(pod *corev1.Pod, gone bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || !validUID.MatchString(string(owner.UID)) || !isJob(owner.Kind) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.present[pod.UID] = !gone
	if _, ok := r.settled[owner.UID]; ok && !gone {
		return
	}
	j := r.find(pod.Namespace, owner.UID)
	p := j.pods[pod.UID]
	if p == nil {
		p = &record.Pod{}
		j.pods[pod.UID] = p
		r.owners[pod.UID] = j.key()
	}
	if p.Pod.ResourceVersion == pod.ResourceVersion && !gone {
		return // it is the one of the record
	}
	p.Pod = *pod.DeepCopy()
	if gone && p.Gone.IsZero() {
		p.Gone = time.Now()
	}
	j.dirty = true
	if !p.Complete {
		r.logs.watch(j.uid, &p.Pod, gone)
	}
	r.takeEarly()
}

// eventHappened takes an event if it is about a job, one of its pods or its autoscaler.
func (r *Recorder) eventHappened(e *corev1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.take(e) && (e.InvolvedObject.Kind == "Pod" || isJob(e.InvolvedObject.Kind)) {
		r.early = append(r.early, e)
		r.early = r.early[max(0, len(r.early)-maxEarly):]
	}
}

// isJob reports whether a kind is one of ours.
func isJob(kind string) bool {
	return slices.ContainsFunc(kinds.All, func(k kinds.Adapter) bool { return k.Name() == kind })
}

// takeEarly takes the events about jobs and pods that were not known when the events came.
func (r *Recorder) takeEarly() { r.early = slices.DeleteFunc(r.early, r.take) }

func (r *Recorder) take(e *corev1.Event) bool {
	j := r.jobs[jobKey{e.Namespace, e.InvolvedObject.UID}]
	if s := r.settled[e.InvolvedObject.UID]; s != nil && s.Namespace == e.Namespace {
		j = r.find(s.Namespace, s.UID) // something still happens to it
	}
	if owner, ok := r.owners[e.InvolvedObject.UID]; ok && j == nil && owner.namespace == e.Namespace {
		j = r.jobs[owner]
	}
	if e.InvolvedObject.Kind == "HorizontalPodAutoscaler" {
		for _, candidate := range r.jobs {
			if candidate.namespace == e.InvolvedObject.Namespace && candidate.summary.Name == e.InvolvedObject.Name && candidate.summary.Deleted.IsZero() {
				j = candidate
			}
		}
	}
	if j == nil {
		return false
	}
	if known, ok := j.events[e.UID]; !ok || known.ResourceVersion != e.ResourceVersion {
		j.events[e.UID] = *e.DeepCopy()
		j.dirty = true
	}
	return true
}

// markUnseen notices what was deleted while nothing was recorded: jobs and pods of the records that the caches do not have.
func (r *Recorder) markUnseen(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.jobs {
		if !j.seen && j.object != nil && j.summary.Deleted.IsZero() {
			j.summary.Deleted, j.summary.Unseen, j.dirty = now, true, true
		}
		for uid, p := range j.pods {
			if !r.present[uid] && p.Gone.IsZero() {
				p.Gone, j.dirty = now, true
				if !p.Complete {
					r.report(r.logs.lose(j.uid, &p.Pod, now))
				}
			}
		}
	}
	for _, s := range r.settled {
		if !s.seen {
			j := r.find(s.Namespace, s.UID)
			j.summary.Deleted, j.summary.Unseen, j.dirty = now, true, true
		}
	}
}

// save writes the records that have changed, and forgets the jobs that are settled.
func (r *Recorder) save(now time.Time) (failed error) {
	for _, j := range r.jobs {
		if r.logs.settle(j, now) {
			j.dirty = true
		}
		if j.object == nil {
			continue
		}
		if j.dirty {
			if err := r.write(j, now); err != nil {
				failed = err
				continue
			}
		}
		if j.summary.Over() && j.summary.Complete {
			r.forget(j)
		}
	}
	return failed
}

func (r *Recorder) write(j *job, now time.Time) error {
	if j.unread {
		if err := r.load(j); err != nil {
			return err
		}
	}
	boundErr := r.bound(j) // what is too much is dropped the next time
	if err := r.store.Save(j.record(now)); err != nil {
		return err
	}
	if j.listed != j.summary {
		if err := r.store.List(j.summary); err != nil {
			return err
		}
		j.listed = j.summary
	}
	j.dirty = false
	return boundErr
}

// forget removes a job from memory. If it changes again, its record is read again.
func (r *Recorder) forget(j *job) {
	if j.summary.Deleted.IsZero() {
		r.settled[j.uid] = &settledJob{Summary: j.summary, seen: j.seen}
	}
	delete(r.jobs, j.key())
	for pod := range j.pods {
		delete(r.owners, pod)
		delete(r.present, pod)
	}
}

func (j *job) record(now time.Time) *record.Record {
	out := &record.Record{Summary: j.summary, Updated: now, Object: j.object}
	for _, a := range j.attempts {
		out.Attempts = append(out.Attempts, a)
	}
	slices.SortFunc(out.Attempts, func(a, b record.Attempt) int { return cmp.Compare(a.Number, b.Number) })
	for _, p := range j.pods {
		out.Pods = append(out.Pods, *p)
	}
	slices.SortFunc(out.Pods, func(a, b record.Pod) int {
		return cmp.Or(a.Pod.CreationTimestamp.Compare(b.Pod.CreationTimestamp.Time), strings.Compare(a.Pod.Name, b.Pod.Name))
	})
	for _, e := range j.events {
		out.Events = append(out.Events, e)
	}
	slices.SortFunc(out.Events, func(a, b corev1.Event) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(string(a.UID), string(b.UID)))
	})
	return out
}
