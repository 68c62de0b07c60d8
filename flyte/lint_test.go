package flyte

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

func TestLint(t *testing.T) {
	gpuPod := basePod()
	gpuPod.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpuResource: resource.MustParse("1")}
	restarted := basePod()
	restarted.Template.Annotations = map[string]string{kubeflowv1.AnnotationRestartPolicy: "OnFailure"}
	const (
		fixed   = `"workerReplicas":{"replicas":2},"elasticConfig":{"rdzvBackend":"c10d","minReplicas":2,"maxReplicas":2,"nprocPerNode":1}`
		ranged  = `"workerReplicas":{"replicas":4},"elasticConfig":{"rdzvBackend":"c10d","minReplicas":2,"maxReplicas":4,"nprocPerNode":1}`
		cleaned = `"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL"}`
	)
	for _, c := range []struct {
		name     string
		taskType TaskType
		custom   string
		pod      Pod
		run      Execution
		want     []string
	}{
		{name: "nothing to say about a plain elastic job", custom: `{` + fixed + `}`},
		{name: "GPUs and pods that are cleaned: nothing to say", custom: `{` + fixed + `,` + cleaned + `}`, pod: gpuPod},
		{
			name: "what was lost by reading is reported again", custom: `{` + fixed + `,"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","backoffLimit":0},"gang":true}`,
			want: []string{
				"gang: DistributedPyTorchTrainingTask has no such field: Flyte ignores it [unknown-field]",
				"runPolicy.backoffLimit: Flyte's message cannot distinguish 0 from unset: there is no retry limit [zero-lost]",
			},
		},
		{
			name: "a run policy for one node", taskType: PythonTask, custom: `{` + fixed + `,` + cleaned + `}`,
			want: []string{"runPolicy: a task of one node is a plain pod: nothing reads its run policy [policy-ignored]"},
		},
		{name: "one node without a run policy", taskType: PythonTask, custom: `{` + fixed + `}`, pod: gpuPod},
		{
			name: "GPUs without a run policy", custom: `{` + fixed + `}`, pod: gpuPod,
			want: []string{"runPolicy: there is none, and pods have GPUs: the operator decides what happens to pods that still run when the job ends; " +
				"Trainyard stops them, Training Operator 1.9 lets them run [gpus-held]"},
		},
		{
			name: "GPUs of one role, and pods kept", custom: `{"workerReplicas":{"replicas":1,"resources":{"limits":[{"name":"GPU","value":"1"}]}},"runPolicy":{"ttlSecondsAfterFinished":1}}`,
			want: []string{"runPolicy.cleanPodPolicy: None, or unset: pods that still run when the job ends keep their GPUs [gpus-held]"},
		},
		{
			name: "retries of what is never restarted", custom: `{` + fixed + `,"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","backoffLimit":4}}`,
			want: []string{"runPolicy.backoffLimit: 4, but every role's restart policy is Never: the first failure ends the job, and nothing is counted" +
				"; the annotation trainyard.dev/restart-policy: OnFailure, on the task (Flyte 1) or its pod template (Flyte 2), changes that [never-restarted]"},
		},
		{
			name:   "retries of workers that are restarted",
			custom: `{"workerReplicas":{"replicas":1,"restartPolicy":"RESTART_POLICY_ON_FAILURE"},"masterReplicas":{},"runPolicy":{"backoffLimit":4}}`,
		},
		{
			name: "a range of nodes", custom: `{` + ranged + `}`,
			want: []string{"elasticConfig: 2:4 nodes, but the restart policy is Never: a worker that is lost is not replaced, " +
				"and Training Operator 1.9 fails the job with it; the annotation trainyard.dev/restart-policy: OnFailure, on the task (Flyte 1) or its pod template (Flyte 2), changes that [never-restarted]"},
		},
		{
			name:   "retries and a range of nodes, with the annotation that restarts",
			custom: `{` + ranged + `,"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","backoffLimit":4}}`, pod: restarted,
		},
		{
			name:   "the annotation on the pod does not reach the job of Flyte 1",
			custom: `{` + fixed + `,"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","backoffLimit":4}}`, pod: restarted, run: Execution{Dialect: Flyte1},
			want: []string{"runPolicy.backoffLimit: 4, but every role's restart policy is Never: the first failure ends the job, and nothing is counted" +
				"; the annotation trainyard.dev/restart-policy: OnFailure, on the task (Flyte 1) or its pod template (Flyte 2), changes that [never-restarted]"},
		},
		{
			name: "a rendezvous in etcd", custom: `{` + strings.Replace(fixed, "c10d", "etcd-v2", 1) + `}`,
			want: []string{"elasticConfig.rdzvBackend: etcd-v2, but the workers are sent to worker 0, where there is only c10d's store [no-rendezvous]"},
		},
		{
			name: "empty resources, Flyte 2", custom: `{"workerReplicas":{"replicas":1,"resources":{}},"masterReplicas":{"resources":{}}}`,
			want: []string{
				"masterReplicas.resources: empty: Flyte 2 treats it as set and gives the platform's defaults (1 CPU, 1Gi) instead of the task's CPU and memory [resources-reset]",
				"workerReplicas.resources: empty: Flyte 2 treats it as set and gives the platform's defaults (1 CPU, 1Gi) instead of the task's CPU and memory [resources-reset]",
			},
		},
		{name: "empty resources, Flyte 1", custom: `{"workerReplicas":{"replicas":1,"resources":{}}}`, run: Execution{Dialect: Flyte1}},
		{
			name: "a name without room for its workers", custom: `{` + fixed + `}`, run: Execution{Name: strings.Repeat("a", 55)},
			want: []string{"metadata.name: pod " + strings.Repeat("a", 55) + "-worker-1 has 64 characters: at most 63 [bad-name]"},
		},
		{name: "a name with just enough room", custom: `{` + fixed + `}`, run: Execution{Name: strings.Repeat("a", 54)}},
		{
			name: "a name with dots", custom: `{` + fixed + `}`, run: Execution{Name: "run.a0"},
			want: []string{`metadata.name: "run.a0" cannot be the name of a Service: a DNS-1035 label must consist of lower case alphanumeric characters or '-', ` +
				`start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') [bad-name]`},
		},
		{
			name: "a deadline shorter than the meeting", custom: `{` + fixed + `,"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","activeDeadlineSeconds":200}}`,
			want: []string{"runPolicy.activeDeadlineSeconds: 200 s, but workers wait up to 900 s for each other: the job may end before its training begins [deadline-before-join]"},
		},
		{
			name: "MPI slots", taskType: MPITask, custom: `{"slots":2}`,
			want: []string{"slots: 2, but Flyte's backend always asks the operator for 1 slot a worker [slots-ignored]"},
		},
		{
			name: "a role described twice", taskType: TensorFlowTask, custom: `{"workerReplicas":{"replicas":1,"common":{"replicas":2}},"psReplicas":{"common":{"replicas":2}}}`,
			want: []string{"workerReplicas: common and the deprecated fields are both set: Flyte reads common alone [spec-twice]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.taskType == "" {
				c.taskType = PyTorchTask
			}
			custom, err := ParseCustomJSON(c.taskType, 1, []byte(c.custom))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lines(Task{Custom: custom, Pod: c.pod}.Lint(c.run))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
