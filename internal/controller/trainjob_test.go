package controller_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/localoperator"
)

// runtimeStep is a step of a runtime whose container runs a shell script, with a folder of the machine at its own path.
func runtimeStep(name, ancestor, container, folder, script string, after ...string) jobsetv1alpha2.ReplicatedJob {
	s := jobsetv1alpha2.ReplicatedJob{Name: name, Template: batchv1.JobTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{trainer.LabelAncestorStep: ancestor}},
	}}
	s.Template.Spec.Template.Spec = corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{{
			Name: container, Image: "none", Command: []string{"sh", "-c", script}, VolumeMounts: []corev1.VolumeMount{{Name: "initializer", MountPath: folder}},
		}},
		Volumes: []corev1.Volume{{Name: "initializer", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}}},
	}
	for _, name := range after {
		s.DependsOn = append(s.DependsOn, jobsetv1alpha2.DependsOn{Name: name, Status: jobsetv1alpha2.DependencyComplete})
	}
	return s
}

// blueprint is a runtime of these steps.
func blueprint(name string, steps ...jobsetv1alpha2.ReplicatedJob) *trainer.TrainingRuntime {
	r := &trainer.TrainingRuntime{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Spec.Template.Spec.ReplicatedJobs = steps
	return r
}

func (w *world) create(obj client.Object) {
	w.Helper()
	obj.SetNamespace(w.Namespace)
	if err := w.client.Create(context.Background(), obj); err != nil {
		w.Fatal(err)
	}
}

// trainjob is a TrainJob of that name, made from the runtime of the same name.
func trainjob(name string, changes ...func(*trainer.TrainJob)) *trainer.TrainJob {
	tj := &trainer.TrainJob{ObjectMeta: metav1.ObjectMeta{Name: name}}
	tj.Spec.RuntimeRef = trainer.RuntimeRef{Name: name, Kind: new(trainer.TrainingRuntimeKind)}
	for _, change := range changes {
		change(tj)
	}
	return tj
}

func (j *training) trainJob() *trainer.TrainJob {
	j.Helper()
	obj, err := j.get()
	if err != nil {
		j.Fatal(err)
	}
	return obj.(*trainer.TrainJob)
}

// reads checks the content of a file.
func (w *world) reads(path, want string) {
	w.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		w.Errorf("%s says %q (%v), want %q", path, got, err, want)
	}
}

// conditioned checks the one condition that clients of Trainer see.
func (j *training) conditioned(want, reason string) {
	j.Helper()
	c := j.trainJob().Status.Conditions
	if len(c) != 1 || c[0].Type != want || c[0].Status != metav1.ConditionTrue || c[0].Reason != reason {
		j.Errorf("the conditions are %+v, want %s by %s", c, want, reason)
	}
}

func TestTrainJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)

	w.row("its steps run one after the other, told where their data is, patched, and found as the SDK finds them", func(w *world) {
		folder := w.t.TempDir()
		w.create(blueprint("steps",
			runtimeStep("dataset-initializer", "dataset-initializer", "dataset-initializer", folder, `cd `+folder+`; echo "data $STORAGE_URI" >> order`),
			runtimeStep("model-initializer", "model-initializer", "model-initializer", folder, `cd `+folder+`; echo "model $STORAGE_URI" >> order`, "dataset-initializer"),
			runtimeStep("node", "trainer", "node", folder, `cd `+folder+`; cp order seen-by-$HOSTNAME; test "$COLOR" = red`, "model-initializer")))
		j := w.submit(trainjob("steps", func(tj *trainer.TrainJob) {
			tj.Spec.Initializer = &trainer.Initializer{
				Dataset: &trainer.DatasetInitializer{Source: trainer.Source{StorageURI: new("hf://a/data")}},
				Model:   &trainer.ModelInitializer{Source: trainer.Source{StorageURI: new("hf://a/model")}},
			}
			tj.Spec.Trainer = &trainer.Trainer{NumNodes: new(int32(2)), Env: []corev1.EnvVar{{Name: "COLOR", Value: "red"}}}
			patch := &trainer.JobSetSpecPatch{ReplicatedJobs: []trainer.ReplicatedJobPatch{{Name: "node", Template: &trainer.JobTemplatePatch{
				Spec: &trainer.JobSpecPatch{Template: &trainer.PodTemplatePatch{Metadata: &trainer.MetadataPatch{Labels: map[string]string{"queue": "main"}}}},
			}}}}
			tj.Spec.RuntimePatches = []trainer.RuntimePatch{{
				Manager: "kueue.x-k8s.io/manager", TrainingRuntimeSpec: &trainer.TrainingRuntimeSpecPatch{Template: &trainer.JobSetTemplatePatch{Spec: patch}},
			}}
		}))
		j.becomes(kubeflowv1.JobSucceeded)
		for _, node := range []string{"steps-node-0", "steps-node-1"} {
			w.reads(filepath.Join(folder, "seen-by-"+node), "data hf://a/data\nmodel hf://a/model\n")
		}
		j.conditioned("Complete", "AllJobsCompleted")
		want := []trainer.JobStatus{{Name: "dataset-initializer", Succeeded: 1}, {Name: "model-initializer", Succeeded: 1}, {Name: "node", Succeeded: 1}}
		if got := j.trainJob().Status.JobsStatus; !slices.Equal(got, want) {
			w.Errorf("the steps are %+v", got)
		}
		found := w.Kubectl("get", "pods", "-o", "name", "-l", "jobset.sigs.k8s.io/jobset-name=steps,batch.kubernetes.io/job-completion-index=1,queue=main,"+
			"jobset.sigs.k8s.io/replicatedjob-name in (dataset-initializer,model-initializer,launcher,node)")
		if found != "pod/steps-node-1\n" {
			w.Errorf("the SDK finds %q", found)
		}
		reads := 0
		for _, r := range w.audited(operatorOf(w.Namespace)) {
			if r.ObjectRef.Resource == "trainingruntimes" && r.ObjectRef.Name == "steps" {
				reads++
			}
		}
		if reads != 1 {
			w.Errorf("its runtime was read %d times", reads)
		}
	})

	w.row("a retry does not fetch the data again", func(w *world) {
		folder := w.t.TempDir()
		w.create(blueprint("retried",
			runtimeStep("data", "dataset-initializer", "dataset-initializer", folder, `echo fetched >> `+folder+`/data`),
			runtimeStep("node", "trainer", "node", folder, fmt.Sprintf(`mkdir %s/ran 2>/dev/null && exit 3; true`, folder), "data")))
		s := w.submit(trainjob("retried", func(tj *trainer.TrainJob) {
			tj.Spec.Trainer = &trainer.Trainer{NumNodes: new(int32(2))}
		})).becomes(kubeflowv1.JobSucceeded)
		if s.Retries != 1 || s.Attempt != 1 {
			w.Errorf("the status is\n%s", describe(s))
		}
		w.reads(filepath.Join(folder, "data"), "fetched\n")
	})

	w.row("a step after the training is retried without it", func(w *world) {
		folder := w.t.TempDir()
		w.create(blueprint("judged",
			runtimeStep("node", "trainer", "node", folder, `echo trained >> `+folder+`/training-of-$HOSTNAME`),
			runtimeStep("evaluate", "", "node", folder, fmt.Sprintf(`mkdir %s/judged 2>/dev/null && exit 3; true`, folder), "node")))
		s := w.submit(trainjob("judged", func(tj *trainer.TrainJob) {
			tj.Spec.Trainer = &trainer.Trainer{NumNodes: new(int32(2))}
		})).becomes(kubeflowv1.JobSucceeded)
		if s.Retries != 1 || s.Attempt != 1 {
			w.Errorf("the status is\n%s", describe(s))
		}
		w.reads(filepath.Join(folder, "training-of-judged-node-0"), "trained\n")
		w.reads(filepath.Join(folder, "training-of-judged-node-1"), "trained\n")
	})

	w.row("its deadline ends it", func(w *world) {
		w.create(blueprint("late", runtimeStep("node", "trainer", "node", w.t.TempDir(), `sleep 600`)))
		j := w.submit(trainjob("late", func(tj *trainer.TrainJob) { tj.Spec.ActiveDeadlineSeconds = new(int64(3)) }))
		j.becomes(kubeflowv1.JobFailed)
		j.conditioned("Failed", "DeadlineExceeded")
		j.comesToRest()
	})

	w.row("it is deleted when its time to live is over, as the runtime says", func(w *world) {
		r := blueprint("fleeting", runtimeStep("node", "trainer", "node", w.t.TempDir(), `true`))
		r.Spec.RunPolicy = &trainer.RuntimeRunPolicy{TTLSecondsAfterFinished: new(int32(1))}
		w.create(r)
		j := w.submit(trainjob("fleeting"))
		w.Eventually("the job is gone", func() error {
			if _, err := j.get(); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there still: %w", err)
			}
			return nil
		})
	})

	w.row("suspended, and resumed after its runtime was edited, it is run as it was", func(w *world) {
		folder := w.t.TempDir()
		gate := filepath.Join(folder, "open")
		w.create(blueprint("paused", runtimeStep("node", "trainer", "node", folder, fmt.Sprintf(`until test -e %s; do sleep 0.1; done`, gate))))
		j := w.submit(trainjob("paused"))
		j.becomes(kubeflowv1.JobRunning)
		if c := j.trainJob().Status.Conditions; len(c) > 0 {
			w.Errorf("the conditions of a running job are %+v", c)
		}
		w.Kubectl("patch", "trainjob", "paused", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
		j.becomes(kubeflowv1.JobSuspended)
		j.conditioned("Suspended", "Suspended")
		w.Eventually("its pods are gone", func() error {
			if pods := j.pods(); len(pods) > 0 {
				return fmt.Errorf("there are %d", len(pods))
			}
			return nil
		})
		w.Kubectl("patch", "trainingruntime", "paused", "--type=json", "-p",
			`[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/command","value":["false"]}]`)
		w.Kubectl("patch", "trainjob", "paused", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
		j.becomes(kubeflowv1.JobRunning)
		open(w.t, gate)
		if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries != 0 || s.Attempt != 1 {
			w.Errorf("the status is\n%s", describe(s))
		}
		j.conditioned("Complete", "AllJobsCompleted")
	})

	w.row("it waits for its runtime", func(w *world) {
		j := w.submit(trainjob("early"))
		s := j.until("waits for its runtime", func(s kubeflowv1.JobStatus) bool { return strings.Contains(s.Message, "TrainingRuntime early") })
		if s.StartTime != nil || len(s.Attempts) > 0 {
			w.Errorf("it has begun at %s", s.StartTime)
		}
		w.create(blueprint("early", runtimeStep("node", "trainer", "node", w.t.TempDir(), `true`)))
		j.becomes(kubeflowv1.JobSucceeded)
	})

	w.row("one that its runtime cannot serve fails, and says why", func(w *world) {
		w.create(blueprint("misfit", runtimeStep("node", "trainer", "node", w.t.TempDir(), `true`)))
		j := w.submit(trainjob("misfit", func(tj *trainer.TrainJob) {
			tj.Spec.Initializer = &trainer.Initializer{Model: &trainer.ModelInitializer{}}
		}))
		if s := j.becomes(kubeflowv1.JobFailed); !strings.Contains(s.Message, "has no step with the label") {
			w.Errorf("it says %q", s.Message)
		}
		j.conditioned("Failed", "TrainingRuntimeNotSupported")
	})

	w.row("scaled it starts anew, with the number it was scaled to", func(w *world) {
		folder := w.t.TempDir()
		r := blueprint("grows", runtimeStep("node", "trainer", "node", folder, fmt.Sprintf(`test $PET_NNODES = 2 || sleep 600; touch %s/$PET_NODE_RANK`, folder)))
		r.Spec.MLPolicy = &trainer.MLPolicy{MLPolicySource: trainer.MLPolicySource{Torch: &trainer.TorchMLPolicySource{}}}
		w.create(r)
		j := w.submit(trainjob("grows"))
		j.becomes(kubeflowv1.JobRunning)
		w.Kubectl("scale", "trainjob", "grows", "--replicas=2")
		if s := j.becomes(kubeflowv1.JobSucceeded); s.Attempt != 1 || s.Retries != 0 {
			w.Errorf("the status is\n%s", describe(s))
		}
		w.reads(filepath.Join(folder, "0"), "")
		w.reads(filepath.Join(folder, "1"), "")
	})
}

// The examples, with the runtimes that come with the program: real torch over two nodes, and steps that share a folder.
func TestTheExamplesOfTrainJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := localoperator.InstallRuntimes(t.Context(), w.Config); err != nil {
		t.Fatal(err)
	}
	version := w.Kubectl("get", "configmap", "kubeflow-trainer-public", "--namespace=kubeflow-system", "--as=somebody", "--as-group=system:authenticated",
		"-o", "jsonpath={.data.kubeflow_trainer_version}")
	if version != "v2.3.0" {
		t.Errorf("the Kubeflow SDK reads the version %q", version)
	}
	for name, file := range map[string]string{"line": "trainjob.yaml", "steps": "steps.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", "trainjob", file))
		if err != nil {
			t.Fatal(err)
		}
		w.Apply(strings.ReplaceAll(string(text), "/tmp/fine-tuning", t.TempDir()))
		(&training{world: w, name: name, empty: &trainer.TrainJob{}}).becomes(kubeflowv1.JobSucceeded)
	}
	w.says("line-node-0", "rank 0 of 2: y = 3.00 x + 1.00, sum of ranks 3")
	w.says("line-node-1", "rank 1 of 2: y = 3.00 x + 1.00, sum of ranks 3")
	w.says("steps-node-1", "fetched hf://tatsu-lab/alpaca", "fetched hf://meta-llama/Llama-3.2-1B", "node 1 of 2 trains")
}
