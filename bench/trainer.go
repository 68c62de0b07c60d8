package main

import (
	"context"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	jobcontroller "k8s.io/kubernetes/pkg/controller/job"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const runtimeName = "bench"

// torchRuntime is Trainer's torch-distributed, with what JobSet's webhook adds to each JobSet: the bench runs without webhooks.
const torchRuntime = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: ` + runtimeName + `
  labels: {trainer.kubeflow.org/framework: torch}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      network: {enableDNSHostnames: true, publishNotReadyAddresses: true}
      successPolicy: {operator: All}
      startupPolicy: {startupPolicyOrder: AnyOrder}
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            completionMode: Indexed
            template:
              spec:
                restartPolicy: OnFailure
                containers: [{name: node, image: train, command: [train]}]
`

// applyRuntime creates the runtime of the TrainJobs, once for each definition of the kind.
func (w *world) applyRuntime(ctx context.Context) error {
	var runtime unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(torchRuntime), &runtime.Object); err != nil {
		return err
	}
	if err := client.IgnoreNotFound(w.client.Delete(ctx, runtime.DeepCopy())); err != nil {
		return err
	}
	return w.client.Create(ctx, &runtime)
}

// trainer is Kubeflow Trainer: its controllers and JobSet's in one process, and Kubernetes' Job controller in this one.
type trainer struct{ process }

func (t trainer) start(ctx context.Context, w *world, namespace string, s shape) (func() usage, error) {
	stop, err := t.process.start(ctx, w, namespace, s)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	if err := w.runJobController(ctx, t.agent()+"-jobs", namespace); err != nil {
		end()
		stop()
		return nil, err
	}
	return func() usage { defer end(); return stop() }, nil
}

// runJobController runs Kubernetes' own controller of Jobs, with the number of workers that it has by default.
func (w *world) runJobController(ctx context.Context, agent, namespace string) error {
	config := w.config(agent)
	config.QPS = -1
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactoryWithOptions(c, 12*time.Hour, informers.WithNamespace(namespace))
	groups := shared.Scheduling().V1beta1()
	jobs, err := jobcontroller.NewController(ctx, c, shared.Core().V1().Pods(), shared.Batch().V1().Jobs(), groups.Workloads(), groups.PodGroups())
	if err != nil {
		return err
	}
	const workers = 5
	shared.Start(ctx.Done())
	go jobs.Run(ctx, workers)
	return nil
}

// trainers are Trainer as shipped and tuned.
func trainers(ctx context.Context, bin string) ([]contender, error) {
	const folder = "bench/peers/trainer"
	dir, err := moduleDir(ctx, folder, "github.com/kubeflow/trainer/v2")
	if err != nil {
		return nil, err
	}
	jobset, err := moduleDir(ctx, folder, "sigs.k8s.io/jobset")
	if err != nil {
		return nil, err
	}
	shipped := process{
		label: "Trainer as shipped", userAgent: "trainer", binary: filepath.Join(bin, "trainer"), jobs: trainJobs, slow: true, fails: true,
		definitions: []string{
			filepath.Join(dir, "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"),
			filepath.Join(dir, "manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml"),
			filepath.Join(dir, "manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml"),
			filepath.Join(jobset, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
		},
	}
	tuned := shipped
	tuned.label, tuned.slow = "Trainer tuned", false
	tuned.args = []string{"--trainer-qps=1000", "--trainer-threads=10", "--jobset-qps=1000", "--jobset-threads=10"}
	return []contender{trainer{tuned}, trainer{shipped}}, nil
}
