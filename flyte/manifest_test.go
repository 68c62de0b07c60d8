package flyte

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// TestManifestRoundTrip: the job of a configuration gives a configuration of the same job, unless a warning says that it cannot.
func TestManifestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		custom, err := anyConfig.Draw(t, "config").CustomConfig()
		if err != nil {
			t.Fatal(err)
		}
		run := Execution{Name: "job", Dialect: Flyte1}
		job, err := Task{Custom: custom, Pod: basePod()}.Render(run)
		if err != nil {
			return // one node, or no tensorflow worker: no job comes of it
		}
		config, pod, lost, err := FromManifest(job)
		if err != nil {
			t.Fatalf("read back: %v", err)
		}
		if len(lost) > 0 {
			if _, elastic := config.(Elastic); elastic {
				t.Fatalf("an elastic job lost %v", lost)
			}
			return
		}
		again, err := config.CustomConfig()
		if err != nil {
			t.Fatal(err)
		}
		same, err := Task{Custom: again, Pod: pod}.Render(run)
		if err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(job, same) {
			t.Fatalf("(-first +again):\n%s", cmp.Diff(job, same))
		}
	})
}

// TestCustomRoundTrip: the custom itself comes back too, without zeros, where roles differ in nothing but their restart policies.
func TestCustomRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := func(g Group) Group { return Group{Replica{RestartPolicy: g.RestartPolicy}, g.Replicas + 1} }
		config := anyConfig.Draw(t, "config")
		switch c := config.(type) {
		case Elastic:
			if c.NNodes == Nodes(1) {
				return // one node is no job
			}
		case PyTorch:
			config = PyTorch{plain(Group{Replica: c.Master}).Replica, plain(c.Worker), c.RunPolicy}
		case TensorFlow:
			config = TensorFlow{plain(c.Chief), plain(c.PS), plain(c.Worker), plain(c.Evaluator), c.RunPolicy}
		}
		custom, err := config.CustomConfig()
		if err != nil {
			t.Fatal(err)
		}
		job, err := Task{Custom: custom, Pod: basePod()}.Render(Execution{Name: "job", Dialect: Flyte1})
		if err != nil {
			t.Fatal(err)
		}
		back, _, lost, err := FromManifest(job)
		if err != nil || len(lost) > 0 {
			t.Fatalf("read back with error %v, lost %v", err, lost)
		}
		again, err := back.CustomConfig()
		if err != nil {
			t.Fatal(err)
		}
		want, _ := custom.JSON()
		got, _ := again.JSON()
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	})
}

func basePod() Pod {
	return Pod{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name:      "main",
		Image:     "base:1",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
	}}}}}
}

func TestFromManifest(t *testing.T) {
	const template = `{spec: {containers: [{name: pytorch, image: "trainer:1"}]}}`
	const tfTemplate = `{spec: {containers: [{name: tensorflow, image: "trainer:1"}]}}`
	elastic := func(nnodes NNodes, nproc int32, change func(*Elastic)) Config {
		e := NewElastic(nnodes, nproc)
		e.MaxRestarts = 0
		change(&e)
		return e
	}
	for _, c := range []struct {
		name string
		job  Manifest
		spec string
		want Config
		lost []string
	}{
		{
			name: "a job of today with its policies",
			job:  &kubeflowv1.PyTorchJob{},
			spec: `
runPolicy: {cleanPodPolicy: All, backoffLimit: 4, activeDeadlineSeconds: 200, ttlSecondsAfterFinished: 100}
pytorchReplicaSpecs:
  Master: {replicas: 1, restartPolicy: Never, template: ` + template + `}
  Worker: {replicas: 3, template: ` + template + `}`,
			want: PyTorch{
				Master:    Replica{RestartPolicy: RestartNever},
				Worker:    Group{Replicas: 3, Replica: Replica{RestartPolicy: RestartOnFailure}},
				RunPolicy: &RunPolicy{CleanPodAll, new(int32(100)), new(int32(200)), new(int32(4))},
			},
		},
		{
			name: "policies in the old place and roles in small letters; the clean pod policy that counts is spelled out",
			job:  &kubeflowv1.PyTorchJob{},
			spec: `
backoffLimit: 4
pytorchReplicaSpecs:
  master: {template: ` + template + `}
  worker: {replicas: 1, template: ` + template + `}`,
			want: PyTorch{
				Master:    Replica{RestartPolicy: RestartOnFailure},
				Worker:    Group{Replicas: 1, Replica: Replica{RestartPolicy: RestartOnFailure}},
				RunPolicy: &RunPolicy{CleanPodPolicy: CleanPodRunning, BackoffLimit: new(int32(4))},
			},
		},
		{
			name: "roles of different image and resources",
			job:  &kubeflowv1.PyTorchJob{},
			spec: `
pytorchReplicaSpecs:
  Master:
    restartPolicy: Never
    template: {spec: {containers: [{name: pytorch, image: "master:1", resources: {limits: {nvidia.com/gpu: 2, memory: 4Gi}}}]}}
  Worker: {restartPolicy: Never, template: ` + template + `}`,
			want: PyTorch{
				Master: Replica{
					Image: "master:1", RestartPolicy: RestartNever,
					Requests: Resources{CPU: "1", Memory: "4Gi", GPU: "2"},
					Limits:   Resources{CPU: "1", Memory: "4Gi", GPU: "2"},
				},
				Worker: Group{Replicas: 1, Replica: Replica{RestartPolicy: RestartNever}},
			},
		},
		{
			name: "an elastic job as Flyte would make it",
			job:  &kubeflowv1.PyTorchJob{},
			spec: `
elasticPolicy: {minReplicas: 2, maxReplicas: 4, nProcPerNode: 8, maxRestarts: 3, rdzvBackend: c10d}
pytorchReplicaSpecs: {Worker: {replicas: 4, restartPolicy: Never, template: ` + template + `}}`,
			want: elastic(NNodes{Min: 2, Max: 4, Text: true}, 8, func(e *Elastic) { e.MaxRestarts = 3 }),
		},
		{
			name: "an elastic job with what Flyte cannot say",
			job:  &kubeflowv1.PyTorchJob{},
			spec: `
nprocPerNode: gpu
runPolicy: {suspend: true, managedBy: kueue.x-k8s.io/multikueue, schedulingPolicy: {queue: research}, backoffLimit: 0, activeDeadlineSeconds: 3000000000}
elasticPolicy:
  {minReplicas: 1, maxReplicas: 4, rdzvHost: h, rdzvPort: 1, rdzvId: i, rdzvConf: [{key: a, value: b}], standalone: false, metrics: [{type: Resource}]}
pytorchReplicaSpecs:
  Master: {template: ` + template + `}
  Worker: {replicas: 2, template: ` + template + `}`,
			want: elastic(NNodes{Min: 1, Max: 4, Text: true}, 1, func(e *Elastic) {
				e.RunPolicy = &RunPolicy{CleanPodPolicy: CleanPodRunning, BackoffLimit: new(int32(0))}
			}),
			lost: []string{
				"spec.runPolicy.suspend: Flyte has no field for it [not-carried]",
				"spec.runPolicy.schedulingPolicy: Flyte has no field for it [not-carried]",
				"spec.runPolicy.managedBy: Flyte has no field for it [not-carried]",
				"spec.runPolicy.activeDeadlineSeconds: 3000000000 is too large: at most 2147483647 [not-carried]",
				"spec.elasticPolicy.rdzvHost: Flyte has no field for it [not-carried]",
				"spec.elasticPolicy.rdzvPort: Flyte has no field for it [not-carried]",
				"spec.elasticPolicy.rdzvId: Flyte has no field for it [not-carried]",
				"spec.elasticPolicy.rdzvConf: Flyte has no field for it [not-carried]",
				"spec.elasticPolicy.standalone: Flyte has no field for it [not-carried]",
				"spec.elasticPolicy.metrics: Flyte has no field for it [not-carried]",
				"spec.pytorchReplicaSpecs.Master: Flyte has no field for it [not-carried]",
				"spec.pytorchReplicaSpecs.Worker.restartPolicy: OnFailure, but Flyte's elastic workers are never restarted [not-carried]",
				"spec.pytorchReplicaSpecs.Worker.replicas: 2, but Flyte starts as many workers as the maximum, 4 [not-carried]",
				"spec.nprocPerNode: it is not a number, but Flyte needs one: 1 is used [not-carried]",
				"runPolicy.backoffLimit: Flyte's message cannot distinguish 0 from unset: there is no retry limit [zero-lost]",
			},
		},
		{
			name: "workers alone",
			job:  &kubeflowv1.PyTorchJob{},
			spec: `
nprocPerNode: "2"
pytorchReplicaSpecs: {Worker: {replicas: 2, restartPolicy: ExitCode, template: ` + template + `}}`,
			want: PyTorch{Worker: Group{Replicas: 2, Replica: Replica{RestartPolicy: RestartOnFailure}}},
			lost: []string{
				"spec.nprocPerNode: Flyte has no field for it [not-carried]",
				"spec.pytorchReplicaSpecs.Master: there is none, but Flyte adds one to every job that is not elastic [not-carried]",
				"spec.pytorchReplicaSpecs.Worker.restartPolicy: Flyte does not know ExitCode: OnFailure is used [not-carried]",
			},
		},
		{
			name: "roles whose pods differ in their volumes",
			job:  &kubeflowv1.PyTorchJob{},
			spec: `
pytorchReplicaSpecs:
  Master: {restartPolicy: Never, template: {spec: {volumes: [{name: data, emptyDir: {}}], containers: [{name: pytorch, image: "trainer:1"}]}}}
  Worker: {restartPolicy: Never, template: ` + template + `}`,
			want: PyTorch{Master: Replica{RestartPolicy: RestartNever}, Worker: Group{Replicas: 1, Replica: Replica{RestartPolicy: RestartNever}}},
			lost: []string{
				"spec.pytorchReplicaSpecs.Master.template: it differs from the others in more than image, CPU, memory, GPUs and storage [not-carried]",
			},
		},
		{
			name: "a tensorflow job with what Flyte cannot say",
			job:  &kubeflowv1.TFJob{},
			spec: `
successPolicy: AllWorkers
enableDynamicWorker: true
tfReplicaSpecs:
  Master: {template: ` + tfTemplate + `}
  PS: {replicas: 2, restartPolicy: Always, template: ` + tfTemplate + `}
  Evaluator: {replicas: 0, template: ` + tfTemplate + `}
  Worker: {replicas: 4, template: ` + tfTemplate + `}`,
			want: TensorFlow{
				PS:     Group{Replicas: 2, Replica: Replica{RestartPolicy: RestartAlways}},
				Worker: Group{Replicas: 4, Replica: Replica{RestartPolicy: RestartNever}},
			},
			lost: []string{
				"spec.successPolicy: Flyte has no field for it [not-carried]",
				"spec.enableDynamicWorker: Flyte has no field for it [not-carried]",
				"spec.tfReplicaSpecs.Master: Flyte has no field for it [not-carried]",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := yaml.UnmarshalStrict([]byte("spec:"+indent(c.spec)), c.job); err != nil {
				t.Fatal(err)
			}
			before := c.job.DeepCopyObject()
			got, _, lost, err := FromManifest(c.job)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.lost, lines(lost)); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
			if !equality.Semantic.DeepEqual(before, c.job) {
				t.Error("the job was changed by reading it")
			}
		})
	}
}

func TestFromManifestRefuses(t *testing.T) {
	bad := kubeflowv1.CleanPodPolicy("Finished")
	worker := map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Worker": {Template: basePod().Template}}
	empty := map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Worker": {}}
	job := func(spec kubeflowv1.PyTorchJobSpec) Manifest { return &kubeflowv1.PyTorchJob{Spec: spec} }
	for name, m := range map[string]Manifest{
		"no replicas":                    job(kubeflowv1.PyTorchJobSpec{}),
		"no container":                   job(kubeflowv1.PyTorchJobSpec{PyTorchReplicaSpecs: empty}),
		"an unknown clean pod policy":    job(kubeflowv1.PyTorchJobSpec{PyTorchReplicaSpecs: worker, RunPolicy: kubeflowv1.RunPolicy{LifecyclePolicy: kubeflowv1.LifecyclePolicy{CleanPodPolicy: &bad}}}),
		"an elastic job without workers": job(kubeflowv1.PyTorchJobSpec{PyTorchReplicaSpecs: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Master": worker["Worker"]}, ElasticPolicy: &kubeflowv1.ElasticPolicy{}}),
		"a kind that is none of ours":    &corev1.Pod{},
	} {
		if config, _, _, err := FromManifest(m); err == nil {
			t.Errorf("%s: read as %+v, want an error", name, config)
		}
	}
}

func indent(block string) string {
	out := ""
	for _, r := range block {
		out += string(r)
		if r == '\n' {
			out += "  "
		}
	}
	return out
}
