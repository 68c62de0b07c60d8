package proof

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// randomLife lets a job that the seed chooses live through what the seed chooses, and then lets it come to rest.
func randomLife(h *history) {
	job, gang := h.randomJob()
	h.oracle.gang = gang
	if gang && h.chance(10) {
		h.namesake("worker-0")
	}
	h.submit(job)
	for range 5 + h.random.IntN(25) {
		h.disturb()
		h.randomStep()
	}
	h.quiet()
}

func (h *history) chance(percent int) bool { return h.random.IntN(100) < percent }

// pick chooses one of several.
func pick[T any](h *history, from ...T) T { return from[h.random.IntN(len(from))] }

// randomJob is a job of some kind, and whether a failure restarts all its replicas.
func (h *history) randomJob() (job kubeflowv1.Job, isGang bool) {
	policy, n := pick(h, onFailure, onFailure, exitCode, exitCode, never), int32(1+h.random.IntN(2))
	switch pick(h, "gang", "gang", "elastic", "tensorflow") {
	case "elastic":
		job = elastic(n, policy)
		if h.chance(50) {
			autoscaled(job)
		}
	case "tensorflow":
		job = tensorflow(n, policy)
	default:
		job, isGang = gang(n, policy), true
	}
	if h.chance(40) {
		backoffLimit(int32(h.random.IntN(3)))(job)
	}
	if h.chance(20) {
		deadline(1 + h.random.Int64N(300))(job)
	}
	if h.chance(20) {
		ttl(h.random.Int32N(60))(job)
	}
	clean(pick(h, kubeflowv1.CleanPodPolicyNone, kubeflowv1.CleanPodPolicyRunning, kubeflowv1.CleanPodPolicyAll))(job)
	return job, isGang
}

// disturb plans a fault for one of the next requests or passes, now and then.
func (h *history) disturb() {
	if h.chance(25) {
		f := pick(h, requestFaults...)
		h.Lock()
		h.plan[h.requests+1+h.random.IntN(4)] = f
		h.Unlock()
	}
	if h.chance(15) {
		h.watchPlan[h.passes+h.random.IntN(2)] = pick(h, watchFaults...)
	}
}

// randomStep lets one thing happen.
func (h *history) randomStep() {
	switch pick(h, "pass", "pass", "rest", "rest", "rest", "start", "start", "start", "start", "end", "end", "sleep", "sleep", "crash",
		"edit", "node", "pod", "pod", "pod", "pod", "pod") {
	case "pass":
		h.pass()
	case "rest":
		h.rest()
	case "start":
		h.startAll()
	case "end":
		h.stopTerminating()
	case "sleep":
		h.sleep(time.Duration(h.random.IntN(120_000)) * time.Millisecond)
	case "crash":
		h.behind = h.chance(50)
		h.crash()
	case "edit":
		h.randomEdit()
	case "node":
		if name := h.nodes.name(h.random.IntN(nodesEach)); len(h.nodes.lost) == 0 && h.chance(30) {
			h.loseNode(name, pick(h, "unreachable", "out of service", "gone"))
		}
	default:
		if names := slices.Sorted(maps.Keys(h.pods())); len(names) > 0 {
			h.toPod(h.pods()[pick(h, names...)])
		}
	}
}

// pass lets the controller look at the job once, if it wants to.
func (h *history) pass() {
	h.disturbWatches()
	h.process.caches.deliver()
	if h.process.queue.pass() {
		h.afterPass()
	}
}

func (h *history) randomEdit() {
	switch pick(h, "suspend", "scale", "scale", "limit") {
	case "suspend":
		if job := h.stored(); job != nil {
			yes := !suspended(job)
			h.edit("the job is suspended or resumed", suspend(yes))
		}
	case "scale":
		h.edit("the job is scaled", workers(1+h.random.Int32N(3)))
	default:
		h.edit("the job gets another backoff limit", backoffLimit(h.random.Int32N(3)))
	}
}

// toPod does something to a pod, where that can be done.
func (h *history) toPod(pod *corev1.Pod) {
	if !h.oracle.ours(pod) {
		h.leave()
		return
	}
	lost, leaving := h.nodes.lost[pod.Spec.NodeName], pod.DeletionTimestamp != nil
	var state corev1.ContainerState
	if len(pod.Status.ContainerStatuses) > 0 {
		state = pod.Status.ContainerStatuses[0].State
	}
	switch {
	case pod.Spec.NodeName == "" && !leaving && h.chance(20):
		h.refuse(pod)
	case pod.Spec.NodeName == "" && !leaving:
		h.start(pod, h.nodes.name(h.random.IntN(nodesEach)))
	case state.Waiting != nil && !lost && !leaving:
		h.again(pod)
	case state.Running == nil || lost:
		return
	case h.chance(70):
		h.exit(pod, pick(h, int32(0), 0, 1, 137, 143))
	case leaving:
	case h.chance(40):
		h.evict(pod, pick(h, int32(0), 137))
	case h.chance(50):
		h.remove(pod)
	default:
		h.remove(pod, atOnce)
	}
}

// quiet ends the trouble, and lets time pass until nothing is left to do.
func (h *history) quiet() {
	h.note("the trouble is over")
	h.Lock()
	clear(h.plan)
	h.Unlock()
	clear(h.watchPlan)
	h.leave()
	h.settle()
	for range 4 {
		h.sleep(4 * time.Minute)
	}
	h.oracle.checkRest()
}
