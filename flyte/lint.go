package flyte

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins/kubeflow"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// Lint says what will surprise the author of the task, including what was lost when it was read. It also checks the execution's
// name, if there is one.
func (t Task) Lint(e Execution) []Warning {
	facts := factsOf(t.Custom)
	found := slices.Concat(t.Custom.Warnings, t.Warnings)
	if t.Custom.TaskType == PythonTask {
		if facts.policy != nil {
			found = append(found, warn(PolicyIgnored, "runPolicy", "a task of one node is a plain pod: nothing reads its run policy"))
		}
		return found
	}
	return slices.Concat(found, facts.gpusHeld(t.Pod), facts.idleBackoff(t.restarts(e)), facts.elasticTrouble(t.restarts(e)), facts.replicaTrouble(e), facts.slots(), facts.badName(e.Name))
}

// taskFacts is the input of the rules, the same for all kinds.
type taskFacts struct {
	policy  *kubeflow.RunPolicy
	elastic *kubeflow.ElasticConfig
	slotsN  int32
	// roles are by the name of their field; a role that is not set is not there.
	roles map[string]replicaMessage
}

func factsOf(c Custom) taskFacts {
	f := taskFacts{roles: map[string]replicaMessage{}}
	role := func(name string, m replicaMessage, set bool) {
		if set {
			f.roles[name] = m
		}
	}
	switch m := c.current().(type) {
	case *kubeflow.DistributedPyTorchTrainingTask:
		f.policy, f.elastic = m.GetRunPolicy(), m.GetElasticConfig()
		role("worker", m.GetWorkerReplicas(), m.GetWorkerReplicas() != nil)
		role("master", m.GetMasterReplicas(), m.GetMasterReplicas() != nil && f.elastic == nil)
	case *kubeflow.DistributedTensorflowTrainingTask:
		f.policy = m.GetRunPolicy()
		role("worker", m.GetWorkerReplicas(), m.GetWorkerReplicas() != nil)
		role("ps", m.GetPsReplicas(), m.GetPsReplicas() != nil)
		role("chief", m.GetChiefReplicas(), m.GetChiefReplicas() != nil)
		role("evaluator", m.GetEvaluatorReplicas(), m.GetEvaluatorReplicas() != nil)
	case *kubeflow.DistributedMPITrainingTask:
		f.policy, f.slotsN = m.GetRunPolicy(), m.GetSlots()
		role("worker", m.GetWorkerReplicas(), m.GetWorkerReplicas() != nil)
		role("launcher", m.GetLauncherReplicas(), m.GetLauncherReplicas() != nil)
	}
	return f
}

func (f taskFacts) roleNames() []string { return slices.Sorted(maps.Keys(f.roles)) }

func (f taskFacts) gpusHeld(pod Pod) []Warning {
	if !f.wantsGPUs(pod) {
		return nil
	}
	switch {
	case f.policy == nil:
		return []Warning{warn(GPUsHeld, "runPolicy", "there is none, and pods have GPUs: the operator decides what happens to pods "+
			"that still run when the job ends; Trainyard stops them, Training Operator 1.9 lets them run")}
	case f.policy.GetCleanPodPolicy() == kubeflow.CleanPodPolicy_CLEANPOD_POLICY_NONE:
		return []Warning{warn(GPUsHeld, "runPolicy.cleanPodPolicy", "None, or unset: pods that still run when the job ends keep their GPUs")}
	}
	return nil
}

func (f taskFacts) wantsGPUs(pod Pod) bool {
	for _, c := range pod.Template.Spec.Containers {
		if q := c.Resources.Limits[gpuResource]; !q.IsZero() {
			return true
		}
		if q := c.Resources.Requests[gpuResource]; !q.IsZero() {
			return true
		}
	}
	for _, m := range f.roles {
		r := specOf(m).resources
		for _, entry := range slices.Concat(r.GetRequests(), r.GetLimits()) {
			if entry.GetName() == core.Resources_GPU && entry.GetValue() != "0" {
				return true
			}
		}
	}
	return false
}

// restarts reports whether the job will have the annotation with which Trainyard restarts workers although Flyte sets Never.
func (t Task) restarts(e Execution) bool {
	meta := t.jobMeta(e)
	policy := kubeflowv1.RestartPolicy(meta.Annotations[kubeflowv1.AnnotationRestartPolicy])
	return policy != "" && policy != kubeflowv1.RestartPolicyNever
}

// restartHint says how a user of Flyte gets restarts.
const restartHint = "the annotation " + kubeflowv1.AnnotationRestartPolicy + ": OnFailure, on the task (Flyte 1) or its pod template (Flyte 2), changes that"

// idleBackoff: only a restart is a retry, and Flyte's elastic workers, like all roles without a restart policy, are never restarted.
func (f taskFacts) idleBackoff(restarts bool) []Warning {
	limit := f.policy.GetBackoffLimit()
	if limit == 0 || restarts {
		return nil
	}
	for _, m := range f.roles {
		if specOf(m).restart != RestartNever {
			return nil
		}
	}
	return []Warning{warn(NeverRestarted, "runPolicy.backoffLimit",
		"%d, but every role's restart policy is Never: the first failure ends the job, and nothing is counted; %s", limit, restartHint)}
}

func (f taskFacts) elasticTrouble(restarts bool) []Warning {
	if f.elastic == nil {
		return nil
	}
	var found []Warning
	least, most := f.elastic.GetMinReplicas(), f.elastic.GetMaxReplicas()
	if worker, ok := f.roles["worker"]; least < most && ok && specOf(worker).restart == RestartNever && !restarts {
		found = append(found, warn(NeverRestarted, "elasticConfig", "%d:%d nodes, but the restart policy is Never: a worker that is lost "+
			"is not replaced, and Training Operator 1.9 fails the job with it; %s", least, most, restartHint))
	}
	if backend := f.elastic.GetRdzvBackend(); backend != "" && backend != "c10d" {
		found = append(found, warn(NoRendezvous, "elasticConfig.rdzvBackend",
			"%s, but the workers are sent to worker 0, where there is only c10d's store", backend))
	}
	if d := f.policy.GetActiveDeadlineSeconds(); d > 0 && d < defaultJoinTimeout {
		found = append(found, warn(DeadlineBeforeJoin, "runPolicy.activeDeadlineSeconds",
			"%d s, but workers wait up to %d s for each other: the job may end before its training begins", d, defaultJoinTimeout))
	}
	return found
}

func (f taskFacts) replicaTrouble(e Execution) []Warning {
	var found []Warning
	for _, name := range f.roleNames() {
		m, path := f.roles[name], name+"Replicas"
		spec := specOf(m)
		if spec.resources != nil && !spec.hasResources() && e.Dialect != Flyte1 {
			found = append(found, warn(ResourcesReset, path+".resources", "empty: Flyte 2 treats it as set and gives the platform's "+
				"defaults (1 CPU, 1Gi) instead of the task's CPU and memory"))
		}
		if m.GetCommon() != nil && hasDeprecated(m) {
			found = append(found, warn(SpecTwice, path, "common and the deprecated fields are both set: Flyte reads common alone"))
		}
	}
	return found
}

func hasDeprecated(m replicaMessage) bool {
	return m.GetReplicas() != 0 || m.GetImage() != "" || !proto.Equal(m.GetResources(), (*core.Resources)(nil)) ||
		m.GetRestartPolicy() != plugins.RestartPolicy_RESTART_POLICY_NEVER
}

func (f taskFacts) slots() []Warning {
	if f.slotsN <= 1 {
		return nil
	}
	return []Warning{warn(SlotsIgnored, "slots", "%d, but Flyte's backend always asks the operator for 1 slot a worker", f.slotsN)}
}

// badName includes what the operator adds to the name: pods and their Services are named <job>-<role>-<index>.
func (f taskFacts) badName(job string) []Warning {
	if job == "" {
		return nil
	}
	if problems := validation.IsDNS1035Label(job); len(problems) > 0 {
		return []Warning{warn(BadName, "metadata.name", "%q cannot be the name of a Service: %s", job, problems[0])}
	}
	longest := ""
	for _, name := range f.roleNames() {
		if n := specOf(f.roles[name]).replicas; n > 0 {
			if pod := fmt.Sprintf("%s-%s-%d", job, name, n-1); len(pod) > len(longest) {
				longest = pod
			}
		}
	}
	if len(longest) > validation.DNS1123LabelMaxLength {
		return []Warning{warn(BadName, "metadata.name", "pod %s has %d characters: at most %d",
			longest, len(longest), validation.DNS1123LabelMaxLength)}
	}
	return nil
}
