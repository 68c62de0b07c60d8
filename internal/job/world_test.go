package job

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/api/naming"
)

// world is a small Kubernetes around one job: an API server with names, UIDs, versions and graceful deletion, nodes
// whose kubelets run and stop pods, and a controller that carries decisions out and may crash between any two calls.
type world struct {
	now time.Time

	// What the API server holds.
	job      Job
	status   Status
	version  int // of the job object
	jobGone  bool
	pods     map[string]*corev1.Pod
	children map[string]Child // by kind and name
	uids     int
	// history is what a cache may still show: the pods after each change.
	history []map[string]*corev1.Pod
	jobs    []Job // the job's spec at each version
	// statuses are its statuses at each version.
	statuses []Status
	// How the API server is minded.
	quota     int // pods at most, -1 for no limit
	invalid   string
	deadNodes map[string]NodeState // kubelets that run nothing any more
	broken    map[string]bool      // nodes whose kubelets report, but can stop nothing
	leaving   map[string]bool      // nodes that are cordoned
	behind    bool                 // new processes may begin with an old list of pods

	// What the controller holds. A new process starts with neither.
	seen      int // it does not look behind this point of the history
	seenJob   int
	fresh     bool
	rejection *Rejection
	looked    time.Time // when it last looked at nodes

	// watch is called with everything the controller does; the properties listen there.
	watch listener
}

type listener interface {
	decided(o Observed, d Decision)
	recorded(o Observed, d Decision)
	created(pod *corev1.Pod)
	deleting(pod *corev1.Pod, force bool)
}

// chaos is what goes wrong in one pass of the controller.
type chaos struct {
	lag      int  // how far its caches are behind, if they may be
	crash    int  // die at this call, counted from 1; 0: live
	lost     bool // the fatal call was carried out, and only its reply is lost
	noCrash  bool // ... and the process survives the failed call
	conflict bool // somebody else changes the job in between
	lazy     bool // a write that may wait, waits
}

var epoch = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

func newWorld(j Job) *world {
	w := &world{now: epoch, job: j, pods: map[string]*corev1.Pod{}, children: map[string]Child{}, quota: -1, deadNodes: map[string]NodeState{}, broken: map[string]bool{}, leaving: map[string]bool{}}
	w.jobs, w.statuses = []Job{j}, []Status{{}}
	w.changed()
	return w
}

// changed notes the state of the pods for caches that lag.
func (w *world) changed() {
	snapshot := make(map[string]*corev1.Pod, len(w.pods))
	for name, pod := range w.pods {
		snapshot[name] = pod.DeepCopy()
	}
	w.history = append(w.history, snapshot)
}

func (w *world) edit(change func(*Job)) {
	w.job.Roles = slices.Clone(w.job.Roles)
	change(&w.job)
	w.job.Generation++
	w.newVersion()
}

// newVersion is a change of the job object.
func (w *world) newVersion() {
	w.version++
	w.jobs, w.statuses = append(w.jobs, w.job), append(w.statuses, w.status.clone())
}

func (w *world) observe(lag int) Observed {
	at := max(w.seen, len(w.history)-1-lag)
	w.seen = at
	w.seenJob = max(w.seenJob, w.version-lag)
	j, status := w.jobs[w.seenJob], w.statuses[w.seenJob]
	if w.seenJob == w.version {
		status = w.status
	}
	return Observed{
		Now: w.now, Job: j, Status: status.clone(), Fresh: w.fresh, Pods: sorted(w.history[at]), Children: w.observedChildren(j), Rejection: w.rejection, NodesLooked: w.looked,
	}
}

func sorted(pods map[string]*corev1.Pod) []*corev1.Pod {
	var list []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		list = append(list, pods[name].DeepCopy())
	}
	return list
}

// observedChildren are the children there are, with what the job wants of an autoscaler that differs.
func (w *world) observedChildren(j Job) []Child {
	var list []Child
	for _, name := range slices.Sorted(maps.Keys(w.children)) {
		child := w.children[name]
		for _, want := range j.Children {
			if want.name() != name || want.ChildKind != Autoscalers {
				continue
			}
			have, wanted := child.Object.(*autoscalingv2.HorizontalPodAutoscaler), want.Object.(*autoscalingv2.HorizontalPodAutoscaler)
			if !equality.Semantic.DeepEqual(have.Spec, wanted.Spec) {
				changed := have.DeepCopy()
				changed.Spec = wanted.Spec
				child.Changed = changed
			}
		}
		list = append(list, child)
	}
	return list
}

// scaler is the autoscaler of the job, nil if there is none.
func (w *world) scaler() *autoscalingv2.HorizontalPodAutoscaler {
	return autoscaler(slices.Collect(maps.Values(w.children)))
}

// reconcile is one pass of the controller. It returns the decision and whether it was carried out to the end.
func (w *world) reconcile(c chaos) (Decision, bool) {
	if w.jobGone {
		return Decision{}, true
	}
	o := w.observe(c.lag)
	d := Decide(o)
	for d.Asks() {
		if w.watch != nil {
			w.watch.decided(o, d)
		}
		o = w.answer(o, d.Ask)
		d = Decide(o)
	}
	if w.watch != nil {
		w.watch.decided(o, d)
	}
	if c.conflict {
		w.edit(func(*Job) {})
	}
	version, calls := w.seenJob, 0
	// call carries a request out, unless the process dies there. It returns whether the reply arrived.
	call := func(request func()) bool {
		calls++
		if calls == c.crash {
			if c.lost {
				request()
			}
			if !c.noCrash {
				w.crash()
			}
			return false
		}
		request()
		return true
	}
	return d, w.carryOut(o, d, version, c, call)
}

func (w *world) answer(o Observed, ask Ask) Observed {
	if ask.Job {
		w.seenJob, w.fresh = w.version, true
		o.Job, o.Status, o.Fresh = w.job, w.status.clone(), true
	}
	if ask.Pods {
		o.Pods, o.Live = sorted(w.pods), true
		w.seen = len(w.history) - 1
	}
	if o.Nodes == nil {
		o.Nodes = map[string]NodeState{}
	}
	for _, node := range ask.Nodes {
		o.Nodes[node], w.looked = NodeAlive, w.now
		if w.leaving[node] {
			o.Nodes[node] = NodeLeaving
		}
		if state := w.deadNodes[node]; state != "" {
			o.Nodes[node] = state
		}
	}
	return o
}

// crash is the end of the controller process. The next one lists everything afresh, unless its list came from an API
// server that is behind the one its predecessor spoke to.
func (w *world) crash() {
	w.rejection, w.seen, w.seenJob, w.fresh, w.looked = nil, len(w.history)-1, w.version, false, time.Time{}
	if w.behind {
		w.seen, w.seenJob = 0, 0
	}
}

func (w *world) carryOut(o Observed, d Decision, version int, c chaos, call func(func()) bool) bool {
	if d.Write == WriteNow || d.Write == WriteLater && !c.lazy {
		accepted := false
		if !call(func() { accepted = w.writeStatus(version, o, d) }) {
			w.seenJob, w.fresh = w.version, true // after a write of unknown outcome the job is read from the API server
			return false
		}
		if !accepted {
			w.seenJob, w.fresh = w.version, true // after a conflict, too
			return false
		}
	} else if w.watch != nil && d.Write == WriteNothing && reflect.DeepEqual(o.Status, w.status) {
		w.watch.recorded(o, d)
	}
	ok := true
	for _, del := range d.DeletePods {
		ok = call(func() {
			if now := w.pods[del.Pod.Name]; !del.Unchanged || now != nil && reflect.DeepEqual(now.Status, del.Pod.Status) {
				w.deletePod(del.Pod.Name, del.Pod.UID, del.Force)
			}
		}) && ok
		w.readOwn(ok)
		if !ok && !c.noCrash {
			return false
		}
	}
	for _, child := range d.DeleteChildren {
		if !call(func() { delete(w.children, child.name()) }) {
			return false
		}
	}
	for _, child := range d.UpdateChildren {
		if child.Changed == nil {
			child.Changed = child.Object
		}
		updated := Child{ChildKind: child.ChildKind, Object: child.Changed, Members: child.Members}
		if !call(func() { w.children[child.name()] = updated }) {
			return false
		}
	}
	if d.SizeJob && !call(func() { w.edit(func(j *Job) { j.Unsized, j.Misstated = false, false }) }) {
		return false
	}
	for _, child := range d.CreateChildren {
		if !call(func() { w.createChild(child, w.job.UID) }) {
			return false
		}
	}
	for _, r := range d.CreatePods {
		said := true
		if !call(func() { said = w.createPod(r, d.Status.Attempt) }) {
			return false
		}
		if !said {
			return false
		}
		w.readOwn(true)
	}
	if d.DeleteJob {
		return call(func() { w.jobGone = true })
	}
	return ok
}

// readOwn keeps the cache from going behind a write the controller knows of.
func (w *world) readOwn(known bool) {
	if known {
		w.seen = len(w.history) - 1
	}
}

func (w *world) writeStatus(version int, o Observed, d Decision) bool {
	if version != w.version {
		return false
	}
	w.status = d.Status.clone()
	w.newVersion()
	w.seenJob, w.fresh = w.version, true
	if w.watch != nil {
		w.watch.recorded(o, d)
	}
	return true
}

func (w *world) meta(name string, owner types.UID) metav1.ObjectMeta {
	w.uids++
	yes := true
	return metav1.ObjectMeta{
		Name: name, UID: types.UID("u" + strconv.Itoa(w.uids)), CreationTimestamp: metav1.NewTime(w.now),
		OwnerReferences: []metav1.OwnerReference{{Kind: w.job.Kind, Name: w.job.Name, UID: owner, Controller: &yes}},
	}
}

func (w *world) createChild(want Child, owner types.UID) {
	if _, exists := w.children[want.name()]; exists {
		return
	}
	child := Child{ChildKind: want.ChildKind, Object: want.DeepCopyObject().(Object), Members: want.Members}
	meta := w.meta(want.GetName(), owner)
	child.SetUID(meta.UID)
	child.SetCreationTimestamp(meta.CreationTimestamp)
	child.SetOwnerReferences(meta.OwnerReferences)
	w.children[child.name()] = child
}

// createPod makes the replica's pod, or notes why the API server would not. A name that is taken by our own pod is no
// refusal: the cache was behind.
func (w *world) createPod(r Replica, attempt int32) bool {
	name := w.job.PodName(r)
	switch old := w.pods[name]; {
	case old != nil && owned(old, w.job):
		return true
	case old != nil:
		return w.refuse("pod "+name, "a pod of that name exists already", false)
	case w.invalid != "":
		return w.refuse("pod "+name, w.invalid, true)
	case w.quota >= 0 && len(w.pods) >= w.quota:
		return w.refuse("pod "+name, "exceeded quota: pods="+strconv.Itoa(w.quota), false)
	}
	pod := w.newPod(r, attempt, w.job.UID)
	w.pods[name] = pod
	w.rejection = nil
	w.changed()
	if w.watch != nil {
		w.watch.created(pod)
	}
	return true
}

func (w *world) refuse(object, message string, invalid bool) bool {
	times := int32(1)
	if w.rejection != nil {
		times += w.rejection.Times
	}
	w.rejection = &Rejection{Object: object, Message: message, Invalid: invalid, At: w.now, Times: times}
	return false
}

func (w *world) newPod(r Replica, attempt int32, owner types.UID) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: w.meta(w.job.PodName(r), owner)}
	pod.Labels = map[string]string{
		naming.LabelReplicaType: strings.ToLower(r.Role), naming.LabelReplicaIndex: strconv.Itoa(int(r.Index)), naming.LabelAttempt: strconv.Itoa(int(attempt)),
	}
	if w.job.Elastic != nil {
		pod.Annotations = map[string]string{AnnotationBounds: w.job.Elastic.Bounds()}
	}
	if len(w.status.Avoided(w.job, w.now).Require) > 0 {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[AnnotationRequiresOtherNodes] = "true"
	}
	if w.job.Gang != nil && w.job.InGang(*w.job.role(r.Role)) {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr(w.job.GroupName(attempt))}
	}
	pod.Spec.RestartPolicy = w.job.PodRestartPolicy(r)
	pod.Spec.Containers = []corev1.Container{{Name: w.job.role(r.Role).Container}}
	pod.Status.Phase = corev1.PodPending
	return pod
}

// deletePod is graceful as the API server's: a pod that a kubelet runs is only marked, any other is gone at once.
func (w *world) deletePod(name string, uid types.UID, force bool) {
	pod := w.pods[name]
	if pod == nil || pod.UID != uid {
		return
	}
	if w.watch != nil {
		w.watch.deleting(pod, force)
	}
	if force || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		delete(w.pods, name)
		w.changed()
		return
	}
	if pod.DeletionTimestamp == nil {
		grace := int64(30)
		pod.DeletionTimestamp = &metav1.Time{Time: w.now.Truncate(time.Second).Add(30 * time.Second)}
		pod.DeletionGracePeriodSeconds = &grace
		w.changed()
	}
}

// What kubelets do.

func (w *world) start(pod *corev1.Pod, node string) {
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.main(pod).State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	w.changed()
}

// exit ends the training container. The kubelet restarts it in place where the pod's restart policy says so.
func (w *world) exit(pod *corev1.Pod, code int32, reason, message string) {
	main := w.main(pod)
	end := &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message, FinishedAt: metav1.NewTime(w.now.Truncate(time.Second))}
	main.State = corev1.ContainerState{Terminated: end}
	switch {
	case pod.DeletionTimestamp != nil:
	case code != 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		pod.Status.Phase = corev1.PodFailed
	case code == 0 && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways:
		pod.Status.Phase = corev1.PodSucceeded
	default:
		main.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		main.LastTerminationState = corev1.ContainerState{Terminated: end}
	}
	w.changed()
}

// again is the kubelet's restart in place.
func (w *world) again(pod *corev1.Pod) {
	main := w.main(pod)
	main.RestartCount++
	main.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	w.changed()
}

// end is a container's end at this moment.
func (w *world) end(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(w.now.Truncate(time.Second)),
	}}
}

// exceed is an eviction for the pod's own limit, which ends its training with the code.
func (w *world) exceed(pod *corev1.Pod, code int32) {
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "Usage of EmptyDir volume \"scratch\" exceeds the limit \"1Mi\"."
	w.main(pod).State = w.end(code, "Error")
	w.changed()
}

// refusePod is a kubelet that does not take the pod.
func (w *world) refusePod(pod *corev1.Pod, node string) {
	pod.Spec.NodeName = node
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "UnexpectedAdmissionError"
	pod.Status.Message = "Pod was rejected: no healthy devices present"
	w.changed()
}

// reboot is a node that comes back and finds the container of the pod gone.
func (w *world) reboot(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodFailed
	w.main(pod).State = w.end(255, "Unknown")
	w.changed()
}

// shutDown is a node that is shut down in order, and lets the training end with the code.
func (w *world) shutDown(pod *corev1.Pod, code int32) {
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Terminated", "Pod was terminated in response to imminent node shutdown."
	w.main(pod).State = w.end(code, "Error")
	w.changed()
}

// evict is a node that lacks memory, and lets the training end with the code.
func (w *world) evict(pod *corev1.Pod, code int32) {
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
	w.main(pod).State = w.end(code, "Error")
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", LastTransitionTime: metav1.NewTime(w.now.Truncate(time.Second)),
	})
	w.changed()
}

// stops reports whether the kubelet of the node can stop a pod.
func (w *world) stops(node string) bool { return w.deadNodes[node] == "" && !w.broken[node] }

// gone is the kubelet's word that nothing of a terminating pod runs any more.
func (w *world) gone(pod *corev1.Pod) {
	delete(w.pods, pod.Name)
	w.changed()
}

func (w *world) main(pod *corev1.Pod) *corev1.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, Image: "trainer:1"}}
	}
	return &pod.Status.ContainerStatuses[0]
}

// runToRest lets the controller work undisturbed until it has nothing to do at this moment.
func (w *world) runToRest(each func(Decision)) error {
	for range 100 {
		d, finished := w.reconcile(chaos{})
		if each != nil {
			each(d)
		}
		if w.jobGone || finished && idle(d) {
			return nil
		}
	}
	return fmt.Errorf("the controller does not come to rest")
}

// idle reports whether a decision is empty, or waits.
func idle(d Decision) bool {
	return d.Write == WriteNothing && len(d.DeletePods)+len(d.DeleteChildren)+len(d.CreateChildren)+len(d.UpdateChildren)+len(d.CreatePods) == 0 &&
		!d.SizeJob && !d.DeleteJob && len(d.Events) == 0
}
