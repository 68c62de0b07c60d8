package proof

import (
	"fmt"
	"time"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// scenario is a life of a job, and how it must end whatever goes wrong between the controller and the API server.
type scenario struct {
	sentence string
	gang     bool
	job      kubeflowv1.Job
	life     func(h *history)
	// verdict is the job's last state; retries, disruptions and attempt are what its status says in the end.
	verdict                       kubeflowv1.JobConditionType
	retries, disruptions, attempt int32
	// timed says that the end depends on the clock, so that a clock that jumps, or an hour without the API server, changes it.
	timed bool
	// gone says that the job itself is deleted in the end.
	gone bool
}

// Restart policies and states, in short.
const (
	onFailure = kubeflowv1.RestartPolicyOnFailure
	exitCode  = kubeflowv1.RestartPolicyExitCode
	never     = kubeflowv1.RestartPolicyNever

	runs     = kubeflowv1.JobRunning
	succeeds = kubeflowv1.JobSucceeded
	fails    = kubeflowv1.JobFailed
)

// up lets the controller create the pods, and the kubelets run them.
func (h *history) up() {
	h.settle()
	h.startAll()
	h.settle()
}

// recover lets a restart happen: the old pods end, the delay passes, the new ones run.
func (h *history) recover() {
	h.sleep(20 * time.Second)
	h.startAll()
	h.settle()
}

// finish lets the training succeed.
func (h *history) finish(pods ...string) {
	for _, name := range pods {
		h.exit(h.pod(name), 0)
	}
	h.sleep(time.Minute)
}

var scenarios = []scenario{
	{
		sentence: "a gang succeeds", gang: true, job: gang(1, onFailure), verdict: succeeds,
		life: func(h *history) { h.up(); h.finish("worker-0", "master-0") },
	},
	{
		sentence: "a worker fails and the gang restarts", gang: true, job: gang(1, onFailure), verdict: succeeds, retries: 1, attempt: 1,
		life: func(h *history) { h.up(); h.exit(h.pod("worker-0"), 1); h.recover(); h.finish("worker-0", "master-0") },
	},
	{
		sentence: "a worker is killed and the gang restarts by its exit code", gang: true, job: gang(2, exitCode), verdict: runs, retries: 1, attempt: 1,
		life: func(h *history) { h.up(); h.exit(h.pod("worker-1"), 137); h.recover() },
	},
	{
		sentence: "a worker fails by an exit code that is not retried", gang: true, job: gang(1, exitCode), verdict: fails,
		life: func(h *history) { h.up(); h.exit(h.pod("worker-0"), 1); h.sleep(time.Minute) },
	},
	{
		sentence: "a worker fails and is never restarted", gang: true, job: gang(1, never, clean(kubeflowv1.CleanPodPolicyAll)), verdict: fails,
		life: func(h *history) { h.up(); h.exit(h.pod("worker-0"), 137); h.sleep(time.Minute) },
	},
	{
		sentence: "the backoff limit is exhausted", gang: true, job: gang(1, onFailure, backoffLimit(1)), verdict: fails, retries: 1, attempt: 1,
		life: func(h *history) {
			h.up()
			h.exit(h.pod("worker-0"), 1)
			h.recover()
			h.exit(h.pod("master-0"), 1)
			h.sleep(time.Minute)
		},
	},
	{
		sentence: "two restarts in a row are delayed", gang: true, job: gang(1, onFailure), verdict: runs, retries: 2, attempt: 2,
		life: func(h *history) {
			h.up()
			h.exit(h.pod("worker-0"), 1)
			h.recover()
			h.exit(h.pod("worker-0"), 1)
			h.recover()
		},
	},
	{
		sentence: "a worker is evicted and exits with 0", gang: true, job: gang(1, onFailure, backoffLimit(0)), verdict: runs, disruptions: 1, attempt: 1,
		life: func(h *history) { h.up(); h.evict(h.pod("worker-0"), 0); h.recover() },
	},
	{
		sentence: "somebody deletes a worker", gang: true, job: gang(1, onFailure, backoffLimit(0)), verdict: runs, disruptions: 1, attempt: 1,
		life: func(h *history) { h.up(); h.remove(h.pod("worker-0")); h.recover() },
	},
	{
		sentence: "a worker vanishes", gang: true, job: gang(1, onFailure, backoffLimit(0)), verdict: runs, disruptions: 1, attempt: 1,
		life: func(h *history) { h.up(); h.remove(h.pod("worker-0"), atOnce); h.recover() },
	},
	{
		sentence: "a node refuses a worker", gang: true, job: gang(1, onFailure, backoffLimit(0)), verdict: runs,
		life: func(h *history) { h.settle(); h.refuse(h.pod("worker-0")); h.recover() },
	},
	{
		sentence: "the active deadline ends the job", gang: true, job: gang(1, onFailure, deadline(60)), verdict: fails, timed: true,
		life: func(h *history) { h.up(); h.sleep(2 * time.Minute) },
	},
	{
		sentence: "the job is deleted when its time to live is over", gang: true, job: gang(1, onFailure, ttl(30)), gone: true, timed: true,
		life: func(h *history) { h.up(); h.finish("worker-0", "master-0") },
	},
	{
		sentence: "a job is suspended and resumed", gang: true, job: gang(1, onFailure), verdict: succeeds, attempt: 1,
		life: func(h *history) {
			h.up()
			h.edit("the job is suspended", suspend(true))
			h.sleep(time.Minute)
			h.edit("the job is resumed", suspend(false))
			h.up()
			h.finish("worker-0", "master-0")
		},
	},
	{
		sentence: "a job begins suspended", gang: true, job: gang(1, onFailure, suspend(true)), verdict: runs,
		life: func(h *history) { h.sleep(time.Minute); h.edit("the job is resumed", suspend(false)); h.up() },
	},
	{
		sentence: "a gang is scaled", gang: true, job: gang(1, onFailure), verdict: runs, attempt: 1,
		life: func(h *history) { h.up(); h.edit("the job has two workers", workers(2)); h.recover() },
	},
	{
		sentence: "a running job is deleted", gang: true, job: gang(1, onFailure), gone: true,
		life: func(h *history) { h.up(); h.deleteJob(); h.sleep(time.Minute) },
	},
	{
		sentence: "a job is deleted while it restarts", gang: true, job: gang(1, onFailure), gone: true,
		life: func(h *history) { h.up(); h.exit(h.pod("worker-0"), 1); h.rest(); h.deleteJob(); h.sleep(time.Minute) },
	},
	{
		sentence: "a pod of an earlier job of the name is waited out", gang: true, job: gang(1, onFailure), verdict: runs,
		life: func(h *history) {
			h.settle()
			h.sleep(20 * time.Second)
			h.leave()
			h.recover()
		},
	},
	{
		sentence: "a finished job keeps its pods", gang: true, job: gang(1, onFailure, clean(kubeflowv1.CleanPodPolicyNone)), verdict: succeeds,
		life: func(h *history) { h.up(); h.finish("master-0") },
	},
	{
		sentence: "a node is unreachable", gang: true, job: gang(1, onFailure, backoffLimit(0)), verdict: runs, disruptions: 1, attempt: 1, timed: true,
		life: func(h *history) { h.lose("unreachable") },
	},
	{
		sentence: "a node is gone", gang: true, job: gang(1, onFailure, backoffLimit(0)), verdict: runs, disruptions: 1, attempt: 1, timed: true,
		life: func(h *history) { h.lose("gone") },
	},
	{
		sentence: "a node ends its pods late", gang: true, job: gang(1, onFailure, backoffLimit(0)), verdict: runs, disruptions: 1, attempt: 1, timed: true,
		life: func(h *history) {
			h.up()
			node := h.pod("worker-0").Spec.NodeName
			h.nodes.slow[node] = true
			h.remove(h.pod("worker-0"))
			h.sleep(3 * time.Minute)
			delete(h.nodes.slow, node)
			h.recover()
		},
	},
	{
		sentence: "a replica restarts alone", job: tensorflow(2, exitCode), verdict: succeeds, retries: 1,
		life: func(h *history) { h.up(); h.exit(h.pod("worker-1"), 137); h.recover(); h.finish("chief-0") },
	},
	{
		sentence: "a replica restarts in place", job: tensorflow(1, onFailure), verdict: succeeds, retries: 2,
		life: func(h *history) {
			h.up()
			for range 2 {
				h.exit(h.pod("worker-0"), 1)
				h.settle()
				h.again(h.pod("worker-0"))
				h.settle()
			}
			h.finish("chief-0")
		},
	},
	{
		sentence: "replicas exhaust the backoff limit", job: tensorflow(2, exitCode, backoffLimit(1)), verdict: fails, retries: 1,
		life: func(h *history) {
			h.up()
			h.exit(h.pod("worker-0"), 137)
			h.recover()
			h.exit(h.pod("worker-1"), 137)
			h.sleep(time.Minute)
		},
	},
	{
		sentence: "a replica is evicted", job: tensorflow(1, onFailure, backoffLimit(0)), verdict: runs, disruptions: 1,
		life: func(h *history) { h.up(); h.evict(h.pod("worker-0"), 137); h.recover() },
	},
	{
		sentence: "an elastic job is scaled up and down", job: elastic(2, exitCode), verdict: runs,
		life: func(h *history) {
			h.up()
			h.edit("the job has three workers", workers(3))
			h.up()
			h.edit("the job has one worker", workers(1))
			h.sleep(time.Minute)
		},
	},
	{
		sentence: "a worker of an elastic job is replaced", job: elastic(2, exitCode), verdict: succeeds, retries: 1,
		life: func(h *history) {
			h.up()
			h.exit(h.pod("worker-1"), 137)
			h.recover()
			h.finish("worker-0", "worker-1")
		},
	},
	{
		sentence: "an elastic job loses its rendezvous", job: elastic(2, exitCode), verdict: runs, retries: 1, attempt: 1,
		life: func(h *history) { h.up(); h.exit(h.pod("worker-0"), 137); h.recover() },
	},
	{
		sentence: "an elastic job has an autoscaler while it runs", job: elastic(2, exitCode, autoscaled), verdict: succeeds,
		life: func(h *history) { h.up(); h.finish("worker-0", "worker-1") },
	},
}

// lose is a node that is lost with a worker: its pod is removed by force, and the gang restarts.
func (h *history) lose(how string) {
	h.up()
	h.loseNode(h.pod("worker-0").Spec.NodeName, how)
	h.settle()
	h.sleep(3 * time.Minute)
	h.startAll()
	h.settle()
}

// run lives the scenario and checks how it ends.
func (s scenario) run(h *history) {
	h.oracle.gang = s.gang
	if s.sentence == "a pod of an earlier job of the name is waited out" {
		h.namesake("worker-0")
	}
	h.submit(s.job.DeepCopyObject().(kubeflowv1.Job))
	s.life(h)
	h.oracle.checkRest()
	h.check()
	if s.timed && h.untimely() {
		return
	}
	if err := s.judge(h); err != nil {
		h.fail("%v", err)
	}
}

// judge compares the end with what it must be.
func (s scenario) judge(h *history) error {
	status := h.oracle.status
	if gone := h.oracle.stored == nil; gone != s.gone {
		return fmt.Errorf("the job is gone: %v", gone)
	}
	if s.gone {
		return nil
	}
	newest := status.Conditions[len(status.Conditions)-1].Type
	if newest != s.verdict || status.Retries != s.retries || status.Disruptions != s.disruptions || status.Attempt != s.attempt {
		return fmt.Errorf("2: the job is %s in attempt %d with %d retries and %d disruptions, want %s, %d, %d and %d",
			newest, status.Attempt, status.Retries, status.Disruptions, s.verdict, s.attempt, s.retries, s.disruptions)
	}
	return nil
}

// untimely says that time passed which is not of the scenario.
func (h *history) untimely() bool { return h.jumped || h.endured }
