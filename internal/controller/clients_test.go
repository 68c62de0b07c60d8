package controller_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	theirs "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	clientset "github.com/kubeflow/training-operator/pkg/client/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// replica is a role as Training Operator's own types have it.
func replica(container, script string) *theirs.ReplicaSpec {
	return &theirs.ReplicaSpec{Replicas: new(int32(1)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: container, Image: "none", Command: []string{"sh", "-c", script}}},
	}}}
}

// Training Operator's published client creates, watches, reads, edits and deletes jobs, and finds in them what it knows.
func TestThePublishedClientOfTrainingOperatorWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	published, err := clientset.NewForConfig(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	w.row("PyTorchJob", func(w *world) {
		jobs, ctx := published.KubeflowV1().PyTorchJobs(w.Namespace), w.t.Context()
		job := &theirs.PyTorchJob{ObjectMeta: metav1.ObjectMeta{Name: "torch"}}
		job.Spec.RunPolicy.Suspend = new(true)
		job.Spec.PyTorchReplicaSpecs = map[theirs.ReplicaType]*theirs.ReplicaSpec{
			theirs.PyTorchJobReplicaTypeMaster: replica("pytorch", "sleep 1"), theirs.PyTorchJobReplicaTypeWorker: replica("pytorch", "sleep 1"),
		}
		created, err := jobs.Create(ctx, job, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		events, err := jobs.Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion, FieldSelector: "metadata.name=torch"})
		if err != nil {
			w.Fatal(err)
		}
		defer events.Stop()
		status := func(obj any) theirs.JobStatus { return obj.(*theirs.PyTorchJob).Status }
		w.watched(events, theirs.JobSuspended, status)
		w.Eventually("resuming it", func() error {
			current, err := jobs.Get(ctx, "torch", metav1.GetOptions{})
			if err == nil {
				current.Spec.RunPolicy.Suspend = new(false)
				_, err = jobs.Update(ctx, current, metav1.UpdateOptions{})
			}
			return err
		})
		seen := w.watched(events, theirs.JobSucceeded, status)
		if seen.StartTime == nil || seen.CompletionTime == nil || seen.ReplicaStatuses["Master"].Succeeded != 1 || seen.ReplicaStatuses["Worker"].Selector == "" {
			w.Errorf("the client reads %+v", seen)
		}
		if list, err := jobs.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
			w.Errorf("the client lists %d jobs: %v", len(list.Items), err)
		}
		if err := jobs.Delete(ctx, "torch", metav1.DeleteOptions{}); err != nil {
			w.Error(err)
		}
	})
	w.row("TFJob", func(w *world) {
		jobs, ctx := published.KubeflowV1().TFJobs(w.Namespace), w.t.Context()
		job := &theirs.TFJob{ObjectMeta: metav1.ObjectMeta{Name: "tensor"}}
		job.Spec.TFReplicaSpecs = map[theirs.ReplicaType]*theirs.ReplicaSpec{theirs.TFJobReplicaTypeWorker: replica("tensorflow", "exit 1")}
		created, err := jobs.Create(ctx, job, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		events, err := jobs.Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion, FieldSelector: "metadata.name=tensor"})
		if err != nil {
			w.Fatal(err)
		}
		defer events.Stop()
		seen := w.watched(events, theirs.JobFailed, func(obj any) theirs.JobStatus { return obj.(*theirs.TFJob).Status })
		if last := seen.Conditions[len(seen.Conditions)-1]; last.Reason != "TFJobFailed" || seen.CompletionTime == nil {
			w.Errorf("the client reads %+v", seen)
		}
	})
}

// Training Operator's Python SDK, from the source that is published beside its Go code, with Debian's client of Kubernetes.
func TestThePythonSDKOfTrainingOperatorWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubeflow/training-operator").Output()
	if err != nil {
		t.Fatalf("finding the source of Training Operator: %v", err)
	}
	python := exec.CommandContext(t.Context(), "/usr/bin/python3", filepath.Join("testdata", "training_sdk.py"), w.Namespace)
	python.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig(), "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+filepath.Join(strings.TrimSpace(string(dir)), "sdk", "python"))
	if output, err := python.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
}

// watched follows a job until the condition holds, and returns its status.
func (w *world) watched(events watch.Interface, state theirs.JobConditionType, status func(any) theirs.JobStatus) theirs.JobStatus {
	w.Helper()
	for event := range events.ResultChan() {
		s := status(event.Object)
		for _, c := range s.Conditions {
			if c.Type == state && c.Status == corev1.ConditionTrue {
				return s
			}
		}
	}
	w.Fatalf("the watch ended before the job was %s", state)
	return theirs.JobStatus{}
}

// The manifests of every era, and the examples that Training Operator and mpi-operator publish, are taken by the API server as they are:
// nothing in them is unknown to it.
func TestTheManifestsOfEveryEraAreTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, row := range []struct {
		folder  string
		atLeast int
	}{
		{"../../api/kubeflow/v1/testdata", 9}, {examplesOf(t, "github.com/kubeflow/training-operator"), 26}, {examplesOf(t, "github.com/kubeflow/mpi-operator"), 5},
	} {
		documents := w.manifests(row.folder)
		if len(documents) < row.atLeast {
			t.Errorf("found %d manifests in %s", len(documents), row.folder)
		}
		if o := w.Try(strings.Join(documents, "\n---\n"), "create", "--dry-run=server", "--validate=strict", "-f", "-"); o.Code != 0 {
			t.Errorf("%s", o.Stderr)
		}
	}
}

// examplesOf is the folder of a module's examples.
func examplesOf(t *testing.T, module string) string {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}/examples", module).Output()
	if err != nil {
		t.Fatalf("finding the source of %s: %v", module, err)
	}
	return strings.TrimSpace(string(folder))
}

var (
	ours      = regexp.MustCompile(`(?m)^kind: *"?(PyTorchJob|TFJob|JAXJob|PaddleJob|XGBoostJob|MPIJob)"?`)
	noField   = regexp.MustCompile(`(?m)^        kind: Pod$`)
	namespace = regexp.MustCompile(`(?m)^  namespace: .*\n`)
)

// manifests are the jobs in the files below a folder, without their namespaces. One of them is left out: its templates have a kind, which
// no API server knows there.
func (w *world) manifests(folder string) []string {
	w.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		for _, document := range strings.Split(string(data), "\n---") {
			if ours.MatchString(document) && !noField.MatchString(document) {
				found = append(found, namespace.ReplaceAllString(document, ""))
			}
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return found
}
