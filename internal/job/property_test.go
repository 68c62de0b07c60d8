package job

import (
	"flag"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// histories is how many lives TestInvariants lets jobs live in one run.
const histories = 10000

// TestInvariants lets jobs live through generated histories: failures, deletions, lost nodes, suspensions, edits and
// scaling, under a controller that crashes between any two calls, loses replies, reads stale caches and meets conflicts.
// The oracle checks the nine invariants of the design all along.
func TestInvariants(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(histories)); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		h := &history{T: t, world: newWorld(genJob(t))}
		h.oracle = watchOver(h.world, t.Fatalf)
		h.behind = rapid.Bool().Draw(t, "new processes are behind")
		if rapid.IntRange(0, 9).Draw(t, "namesake") == 0 {
			h.namesake()
		}
		for range rapid.IntRange(3, 40).Draw(t, "steps") {
			h.step()
		}
		h.quiet()
	})
}

type history struct {
	*rapid.T
	*world
	oracle *oracle
}

func genJob(t *rapid.T) Job {
	workers := rapid.Int32Range(0, 3).Draw(t, "workers")
	j := demo(workers)
	switch rapid.SampledFrom([]string{"gang", "tf", "elastic", "steps"}).Draw(t, "kind") {
	case "tf":
		tensorflow(&j)
		j.Roles[0].Replicas = rapid.Int32Range(0, 1).Draw(t, "chief")
		j.Roles[2].Replicas = max(workers, 1)
		if j.Roles[0].Replicas == 1 {
			j.Success = Success{Role: "Chief", Rule: SuccessAll}
		} else if rapid.Bool().Draw(t, "all workers") {
			j.Success = Success{Role: "Worker", Rule: SuccessAll}
		}
	case "steps":
		steps(&j)
		j.Roles[1].Replicas = rapid.Int32Range(0, 2).Draw(t, "models")
		j.Roles[2].Replicas = rapid.Int32Range(0, 1).Draw(t, "launcher")
		j.Roles[3].Replicas = max(workers, 1)
		j.Roles[4].Replicas = rapid.Int32Range(0, 1).Draw(t, "evaluate")
		j.ScopeOverride = rapid.SampledFrom([]Scope{ScopeJob, ScopeReplica}).Draw(t, "scope") // scaling to one would change it
	case "elastic":
		j.Roles[0].Replicas = 0
		j.Scope, j.Success = ScopeReplica, Success{Role: "Worker", Rule: SuccessAny}
		genBounds(t, &j)
	}
	policy := rapid.SampledFrom([]RestartPolicy{RestartOnFailure, RestartOnFailure, RestartExitCode, RestartExitCode, RestartNever}).Draw(t, "restartPolicy")
	for i := range j.Roles {
		j.Roles[i].RestartPolicy = policy
	}
	if rapid.Bool().Draw(t, "limited") {
		j.Policy.BackoffLimit = ptr(rapid.Int32Range(0, 5).Draw(t, "backoffLimit"))
	}
	if rapid.IntRange(0, 3).Draw(t, "hurried") == 0 {
		j.Policy.ActiveDeadlineSeconds = ptr(rapid.Int64Range(1, 2000).Draw(t, "activeDeadlineSeconds"))
	}
	if rapid.IntRange(0, 3).Draw(t, "fleeting") == 0 {
		j.Policy.TTLSecondsAfterFinished = ptr(rapid.Int32Range(0, 100).Draw(t, "ttlSecondsAfterFinished"))
		j.Owned = rapid.Bool().Draw(t, "owned")
	}
	if rapid.IntRange(0, 3).Draw(t, "placed one by one") == 0 {
		j.ScheduleTimeoutSeconds = ptr(rapid.Int32Range(1, 300).Draw(t, "scheduleTimeoutSeconds"))
	}
	j.AvoidNodes = rapid.SampledFrom([]AvoidNodes{AvoidPrefer, AvoidRequire, AvoidOff}).Draw(t, "avoidNodes")
	j.LeavesNodes = rapid.Bool().Draw(t, "leavesNodes")
	j.Policy.CleanPodPolicy = rapid.SampledFrom([]CleanPodPolicy{CleanNone, CleanRunning, CleanAll}).Draw(t, "cleanPodPolicy")
	return j
}

// genBounds makes the job elastic, or gives an elastic job other bounds.
func genBounds(t *rapid.T, j *Job) {
	e := Elastic{Role: "Worker", Min: rapid.Int32Range(1, 2).Draw(t, "minReplicas")}
	e.Max = rapid.Int32Range(e.Min, 4).Draw(t, "maxReplicas")
	if j.Elastic != nil {
		e.Anchored = j.Elastic.Anchored
	} else {
		e.Anchored = rapid.IntRange(0, 3).Draw(t, "meets elsewhere") > 0
	}
	j.Elastic = &e
	autoscaled(j, nil, 0)
	if rapid.Bool().Draw(t, "autoscaled") {
		autoscaled(j, &e.Min, e.Max)
	}
}

// namesake is a job of the same name that was deleted a moment ago: its pods are still there.
func (h *history) namesake() {
	for _, role := range h.job.Roles {
		for i := range h.job.Size(role) {
			pod := h.newPod(Replica{role.Name, i}, 0, "j0")
			h.pods[pod.Name] = pod
			h.start(pod, "n1")
		}
	}
	h.createChild(service("demo"), "j0")
}

// step lets one thing happen.
func (h *history) step() {
	actions := []string{
		"reconcile", "reconcile", "reconcile", "reconcile", "rest", "start", "start", "start all", "start all", "exit", "exit", "exit", "again",
		"evict", "exceed", "refuse", "refuse", "reboot", "shut down", "delete", "vanish", "vanish twice", "fail and recover", "fail and recover", "gone", "gone all", "node", "break node", "cordon", "mend node", "tick", "tick", "suspend", "scale", "scale", "down and up", "autoscale", "bounds", "limit", "quota", "foreign leave", "crash",
	}
	switch action := rapid.SampledFrom(actions).Draw(h.T, "action"); action {
	case "reconcile":
		h.reconcile(h.chaos())
	case "rest":
		if err := h.runToRest(nil); err != nil {
			h.Fatalf("8: %v", err)
		}
		h.checkScaler()
	case "start all":
		h.startAll()
	case "fail and recover":
		h.failAndRecover()
	case "vanish twice":
		h.vanishTwice()
	case "gone all":
		h.stopTerminating()
	case "tick":
		h.now = h.now.Add(time.Duration(rapid.IntRange(1, 120_000).Draw(h.T, "ms")) * time.Millisecond)
	case "suspend":
		h.edit(func(j *Job) { j.Policy.Suspend = !j.Policy.Suspend })
	case "scale":
		n := rapid.Int32Range(1, 4).Draw(h.T, "replicas")
		if h.job.Elastic != nil {
			n = rapid.Int32Range(0, 6).Draw(h.T, "replicas") // a person may ask for what the bounds do not allow
		}
		h.scaleTo(n)
	case "down and up":
		h.downAndUp()
	case "autoscale":
		// It edits as long as it is there, whatever has become of the job.
		if scaler := h.scaler(); scaler != nil {
			h.scaleTo(rapid.Int32Range(*scaler.Spec.MinReplicas, scaler.Spec.MaxReplicas).Draw(h.T, "desiredReplicas"))
		}
	case "bounds":
		if h.job.Elastic != nil {
			h.edit(func(j *Job) { genBounds(h.T, j) })
		}
	case "limit":
		n := rapid.Int32Range(0, 5).Draw(h.T, "backoffLimit")
		h.edit(func(j *Job) { j.Policy.BackoffLimit = &n })
	case "quota":
		h.quota = rapid.IntRange(-1, 3).Draw(h.T, "quota")
	case "crash":
		h.crash()
	case "break node":
		h.breakNode(rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(h.T, "node"))
	case "cordon":
		h.cordon(rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(h.T, "node"))
	case "mend node":
		clear(h.broken)
		clear(h.leaving)
	case "node":
		h.loseNode(rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(h.T, "node"))
	case "foreign leave":
		h.foreignLeave()
	default:
		h.toPod(action)
	}
}

func (h *history) startAll() {
	for _, name := range slices.Sorted(maps.Keys(h.pods)) {
		if pod := h.pods[name]; pod.Spec.NodeName == "" {
			h.place(pod, "n"+strconv.Itoa(rapid.IntRange(1, 9).Draw(h.T, "node")))
		}
	}
}

// place starts a pod on a node, also on one that is cordoned: the pod may tolerate that.
func (h *history) place(pod *corev1.Pod, node string) {
	h.start(pod, node)
	if h.leaving[node] && h.job.LeavesNodes {
		h.oracle.harm(pod, Disruption)
	}
}

// failAndRecover is the ordinary course of a failure, so that histories get beyond the first.
func (h *history) failAndRecover() {
	h.startAll()
	h.reconcile(h.chaos())
	h.toPod("exit")
	h.reconcile(h.chaos())
	h.now = h.now.Add(time.Second)
	h.stopTerminating()
	h.reconcile(h.chaos())
	h.now = h.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 9, 11, 300}).Draw(h.T, "seconds")) * time.Second)
	h.reconcile(h.chaos())
}

// vanishTwice lets a pod that trained vanish, and a new controller begin with a list that may still have it.
func (h *history) vanishTwice() {
	h.startAll()
	h.reconcile(h.chaos())
	h.toPod("vanish")
	h.reconcile(h.chaos())
	h.crash()
	h.reconcile(h.chaos())
	h.reconcile(h.chaos())
}

func (h *history) scaleTo(n int32) {
	h.edit(func(j *Job) { j.Roles[len(j.Roles)-1].Replicas = n })
}

// downAndUp lowers the number of replicas and raises it again, before or after the pods that were removed are gone.
func (h *history) downAndUp() {
	h.startAll()
	h.reconcile(h.chaos())
	h.scaleTo(1)
	h.reconcile(h.chaos())
	if rapid.Bool().Draw(h.T, "gone meanwhile") {
		h.stopTerminating()
		h.reconcile(h.chaos())
	}
	h.scaleTo(4)
	h.reconcile(h.chaos())
	h.stopTerminating()
	h.reconcile(h.chaos())
}

func (h *history) chaos() chaos {
	c := chaos{lag: rapid.IntRange(0, 5).Draw(h.T, "lag"), lazy: rapid.Bool().Draw(h.T, "lazy")}
	switch rapid.IntRange(0, 5).Draw(h.T, "trouble") {
	case 0:
		c.conflict = true
	case 1, 2:
		c.crash = rapid.IntRange(1, 6).Draw(h.T, "crash at call")
		c.lost = rapid.Bool().Draw(h.T, "lost reply")
		c.noCrash = rapid.Bool().Draw(h.T, "survives")
	}
	return c
}

// toPod does something to one pod, where it can be done.
func (h *history) toPod(action string) {
	if len(h.pods) == 0 {
		return
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(h.pods))).Draw(h.T, "pod")
	pod := h.pods[name]
	running := pod.Spec.NodeName != "" && h.main(pod).State.Running != nil && h.deadNodes[pod.Spec.NodeName] == ""
	switch {
	case action == "start" && pod.Spec.NodeName == "":
		h.place(pod, rapid.SampledFrom([]string{"n1", "n2", "n3", "n4"}).Draw(h.T, "node"))
	case action == "exit" && running:
		h.exitPod(pod, rapid.SampledFrom([]int32{0, 0, 1, 137, 143}).Draw(h.T, "code"))
	case action == "again" && h.main(pod).State.Waiting != nil && pod.DeletionTimestamp == nil && h.deadNodes[pod.Spec.NodeName] == "":
		h.again(pod)
	case action == "refuse" && pod.Spec.NodeName == "":
		h.mark(pod, truthFailed, "refused")
		h.refusePod(pod, rapid.SampledFrom([]string{"n1", "n2", "n3", "n4"}).Draw(h.T, "node"))
	case running && pod.DeletionTimestamp == nil && (action == "evict" || action == "exceed" || action == "reboot" || action == "shut down"):
		h.fromNode(pod, action)
	case action == "delete" || action == "vanish":
		h.now = h.now.Add(time.Second) // within one second, cause and effect cannot be told apart
		h.blur(pod)
		h.oracle.harm(pod, Disruption)
		h.watch = nil
		h.deletePod(pod.Name, pod.UID, action == "vanish")
		h.watch = h.oracle
	case action == "gone" && pod.DeletionTimestamp != nil && h.stops(pod.Spec.NodeName):
		h.gone(pod)
	}
}

// fromNode does to a pod what its kubelet may do. A training that saves a checkpoint when it is asked to end exits with 0, and
// is not done for that.
func (h *history) fromNode(pod *corev1.Pod, action string) {
	code := rapid.SampledFrom([]int32{0, 137, 143}).Draw(h.T, "code")
	if action == "reboot" && pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return // the kubelet would restart the container in place
	}
	if action == "exceed" {
		h.mark(pod, truthFailed, "137")
		h.oracle.harm(pod, Application)
		h.exceed(pod, code)
		return
	}
	h.mark(pod, truthFailed, "evicted")
	h.oracle.harm(pod, Disruption)
	switch action {
	case "evict":
		h.evict(pod, code)
	case "shut down":
		h.shutDown(pod, code)
	default:
		h.reboot(pod)
	}
}

// exitPod ends the training with a code and notes the truth about it. What ends while its pod is being deleted was ended
// by that, whatever its code.
func (h *history) exitPod(pod *corev1.Pod, code int32) {
	switch {
	case code == 0 && pod.DeletionTimestamp != nil:
	case code == 0:
		h.mark(pod, truthDone, "yes")
		h.oracle.done(pod)
	case pod.DeletionTimestamp != nil:
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		h.mark(pod, truthFailed, strconv.Itoa(int(code)))
		h.oracle.harm(pod, Application)
	default:
		n, _ := strconv.Atoi(pod.Annotations[truthInPlace])
		h.mark(pod, truthInPlace, strconv.Itoa(n+1))
		h.oracle.harm(pod, Application)
	}
	h.mark(pod, truthTime, "")
	if code < 128 {
		h.mark(pod, truthTime, h.now.Format(time.RFC3339)) // it ended by itself
	}
	h.exit(pod, code, "Error", "")
	if rapid.Bool().Draw(h.T, "the phase comes later") {
		pod.Status.Phase = corev1.PodRunning
		h.changed()
	}
}

// catchUp lets the kubelets report the phases of pods whose containers have ended.
func (h *history) catchUp() {
	for _, name := range slices.Sorted(maps.Keys(h.pods)) {
		pod := h.pods[name]
		end := h.main(pod).State.Terminated
		switch {
		case end == nil || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning:
			continue
		case end.ExitCode == 0:
			pod.Status.Phase = corev1.PodSucceeded
		default:
			pod.Status.Phase = corev1.PodFailed
		}
		h.changed()
	}
}

// blur forgets that a pod succeeded less than a minute before it is deleted: by the clocks of two machines nobody can tell.
func (h *history) blur(pod *corev1.Pod) {
	if end := h.main(pod).State.Terminated; end != nil && h.now.Sub(end.FinishedAt.Time) <= time.Minute {
		delete(pod.Annotations, truthDone)
	}
}

func (h *history) mark(pod *corev1.Pod, key, value string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = value
}

// loseNode silences a node; five minutes later the control plane marks its pods for deletion.
func (h *history) loseNode(node string) {
	h.deadNodes[node] = rapid.SampledFrom([]NodeState{NodeUnreachable, NodeOutOfService, NodeGone}).Draw(h.T, "state")
	h.taint(node)
}

// breakNode lets a kubelet report that its node is not ready: it can stop nothing, and what runs there goes on.
func (h *history) breakNode(node string) {
	h.broken[node] = true
	h.taint(node)
}

// cordon announces that a node will be drained. To a job that leaves such nodes this is a disruption of each pod there.
func (h *history) cordon(node string) {
	h.leaving[node] = true
	for _, name := range slices.Sorted(maps.Keys(h.pods)) {
		if pod := h.pods[name]; pod.Spec.NodeName == node && !isOver(pod) && h.job.LeavesNodes {
			h.oracle.harm(pod, Disruption)
		}
	}
}

// taint is the control plane's deletion of the pods of a node that is not ready, five minutes later.
func (h *history) taint(node string) {
	h.now = h.now.Add(5 * time.Minute)
	for _, name := range slices.Sorted(maps.Keys(h.pods)) {
		if pod := h.pods[name]; pod.Spec.NodeName == node && !isOver(pod) {
			h.oracle.harm(pod, Disruption)
			h.watch = nil
			h.deletePod(pod.Name, pod.UID, false)
			h.watch = h.oracle
		}
	}
}

func (h *history) foreignLeave() {
	for name, pod := range h.pods {
		if !h.belongs(pod) {
			delete(h.pods, name)
		}
	}
	for name, child := range h.children {
		if child.GetOwnerReferences()[0].UID != "j1" {
			delete(h.children, name)
		}
	}
	h.changed()
}

// quiet ends the trouble: kubelets stop what they should, the controller works undisturbed, and time moves from one
// moment it asked for to the next. Then the job must be where it should be.
func (h *history) quiet() {
	h.quota = -1
	clear(h.broken)
	h.edit(func(j *Job) { j.LeavesNodes = false }) // else the controller would never be at rest
	h.foreignLeave()
	for range 60 {
		h.stopTerminating()
		if err := h.runToRest(nil); err != nil {
			h.Fatalf("8: %v", err)
		}
		if h.stopTerminating() {
			continue
		}
		h.checkDue(0)
		next := h.requeueAt()
		if next.IsZero() || h.jobGone {
			break
		}
		h.now = next
		h.checkDue(time.Second)
	}
	h.checkRest()
}

func (h *history) stopTerminating() bool {
	h.catchUp()
	any := false
	for _, name := range slices.Sorted(maps.Keys(h.pods)) {
		if pod := h.pods[name]; pod.DeletionTimestamp != nil && h.stops(pod.Spec.NodeName) {
			h.gone(pod)
			any = true
		}
	}
	return any
}

func (h *history) requeueAt() time.Time {
	o := h.observe(0)
	d := Decide(o)
	for d.Asks() {
		o = h.answer(o, d.Ask)
		d = Decide(o)
	}
	if !d.RequeueAt.IsZero() && !d.RequeueAt.After(h.now) {
		h.Fatalf("8: looks again at %s, which is now or past", d.RequeueAt)
	}
	return d.RequeueAt
}

// Invariant 6: what is due is done, and what will be due is looked forward to.
func (h *history) checkDue(tolerance time.Duration) {
	s := h.status
	due := time.Time{}
	if ttl := h.job.Policy.TTLSecondsAfterFinished; ttl != nil && s.Finished() && !h.jobGone {
		due = at(s.CompletionTime, int64(*ttl))
		if h.job.Owned {
			due = at(s.CompletionTime, max(int64(*ttl), 30))
		}
	}
	if deadline := h.job.Policy.ActiveDeadlineSeconds; deadline != nil && !s.Finished() && !h.job.Policy.Suspend {
		due = at(s.StartTime, *deadline)
	}
	if !due.IsZero() && !h.now.Before(due.Add(tolerance)) {
		h.Fatalf("6: something was due at %s and it is %s", due, h.now)
	}
}

// attemptsPods are those of the present attempt of a job that runs.
func (h *history) attemptsPods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range h.pods {
		_, attempt, ok := h.job.replicaOf(pod)
		if ok && h.belongs(pod) && attempt == h.status.Attempt && !isOver(pod) && pod.DeletionTimestamp == nil && !h.status.Finished() && h.status.Finishing.IsZero() {
			pods = append(pods, pod)
		}
	}
	return pods
}

// checkScaler sees that a job has the autoscaler it wants while it runs, and none when it is suspended or about to end.
func (h *history) checkScaler() {
	if h.jobGone {
		return
	}
	if otherBounds(Observed{Job: h.job, Pods: h.attemptsPods()}) {
		h.Fatalf("3: pods of one attempt know other bounds than %s", h.job.Elastic.Bounds())
	}
	has := h.scaler()
	wants := autoscaler(h.job.Children) != nil && !h.status.Finished() && !h.job.Policy.Suspend && h.status.Finishing.IsZero()
	switch {
	case wants && has == nil && h.rejection != nil: // it is created when what was refused is tried again
	case wants != (has != nil):
		h.Fatalf("4: wants an autoscaler: %v, has one: %v", wants, has != nil)
	case wants && (has.Spec.MaxReplicas != h.job.Elastic.Max || *has.Spec.MinReplicas != h.job.Elastic.Min):
		h.Fatalf("the autoscaler goes from %d to %d, the job from %d to %d",
			*has.Spec.MinReplicas, has.Spec.MaxReplicas, h.job.Elastic.Min, h.job.Elastic.Max)
	}
}

// checkSize sees that a job at rest has no pod beyond what it was scaled to.
func (h *history) checkSize() {
	for _, pod := range h.pods {
		if r, _, _ := h.job.replicaOf(pod); r.Index >= h.job.Size(*h.job.role(r.Role)) {
			h.Fatalf("the job has %d replicas of %s and still pod %s", h.job.Size(*h.job.role(r.Role)), r.Role, pod.Name)
		}
	}
}

// checkRest sees that the job came to where it should be. Invariant 4 above all: a finished job holds nothing.
func (h *history) checkRest() {
	if h.jobGone {
		return
	}
	h.now = h.now.Add(24 * time.Hour) // nothing is left for which the controller would wake
	h.checkDue(0)
	s := h.status
	h.checkScaler()
	for _, pod := range h.pods {
		keeps := h.job.Policy.CleanPodPolicy == CleanNone && (s.endReason() == ReasonSucceeded || s.endReason() == ReasonFailed)
		if s.Finished() && !isOver(pod) && !keeps {
			h.Fatalf("4: the job is %s and pod %s is %s", s.endReason(), pod.Name, pod.Status.Phase)
		}
		if h.job.Policy.Suspend && !s.Finished() {
			h.Fatalf("the job is suspended and pod %s exists", pod.Name)
		}
	}
	if s.Finished() || h.job.Policy.Suspend {
		return
	}
	if !s.Finishing.IsZero() {
		h.Fatalf("6: a worker has succeeded at %s, and the job will never end", s.Finishing)
	}
	h.checkSize()
	for _, role := range h.job.Roles {
		if h.waits(role) {
			continue
		}
		for i := range h.job.Size(role) {
			r := Replica{role.Name, i}
			rec := s.record(r)
			if h.pods[h.job.PodName(r)] == nil && !contains(s.role(role.Name).Done, i) && (rec == nil || !rec.Lost) {
				h.Fatalf("%s has no pod, and nobody will make one", r)
			}
		}
	}
}

// waits reports whether a role has a reason not to have started: one it waits for is not so far.
func (h *history) waits(role Role) bool {
	for _, d := range role.After {
		for i := range h.job.Size(*h.job.role(d.Role)) {
			pod := h.pods[h.job.PodName(Replica{d.Role, i})]
			ready := d.Until == MilestoneReady && pod != nil && h.main(pod).State.Running != nil
			if !ready && !contains(h.status.role(d.Role).Done, i) {
				return true
			}
		}
	}
	return false
}
