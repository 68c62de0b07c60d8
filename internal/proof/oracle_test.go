package proof

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
)

// class is whose fault a failure truly was.
type class string

const (
	application class = "application"
	disruption  class = "disruption"
)

// truth is what truly happened to a pod.
type truth struct {
	// ended says that the kubelet of the test has ended it.
	done, failed, removed, refused, ended bool
}

// oracle reads what the API server tells, and keeps its own count of what happened. It does not use the rules.
type oracle struct {
	h    *history
	seen int // how many changes it has read
	job  types.UID
	// gang says that a failure restarts all replicas.
	gang   bool
	stored kubeflowv1.Job
	status kubeflowv1.JobStatus
	exists map[types.UID]client.Object
	pods   map[string]*corev1.Pod
	truths map[types.UID]*truth
	// harmed is what truly went wrong, by attempt and class.
	harmed map[int32]map[class]int
	// end is the verdict as it was first told.
	end *kubeflowv1.JobCondition
	// completed are the replicas that the job's status told to have succeeded and truly have, by attempt and name.
	completed map[string]bool
	deletedAt time.Time
	created   int
}

func newOracle(h *history) *oracle {
	return &oracle{
		h: h, exists: map[types.UID]client.Object{}, pods: map[string]*corev1.Pod{}, truths: map[types.UID]*truth{},
		harmed: map[int32]map[class]int{}, completed: map[string]bool{},
	}
}

// read reads what the API server has told since the last time.
func (o *oracle) read() {
	changes := o.h.chronicle.since(o.seen)
	o.seen += len(changes)
	for _, c := range changes {
		if c.EventType == watch.Deleted {
			delete(o.exists, c.obj.GetUID())
		} else {
			o.exists[c.obj.GetUID()] = c.obj
		}
		switch obj := c.obj.(type) {
		case *corev1.Pod:
			o.readPod(c, obj)
		case kubeflowv1.Job:
			o.readJob(c, obj)
		}
	}
}

func (o *oracle) readPod(c change, pod *corev1.Pod) {
	if t := o.truthOf(pod); !o.ours(pod) && (pod.DeletionTimestamp != nil || c.EventType == watch.Deleted) && !t.removed && !t.ended {
		o.h.fail("9: %s of another job is deleted", pod.Name)
	}
	switch c.EventType {
	case watch.Deleted:
		if pod.DeletionGracePeriodSeconds != nil {
			o.checkForced(pod)
		}
		delete(o.pods, pod.Name)
		return
	case watch.Added:
		o.checkCreated(pod)
		o.created++
	}
	if last := o.pods[pod.Name]; last != nil && last.UID == pod.UID && !sameOwner(last, pod) {
		o.h.fail("9: %s was given another owner", pod.Name)
	}
	o.pods[pod.Name] = pod
}

func sameOwner(a, b *corev1.Pod) bool {
	x, y := metav1.GetControllerOf(a), metav1.GetControllerOf(b)
	return x != nil && y != nil && x.UID == y.UID
}

func (o *oracle) ours(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.UID == o.job
}

func attemptOf(pod *corev1.Pod) int32 {
	n, _ := strconv.Atoi(pod.Labels[naming.LabelAttempt])
	return int32(n)
}

// checkCreated sees that a pod may be created: invariants 3, 4 and 5. A controller that was replaced while a request was on its way
// knows nothing of that, and what it creates is only removed later.
func (o *oracle) checkCreated(pod *corev1.Pod) {
	if !o.ours(pod) || o.h.doubted {
		return
	}
	attempt := attemptOf(pod)
	for _, other := range o.pods {
		if o.ours(other) && attemptOf(other) < attempt {
			o.h.fail("3: %s of attempt %d is created while %s of attempt %d exists", pod.Name, attempt, other.Name, attemptOf(other))
		}
	}
	if o.completed[fmt.Sprint(attempt, pod.Name)] {
		o.h.fail("5: %s has succeeded in attempt %d and is run again", pod.Name, attempt)
	}
	if o.end != nil {
		o.h.fail("4: %s is created after the verdict %s", pod.Name, o.end.Type)
	}
	if attempt != o.status.Attempt {
		o.h.fail("3: %s is created for attempt %d, and the job is at %d", pod.Name, attempt, o.status.Attempt)
	}
	if o.status.NotBefore != nil && o.h.now().Before(o.status.NotBefore.Time) && !o.h.jumped {
		o.h.fail("6: %s is created before its attempt may start at %s", pod.Name, o.status.NotBefore)
	}
}

// checkForced sees that a pod which some kubelet may still run is not removed by the controller: invariant 3. The kubelets of the test
// say that themselves, and so does a user.
func (o *oracle) checkForced(pod *corev1.Pod) {
	t := o.truthOf(pod)
	if pod.Spec.NodeName == "" || over(pod) || *pod.DeletionGracePeriodSeconds > 0 || t.removed || t.ended {
		return
	}
	if !o.h.nodes.lost[pod.Spec.NodeName] {
		o.h.fail("3: %s is removed by force, and its node may be running it", pod.Name)
	}
}

func (o *oracle) readJob(c change, obj kubeflowv1.Job) {
	if obj.GetUID() != o.job {
		return
	}
	if c.EventType == watch.Deleted {
		o.stored, o.deletedAt = nil, c.at
		return
	}
	was := o.status
	o.stored, o.status = obj, *obj.Parts().Status
	if len(o.status.Conditions) == 0 {
		return
	}
	o.checkVerdict()
	o.checkConditions()
	o.checkCounts(was)
	o.noteCompleted()
}

// checkVerdict: invariant 1, a verdict never changes.
func (o *oracle) checkVerdict() {
	terminal := 0
	for _, c := range o.status.Conditions {
		if c.Type != kubeflowv1.JobSucceeded && c.Type != kubeflowv1.JobFailed {
			continue
		}
		terminal++
		if c.Status != corev1.ConditionTrue {
			o.h.fail("1: the terminal condition %s is %s", c.Type, c.Status)
		}
		if o.end == nil {
			o.end = &c
		}
		if o.end.Type != c.Type || o.end.Message != c.Message || !o.end.LastTransitionTime.Equal(&c.LastTransitionTime) {
			o.h.fail("1: the verdict was %+v and is %+v", *o.end, c)
		}
	}
	if terminal > 1 || o.end != nil && (terminal == 0 || o.status.CompletionTime == nil) {
		o.h.fail("1: %d verdicts, completed at %s", terminal, o.status.CompletionTime)
	}
}

// checkConditions sees that the newest condition is the last, holds, and is the newest by its time too.
func (o *oracle) checkConditions() {
	newest := o.status.Conditions[len(o.status.Conditions)-1]
	if newest.Status != corev1.ConditionTrue {
		o.h.fail("the last condition %s does not hold", newest.Type)
	}
	for _, c := range o.status.Conditions {
		if newest.Type != kubeflowv1.JobSuspended && c.Type != newest.Type && c.Status == corev1.ConditionTrue &&
			newest.LastTransitionTime.Sub(c.LastTransitionTime.Time) < time.Second {
			o.h.fail("%s is not newer than %s", newest.Type, c.Type)
		}
	}
}

// checkCounts: invariants 2 and 7, a failure is counted once, and nothing is counted that did not happen.
func (o *oracle) checkCounts(was kubeflowv1.JobStatus) {
	is := o.status
	if is.Attempt < was.Attempt || is.Retries < was.Retries || is.Disruptions < was.Disruptions {
		o.h.fail("2: a count went down: attempt %d to %d, retries %d to %d, disruptions %d to %d",
			was.Attempt, is.Attempt, was.Retries, is.Retries, was.Disruptions, is.Disruptions)
	}
	failed := is.Attempt - was.Attempt
	for _, a := range is.Attempts {
		if a.EndTime == nil || a.Number < was.Attempt {
			continue
		}
		switch harm := o.harmed[a.Number]; {
		case a.Reason == "Restarted" && harm[application] == 0, a.Reason == "Disrupted" && harm[disruption] == 0:
			o.h.fail("7: attempt %d ended by nothing that happened: %s: %s", a.Number, a.Reason, a.Why)
		case a.Reason != "Restarted" && a.Reason != "Disrupted" && a.Number < is.Attempt:
			failed-- // scaled, suspended
		}
	}
	counted := is.Retries + is.Disruptions - was.Retries - was.Disruptions
	if o.gang && counted != failed && o.end == nil {
		o.h.fail("2: %d attempts failed, %d are counted", failed, counted)
	}
	happened := map[class]int{}
	for _, byClass := range o.harmed {
		for class, n := range byClass {
			happened[class] += n
		}
	}
	if int(is.Retries) > happened[application] || int(is.Disruptions) > happened[disruption] {
		o.h.fail("7: %d retries and %d disruptions are counted, %v happened", is.Retries, is.Disruptions, happened)
	}
}

// noteCompleted remembers the replicas that succeeded and are told to have.
func (o *oracle) noteCompleted() {
	for role, s := range o.status.ReplicaStatuses {
		for _, part := range strings.Split(s.CompletedIndexes, ",") {
			from, to, isRange := strings.Cut(part, "-")
			first, err := strconv.Atoi(from)
			last, lastErr := strconv.Atoi(to)
			if err != nil || isRange && lastErr != nil {
				continue
			}
			for i := first; i <= max(first, last); i++ {
				o.completed[fmt.Sprint(o.status.Attempt, o.h.job.Name, "-", strings.ToLower(string(role)), "-", i)] = true
			}
		}
	}
}

// truthOf is what truly happened to a pod.
func (o *oracle) truthOf(pod *corev1.Pod) *truth {
	if o.truths[pod.UID] == nil {
		o.truths[pod.UID] = &truth{}
	}
	return o.truths[pod.UID]
}

// harm notes that something truly went wrong with a pod.
func (o *oracle) harm(pod *corev1.Pod, c class) {
	attempt := attemptOf(pod)
	if o.harmed[attempt] == nil {
		o.harmed[attempt] = map[class]int{}
	}
	o.harmed[attempt][c]++
	o.truthOf(pod).failed = true
}

// exits notes how a training ended. What ends while its pod is being deleted was ended by that.
func (o *oracle) exits(pod *corev1.Pod, code int32, again bool) {
	switch {
	case pod.DeletionTimestamp != nil:
	case code == 0:
		o.truthOf(pod).done = true
	default:
		o.harm(pod, application)
		o.truthOf(pod).failed = !again
	}
}

// checkDue: invariant 6, what is due is done. It holds where the controller works and the clock is right.
func (o *oracle) checkDue() {
	if o.stored == nil || o.h.jumped || o.h.isAway() {
		return
	}
	policy, s := o.stored.Parts().Policy(), o.status
	due := func(what string, since *metav1.Time, seconds int64) {
		const never = 1 << 32 // s; more does not fit into a duration
		if since != nil && seconds < never && o.h.now().After(since.Add(time.Duration(seconds)*time.Second+time.Second)) {
			o.h.fail("6: %s was due %d s after %s, and it is %s", what, seconds, since, o.h.now())
		}
	}
	if policy.TTLSecondsAfterFinished != nil && o.end != nil {
		due("the deletion of the job", s.CompletionTime, int64(*policy.TTLSecondsAfterFinished))
	}
	if policy.ActiveDeadlineSeconds != nil && o.end == nil && !suspended(o.stored) {
		due("the verdict of the active deadline", s.StartTime, *policy.ActiveDeadlineSeconds)
	}
}

func suspended(job kubeflowv1.Job) bool {
	suspend := job.Parts().RunPolicy.Suspend
	return suspend != nil && *suspend
}

// checkRest sees that a job that has come to rest is where it should be: invariants 4 and 8, and that nothing was forgotten.
func (o *oracle) checkRest() {
	h := o.h
	before := h.writes
	h.process.queue.Add(h.request())
	h.rest()
	if h.writes > before {
		h.fail("8: a job at rest led to %d requests", h.writes-before)
	}
	if o.stored == nil {
		for _, obj := range o.exists {
			if owner := metav1.GetControllerOf(obj); owner != nil && owner.UID == o.job && resourceOf(obj) == pods && !h.nodes.lost[obj.(*corev1.Pod).Spec.NodeName] {
				h.fail("the job is gone, and %s is not", obj.GetName())
			}
		}
		return
	}
	policy := o.stored.Parts().Policy()
	keeps := policy.CleanPodPolicy != nil && *policy.CleanPodPolicy == kubeflowv1.CleanPodPolicyNone
	for _, pod := range o.pods {
		switch {
		case !o.ours(pod):
		case o.end != nil && !over(pod) && !keeps:
			h.fail("4: the job is %s, and %s is %s", o.end.Type, pod.Name, pod.Status.Phase)
		case suspended(o.stored) && o.end == nil:
			h.fail("the job is suspended, and %s exists", pod.Name)
		case o.end == nil && attemptOf(pod) != o.status.Attempt:
			h.fail("3: %s of attempt %d is left, and the job is at %d", pod.Name, attemptOf(pod), o.status.Attempt)
		}
	}
	if o.end == nil && !suspended(o.stored) {
		o.checkComplete()
	}
}

// checkComplete sees that every replica of a job that runs has its pod, or has succeeded, or is given up.
func (o *oracle) checkComplete() {
	given := map[string]bool{}
	for _, r := range o.status.Records {
		given[fmt.Sprintf("%s-%d", strings.ToLower(string(r.Role)), r.Index)] = r.Lost
	}
	for role, spec := range *o.stored.Parts().ReplicaSpecs {
		n := o.h.size(role, spec)
		for i := range n {
			name := fmt.Sprintf("%s-%s-%d", o.h.job.Name, strings.ToLower(string(role)), i)
			if o.pods[name] == nil && !o.completed[fmt.Sprint(o.status.Attempt, name)] && !given[replica(o.h.job.Name, name)] && o.status.FinishingSince == nil {
				o.h.fail("%s has no pod, and nobody will create one", name)
			}
		}
		for name := range o.pods {
			index, err := strconv.Atoi(strings.TrimPrefix(name, fmt.Sprintf("%s-%s-", o.h.job.Name, strings.ToLower(string(role)))))
			if err == nil && int32(index) >= n {
				o.h.fail("the job has %d replicas of %s, and still %s", n, role, name)
			}
		}
	}
}
