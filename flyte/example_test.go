package flyte_test

import (
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/flyte"
)

// The configuration of the founding example, as it is registered with Flyte.
func ExampleElastic_CustomConfig() {
	config := flyte.NewElastic(flyte.Nodes(2), 2)
	config.RunPolicy = &flyte.RunPolicy{
		CleanPodPolicy:          "all",
		BackoffLimit:            new(int32(4)),
		TTLSecondsAfterFinished: new(int32(100)),
		ActiveDeadlineSeconds:   new(int32(200)),
	}
	custom, err := config.CustomConfig()
	if err != nil {
		log.Fatal(err)
	}
	text, err := custom.JSON()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(custom.TaskType, custom.TaskTypeVersion)
	fmt.Println(string(text))
	// Output:
	// pytorch 1
	// {"workerReplicas":{"replicas":2},"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","ttlSecondsAfterFinished":100,"activeDeadlineSeconds":200,"backoffLimit":4},"elasticConfig":{"rdzvBackend":"c10d","minReplicas":2,"maxReplicas":2,"nprocPerNode":2,"maxRestarts":3}}
}

// A zero is nothing to proto3: the author hears of it.
func ExampleRunPolicy() {
	config := flyte.PyTorch{
		Worker:    flyte.Group{Replicas: 3},
		RunPolicy: &flyte.RunPolicy{CleanPodPolicy: flyte.CleanPodRunning, BackoffLimit: new(int32(0))},
	}
	custom, err := config.CustomConfig()
	if err != nil {
		log.Fatal(err)
	}
	for _, warning := range custom.Warnings {
		fmt.Println(warning)
	}
	// Output:
	// runPolicy.backoffLimit: Flyte's message cannot distinguish 0 from unset: there is no retry limit [zero-lost]
}

// Reading is strict, and says where the trouble is.
func ExampleParseCustomJSON() {
	_, err := flyte.ParseCustomJSON(flyte.PyTorchTask, 1, []byte(`{"runPolicy":{"cleanPodPolicy":"ALL"}}`))
	fmt.Println(err)
	// Output:
	// read pytorch custom: runPolicy.cleanPodPolicy: "ALL" is unknown: want CLEANPOD_POLICY_NONE, CLEANPOD_POLICY_RUNNING or CLEANPOD_POLICY_ALL
}

// A task, in whatever form one has it, becomes the manifest that Flyte would create.
func ExampleTask_Render() {
	task, err := flyte.DecodeTask([]byte(`{
		"type": "pytorch", "taskTypeVersion": 1,
		"custom": {
			"workerReplicas": {"replicas": 2},
			"runPolicy": {"cleanPodPolicy": "CLEANPOD_POLICY_ALL", "backoffLimit": 4},
			"elasticConfig": {"rdzvBackend": "c10d", "minReplicas": 2, "maxReplicas": 2, "nprocPerNode": 2, "maxRestarts": 3}
		},
		"container": {"image": "trainer:1", "args": ["train"]}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	job, err := task.Render(flyte.Execution{Name: "train-0", Dialect: flyte.Flyte2})
	if err != nil {
		log.Fatal(err)
	}
	spec := job.(*kubeflowv1.PyTorchJob).Spec
	text, err := yaml.Marshal(map[string]any{"runPolicy": spec.RunPolicy, "elasticPolicy": spec.ElasticPolicy})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// elasticPolicy:
	//   maxReplicas: 2
	//   maxRestarts: 3
	//   minReplicas: 2
	//   nProcPerNode: 2
	//   rdzvBackend: c10d
	// runPolicy:
	//   backoffLimit: 4
	//   cleanPodPolicy: All
}

// A task put together by hand. The annotation, which Flyte 2 copies from the pod to the job, lets Trainyard restart workers that Flyte
// says are never restarted, so that the retry limit means something and there is nothing to remark.
func ExampleTask() {
	config := flyte.NewElastic(flyte.Nodes(2), 8)
	config.RunPolicy = &flyte.RunPolicy{CleanPodPolicy: flyte.CleanPodRunning, BackoffLimit: new(int32(4))}
	custom, err := config.CustomConfig()
	if err != nil {
		log.Fatal(err)
	}
	task := flyte.Task{Custom: custom}
	task.Pod.Template.Annotations = map[string]string{kubeflowv1.AnnotationRestartPolicy: "OnFailure"}
	task.Pod.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "trainer:1", Args: []string{"train"}}}
	if err := task.Pod.IncreaseSharedMemory(); err != nil {
		log.Fatal(err)
	}
	run := flyte.Execution{Dialect: flyte.Flyte2, Name: "r7q2-a0-0", Labels: map[string]string{"flyte.org/managed": "true"}}
	job, err := task.Render(run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.GetName(), job.GetAnnotations(), len(task.Lint(run)))
	// Output:
	// r7q2-a0-0 map[trainyard.dev/restart-policy:OnFailure] 0
}

// From what is registered back to what was written.
func ExampleCustom_Config() {
	custom, err := flyte.ParseCustomJSON(flyte.TensorFlowTask, 1, []byte(`{
		"workerReplicas": {"replicas": 4, "restartPolicy": "RESTART_POLICY_ON_FAILURE"}, "psReplicas": {"replicas": 2},
		"runPolicy": {"cleanPodPolicy": "CLEANPOD_POLICY_RUNNING", "activeDeadlineSeconds": 3600}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	config, _, err := custom.Config()
	if err != nil {
		log.Fatal(err)
	}
	tf := config.(flyte.TensorFlow)
	fmt.Println(tf.Worker.Replicas, tf.Worker.RestartPolicy, tf.PS.Replicas, tf.RunPolicy.CleanPodPolicy, *tf.RunPolicy.ActiveDeadlineSeconds)
	// Output:
	// 4 OnFailure 2 Running 3600
}

// A number of nodes is written as torchrun has it.
func ExampleParseNNodes() {
	for _, text := range []string{"2:4", "4", "4:2"} {
		if nnodes, err := flyte.ParseNNodes(text); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("from", nnodes.Min, "to", nnodes.Max)
		}
	}
	// Output:
	// from 2 to 4
	// from 4 to 4
	// nnodes 4:2: the minimum is above the maximum
}

// What will surprise the author of a task.
func ExampleTask_Lint() {
	task, err := flyte.DecodeTask([]byte(`{
		"workerReplicas": {"replicas": 4},
		"runPolicy": {"cleanPodPolicy": "CLEANPOD_POLICY_ALL", "activeDeadlineSeconds": 600},
		"elasticConfig": {"rdzvBackend": "etcd", "minReplicas": 4, "maxReplicas": 4, "nprocPerNode": 8}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	for _, warning := range task.Lint(flyte.Execution{}) {
		fmt.Println(warning)
	}
	// Output:
	// elasticConfig.rdzvBackend: etcd, but the workers are sent to worker 0, where there is only c10d's store [no-rendezvous]
	// runPolicy.activeDeadlineSeconds: 600 s, but workers wait up to 900 s for each other: the job may end before its training begins [deadline-before-join]
}

// An existing job becomes a configuration; what Flyte cannot carry is named.
func ExampleFromManifest() {
	job := new(kubeflowv1.PyTorchJob)
	if err := yaml.UnmarshalStrict([]byte(`
metadata: {name: train}
spec:
  runPolicy: {cleanPodPolicy: All, suspend: true}
  elasticPolicy: {minReplicas: 2, maxReplicas: 4, nProcPerNode: 8}
  pytorchReplicaSpecs:
    Worker: {replicas: 4, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: "trainer:1"}]}}}
`), job); err != nil {
		log.Fatal(err)
	}
	config, _, lost, err := flyte.FromManifest(job)
	if err != nil {
		log.Fatal(err)
	}
	elastic := config.(flyte.Elastic)
	fmt.Println(elastic.NNodes, elastic.NprocPerNode, elastic.RunPolicy.CleanPodPolicy)
	for _, warning := range lost {
		fmt.Println(warning)
	}
	// Output:
	// 2:4 8 all
	// spec.runPolicy.suspend: Flyte has no field for it [not-carried]
}

// A suspended job waits in Flyte 1; Flyte 2 does not know the condition.
func ExampleReadPhase() {
	created := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	job := &kubeflowv1.PyTorchJob{ObjectMeta: metav1.ObjectMeta{Name: "train", CreationTimestamp: metav1.NewTime(created)}}
	job.Status.StartTime = new(metav1.NewTime(created))
	job.Status.Conditions = []kubeflowv1.JobCondition{
		{Type: kubeflowv1.JobCreated, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created)},
		{Type: kubeflowv1.JobSuspended, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created.Add(time.Second))},
	}
	for _, dialect := range []flyte.Dialect{flyte.Flyte1, flyte.Flyte2} {
		reading := flyte.ReadPhase(job, nil, created.Add(time.Minute), dialect)
		fmt.Printf("%s: %s: %s\n", dialect, reading.Phase, reading.Why)
	}
	// Output:
	// v1: Queued: the newest True condition is Suspended
	// v2: Undefined: the newest True condition is Suspended, which this Flyte does not know
}
