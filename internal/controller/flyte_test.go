package controller_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/flyte"
)

// What Flyte needs of an operator is listed in docs/flyte.md, with the tests of this file and the next that hold it.

// elastic is flyte-sdk's Elastic with a process on each node.
func elastic(nnodes flyte.NNodes, policy *flyte.RunPolicy) flyte.Elastic {
	e := flyte.NewElastic(nnodes, 1)
	e.RunPolicy = policy
	return e
}

// taskOf is a task of Flyte's whose replicas run a shell script. It asks for little: Flyte's default is a whole CPU.
func (w *world) taskOf(config flyte.Config, script string) flyte.Task {
	w.Helper()
	custom, err := config.CustomConfig()
	if err != nil {
		w.Fatal(err)
	}
	little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}
	much := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	var pod flyte.Pod
	pod.Template.Spec = corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{{
			Name: "main", Image: "none", Command: []string{"sh", "-c", script}, Resources: corev1.ResourceRequirements{Requests: little, Limits: much},
		}},
	}
	return flyte.Task{Custom: custom, Pod: pod}
}

// mpiTask is a task of Flyte's first version of MPI, whose slots are 0.
func (w *world) mpiTask() flyte.Task {
	w.Helper()
	custom, err := flyte.ParseCustomJSON(flyte.MPITask, 0, []byte(`{"numWorkers":2}`))
	if err != nil {
		w.Fatal(err)
	}
	return flyte.Task{Custom: custom, Pod: w.taskOf(flyte.PyTorch{}, "true").Pod}
}

// rendered is the job that Flyte makes of a task, with the labels of a run and a controller as its owner. Flyte's own kinds
// are not here, so the owner is an object that every namespace has.
func (w *world) rendered(task flyte.Task, dialect flyte.Dialect, name string) flyte.Manifest {
	w.Helper()
	labels := map[string]string{"execution-id": "f1", "node-id": "n0"}
	if dialect == flyte.Flyte2 {
		labels = map[string]string{"flyte.org/managed": "true", "run": "r1"}
	}
	job, err := task.Render(flyte.Execution{Dialect: dialect, Name: name, Namespace: w.Namespace, Labels: labels})
	if err != nil {
		w.Fatal(err)
	}
	owner, err := w.Client.CoreV1().ServiceAccounts(w.Namespace).Get(context.Background(), "default", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	job.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ServiceAccount"))})
	return job
}

// Flyte's manifests are taken as they are, and what cannot run is refused as invalid, which makes Flyte stop at once with
// the sentence. A plain "forbidden" it would try again.
func TestFlytesJobsAreTakenOrRefusedForGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	documents := w.manifests("../../flyte/testdata/render")
	if len(documents) < 20 {
		t.Errorf("found %d manifests", len(documents))
	}
	if o := w.Try(strings.Join(documents, "\n---\n"), "create", "--dry-run=server", "--validate=strict", "-f", "-"); o.Code != 0 {
		t.Errorf("%s", o.Stderr)
	}
	two := w.taskOf(elastic(flyte.Nodes(2), nil), "true")
	limited := func(limit int32) func(flyte.Manifest) {
		return func(job flyte.Manifest) { policyOf(job).BackoffLimit = &limit }
	}
	for _, c := range []struct {
		sentence, name string
		change         func(flyte.Manifest)
		says           string // nothing if it is taken
	}{
		{"the longest name that pods can have", strings.Repeat("a", 54), nil, ""},
		{"a longer one", strings.Repeat("a", 55), nil, "pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name"},
		{"a name with dots, which Flyte lets through", "run.a0-0", nil, "the job's Service has the same name, so use lower-case letters, digits and '-'"},
		{"a negative number, which Flyte lets through", "run-a0-0", limited(-1), "spec.runPolicy.backoffLimit"},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			job := w.rendered(two, flyte.Flyte2, c.name)
			if c.change != nil {
				c.change(job)
			}
			err := w.client.Create(t.Context(), job, client.DryRunAll)
			if (err == nil) != (c.says == "") || err != nil && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}

// Pods have the names that Flyte's log links lead to, its labels and annotations, a container of the name that it looks for,
// and an environment in which torch meets. They wait behind a gate: nothing of them runs.
func TestPodsAreAsFlyteLooksForThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	zeros, err := flyte.ParseCustomJSON(flyte.PyTorchTask, 1, []byte(`{"workerReplicas":{"replicas":2},"runPolicy":{},"elasticConfig":{"minReplicas":1,"maxReplicas":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	founding := flyte.NewElastic(flyte.Nodes(2), 2)
	for _, c := range []struct {
		sentence  string
		task      flyte.Task
		dialect   flyte.Dialect
		name      string
		pods      []string
		container string
		env       map[string]map[string]string // by pod; "" is a variable that is not there
	}{
		{
			"Elastic", w.taskOf(founding, ""), flyte.Flyte2, "run-a0-0", []string{"worker-0", "worker-1"}, "pytorch",
			map[string]map[string]string{"worker-1": {
				"PET_RDZV_ENDPOINT": "run-a0-0-worker-0:23456", "PET_NNODES": "2:2", "PET_RDZV_BACKEND": "c10d", "PET_NPROC_PER_NODE": "2",
				"PET_MAX_RESTARTS": "3", "RANK": "", "PYTHONUNBUFFERED": "0",
			}},
		},
		{
			"Elastic with nothing but zeros", flyte.Task{Custom: zeros, Pod: w.taskOf(founding, "").Pod}, flyte.Flyte1, "f1-n0-0", []string{"worker-0", "worker-1"}, "pytorch",
			map[string]map[string]string{"worker-0": {
				"PET_RDZV_ENDPOINT": "f1-n0-0-worker-0:23456", "PET_NNODES": "1:2", "PET_RDZV_BACKEND": "c10d", "PET_NPROC_PER_NODE": "auto", "PET_MAX_RESTARTS": "0",
			}},
		},
		{
			"PyTorch", w.taskOf(flyte.PyTorch{Worker: flyte.Group{Replicas: 2}}, ""), flyte.Flyte1, "f1-n1-0", []string{"master-0", "worker-0", "worker-1"}, "pytorch",
			map[string]map[string]string{
				"master-0": {"MASTER_ADDR": "f1-n1-0-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": "0", "PYTHONUNBUFFERED": "0"},
				"worker-1": {"MASTER_ADDR": "f1-n1-0-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": "2"},
			},
		},
		{
			"TfJob", w.taskOf(flyte.TensorFlow{Chief: flyte.Group{Replicas: 1}, PS: flyte.Group{Replicas: 1}, Worker: flyte.Group{Replicas: 1}, Evaluator: flyte.Group{Replicas: 1}}, ""),
			flyte.Flyte1, "f1-n2-0", []string{"chief-0", "evaluator-0", "ps-0", "worker-0"}, "tensorflow", nil,
		},
		{
			"MPI without slots", w.mpiTask(), flyte.Flyte1, "f1-n3-0", []string{"launcher", "worker-0", "worker-1"}, "mpi",
			map[string]map[string]string{"launcher": {"OMPI_MCA_orte_set_default_slots": "1"}},
		},
	} {
		w.row(c.sentence, func(w *world) {
			template := &c.task.Pod.Template
			template.Labels, template.Annotations = map[string]string{"team": "vision"}, map[string]string{"flyte.org/secret": "s1"}
			template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
			template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PYTHONUNBUFFERED", Value: "0"}}
			job := w.rendered(c.task, c.dialect, c.name)
			j := w.submit(job)
			w.Eventually("the pods are there", func() error {
				if n := len(j.pods()); n != len(c.pods) {
					return fmt.Errorf("%d are", n)
				}
				return nil
			})
			pods := j.pods()
			for _, name := range c.pods {
				pod := pods[name]
				if pod == nil {
					w.Fatalf("there is no pod %s-%s", c.name, name)
				}
				for key, value := range specsOf(job)[kubeflowv1.ReplicaType("Worker")].Template.Labels {
					if pod.Labels[key] != value {
						w.Errorf("pod %s has the labels %v", name, pod.Labels)
					}
				}
				if pod.Annotations["flyte.org/secret"] != "s1" || pod.Labels["team"] != "vision" || pod.Spec.Containers[0].Name != c.container {
					w.Errorf("pod %s has the annotations %v and container %s", name, pod.Annotations, pod.Spec.Containers[0].Name)
				}
				have := environmentOf(pod)
				for variable, value := range c.env[name] {
					if have[variable] != value {
						w.Errorf("%s of %s is %q, want %q", variable, name, have[variable], value)
					}
				}
			}
		})
	}
}

func environmentOf(pod *corev1.Pod) map[string]string {
	env := map[string]string{}
	for _, v := range pod.Spec.Containers[0].Env {
		env[v.Name] = v.Value
	}
	return env
}

// With the rights that docs/flyte.md names, and no others, Flyte can do to jobs what it does.
func TestTheRightsThatFlyteIsGivenAreEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page, err := os.ReadFile("../../docs/flyte.md")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		RBAC struct {
			ExtraRules []rbacv1.PolicyRule `json:"extraRules"`
		} `json:"rbac"`
	}
	block := regexp.MustCompile("(?s)```yaml\n(rbac:.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/flyte.md has no rules")
	}
	if err := yaml.UnmarshalStrict(block[1], &values); err != nil {
		t.Fatal(err)
	}
	account := fmt.Sprintf("system:serviceaccount:%s:flyte", w.Namespace)
	config := rest.CopyConfig(w.Config)
	config.Impersonate.UserName = account
	propeller, err := client.NewWithWatch(config, client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	suspend := func(job flyte.Manifest) flyte.Manifest { // nothing is to run
		suspended(true)(job)
		return job
	}
	before := suspend(w.rendered(w.taskOf(elastic(flyte.Nodes(2), nil), ""), flyte.Flyte1, "before"))
	if err := propeller.Create(t.Context(), before); !apierrors.IsForbidden(err) {
		t.Errorf("without the rules it is answered %v", err)
	}
	meta := metav1.ObjectMeta{Name: "flyte", Namespace: w.Namespace}
	subject := rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: account}
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: values.RBAC.ExtraRules},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "flyte"}, Subjects: []rbacv1.Subject{subject}},
	} {
		if err := w.client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	w.Eventually("the rules have reached the API server", func() error {
		return propeller.List(context.Background(), &kubeflowv1.PyTorchJobList{}, client.InNamespace(w.Namespace))
	})
	for _, c := range []struct {
		job  flyte.Manifest
		list client.ObjectList
	}{
		{w.rendered(w.taskOf(elastic(flyte.Nodes(2), nil), ""), flyte.Flyte1, "torch"), &kubeflowv1.PyTorchJobList{}},
		{w.rendered(w.taskOf(flyte.TensorFlow{Worker: flyte.Group{Replicas: 1}}, ""), flyte.Flyte1, "tensor"), &kubeflowv1.TFJobList{}},
		{w.rendered(w.mpiTask(), flyte.Flyte1, "mpi"), &kubeflowv1.MPIJobList{}},
	} {
		job := suspend(c.job)
		for _, step := range []struct {
			verb string
			do   func() error
		}{
			{"create", func() error { return propeller.Create(t.Context(), job) }},
			{"get", func() error { return propeller.Get(t.Context(), client.ObjectKeyFromObject(job), job) }},
			{"list", func() error { return propeller.List(t.Context(), c.list, client.InNamespace(w.Namespace)) }},
			{"watch", func() error {
				watch, err := propeller.Watch(t.Context(), c.list, client.InNamespace(w.Namespace))
				if err == nil {
					watch.Stop()
				}
				return err
			}},
			{"patch", func() error {
				return propeller.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["flyte.org/finalizer-k8s"]}}`)))
			}},
			{"update", func() error { // Flyte 2 takes all finalizers away before it deletes
				return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
					if err := propeller.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
						return err
					}
					job.SetFinalizers(nil)
					return propeller.Update(t.Context(), job)
				})
			}},
			{"delete", func() error { return propeller.Delete(t.Context(), job) }},
		} {
			if err := step.do(); err != nil {
				t.Errorf("%s %s: %v", step.verb, job.GetName(), err)
			}
		}
	}
}
