//go:build prove

package cli_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// The real Kueue, built from its module, runs as its manifests come and with the configuration that they ship. Its queue has room for one job
// at a time. At the end its configuration gets what it has as comments: all kinds of kubeflow.org, and waitForPodsReady.
func TestKueue(t *testing.T) {
	q := queue{desk{local.On(t, local.Start(t, cluster.Options{}))}, t.TempDir()}
	q.installKueue()
	q.applyWhenServed(strings.ReplaceAll(queues, "NAMESPACE", q.Namespace))
	q.part(t, "a job waits for room, and gives its place away", queue.takesTurns)
	q.part(t, "a policy that Kueue's client drops still counts", queue.keepsPolicies)
	q.part(t, "an elastic job runs as many nodes as Kueue has counted", queue.countsElasticJobs)
	q.part(t, "an elastic job that is scaled is counted again", queue.scales)
	q.part(t, "a job of higher priority takes the place of another, which is not charged", queue.preempts)
	q.part(t, "an MPIJob is counted as it runs", queue.takesMPIJobs)
	q.part(t, "the manager keeps running beside TrainJobs", queue.managerKeepsRunning)
	q.configureKueue("#waitForPodsReady:\n#  timeout: 5m\n#  recoveryTimeout: 3m\n", "waitForPodsReady:\n  timeout: 5m\n  recoveryTimeout: 3m\n", `  # - "kubeflow.org/`, `  - "kubeflow.org/`)
	q.part(t, "a job that restarts is not ready, and keeps its place", queue.recovers)
	q.part(t, "a PyTorchJob is counted as it runs, and keeps its policies", queue.takesPyTorchJobs)
}

// queue is a desk at a cluster with Kueue. Its jobs run until a file of their name is in the folder gate.
type queue struct {
	desk
	gate string
}

// part is one part of the test. It leaves the queue empty.
func (q queue) part(t *testing.T, name string, f func(queue)) {
	q.Run(t, name, func(_ *testing.T, w *local.World) {
		inner := queue{desk{w}, q.gate}
		defer inner.Kubectl("delete", "trainjobs,pytorchjobs,mpijobs.v2beta1.kubeflow.org", "--all")
		f(inner)
	})
}

// queues are one queue, with room for two nodes of 250m.
const queues = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - {coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 500m}]}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: NAMESPACE}
spec: {clusterQueue: all}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
`

// queued is a TrainJob of two nodes in the queue. Its pods take two seconds to stop.
const queued = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: NAME, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    command: [sh, -c, "trap 'sleep 2; exit' TERM; until test -f GATE/NAME; do sleep 0.1; done"]
    resourcesPerNode: {requests: {cpu: 250m}}
`

// train submits a job with changes: pairs of an old text and a new one.
func (q queue) train(name, manifest string, changes ...string) {
	q.Helper()
	changed := strings.NewReplacer(changes...).Replace(manifest)
	q.applyWhenServed(strings.NewReplacer("NAME", name, "GATE", q.gate).Replace(changed))
}

// finish lets a job succeed.
func (q queue) finish(name string) {
	q.Helper()
	q.open(name)
	q.expect(q.types("wait", name, "--timeout="+local.Timeout.String()), 0)
}

func (q queue) open(file string) {
	q.Helper()
	write(q.TB, filepath.Join(q.gate, file), "")
}

func (q queue) runs(name string) {
	q.Helper()
	if o := q.types("wait", name, "--for=running", "--timeout="+local.Timeout.String()); o.Code != 0 {
		q.Fatalf("%s does not run: %s%s\n%s", name, o.Stdout, o.Stderr, q.types("why", name).Stdout)
	}
}

// The second job waits, and says why in Kueue's words. Nobody but Kueue can start it. A suspended job gives its place away, and comes back when
// it is resumed and there is room.
func (q queue) takesTurns() {
	q.train("first", queued)
	q.runs("first")
	q.train("second", queued)
	const waits = `waits for Kueue: it is number 1 in the queue team; couldn't assign flavors to pod set node: insufficient unused quota for cpu in flavor default, 500m more needed`
	q.Eventually("second waits for Kueue", func() error { return found(q.types("why", "second").Stdout, waits+". Kueue starts it.") })
	q.expect(q.types("get", "-o", "wide"), 0, waits)
	q.refuses(q.types("resume", "second"), 1, waits)

	q.expect(q.types("suspend", "first"), 0, "first is suspended, and Kueue does not admit it")
	q.runs("second")
	q.expect(q.types("why", "first"), 0, "`trainyard resume first .*` starts it again")
	q.expect(q.types("resume", "first"), 0, "Kueue starts it when the queue team has room")
	q.Eventually("first waits for Kueue", func() error { return found(q.types("why", "first").Stdout, "waits for Kueue: ") })
	q.finish("second")
	q.runs("first")
	q.finish("first")
}

// Kueue's client does not know a TrainJob's TTL, and drops it from the spec.
func (q queue) keepsPolicies() {
	q.train("brief", queued, "spec:\n", "spec:\n  ttlSecondsAfterFinished: 1\n")
	q.runs("brief")
	if ttl := q.Kubectl("get", "trainjob", "brief", "-o", "jsonpath={.spec.ttlSecondsAfterFinished}"); ttl != "" {
		q.Errorf("Kueue's client keeps the TTL %s, so this proves nothing", ttl)
	}
	q.open("brief")
	q.isDeleted("trainjob", "brief")
}

func (q queue) isDeleted(kind, name string) {
	q.Helper()
	q.Eventually(name+" is deleted after its TTL", func() error {
		if o := q.Try("", "get", kind, name); !strings.Contains(o.Stderr, "not found") {
			return fmt.Errorf("%s%s", o.Stdout, o.Stderr)
		}
		return nil
	})
}

// Kueue does not know elastic bounds, and would count one node.
func (q queue) countsElasticJobs() {
	q.applyWhenServed(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: elastic, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {torch: {elasticPolicy: {minNodes: 2, maxNodes: 4}}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: none}]}}}
`)
	q.train("elastic", queued, "{name: torch-distributed}", "{kind: TrainingRuntime, name: elastic}", "numNodes: 2", "image: none")
	q.runs("elastic")
	q.runsAsCounted("trainjob", "elastic", 2)
	q.finish("elastic")
}

// Kueue stops the job, counts its nodes and admits it again.
func (q queue) scales() {
	q.train("scaled", queued, "torch-distributed", "torch-elastic", "numNodes: 2", "image: none")
	q.runs("scaled")
	q.runsAsCounted("trainjob", "scaled", 1)
	q.expect(q.types("scale", "scaled", "2"), 0)
	q.Eventually("it has two nodes", func() error { return found(q.types("get", "scaled").Stdout, "Running", "2/2") })
	q.runsAsCounted("trainjob", "scaled", 2)
	q.isNotCharged("scaled")
	q.finish("scaled")
}

func (q queue) isNotCharged(name string) {
	q.Helper()
	if charged := q.Kubectl("get", "trainjob", name, "-o", "jsonpath={.status.retries}{.status.disruptions}"); strings.Trim(charged, "0") != "" {
		q.Errorf("%s has retries and disruptions %s", name, charged)
	}
}

// runsAsCounted checks how many pods of a job run, and that Kueue has counted as many.
func (q queue) runsAsCounted(kind, name string, want int) {
	q.Helper()
	uid := q.Kubectl("get", kind, name, "-o", "jsonpath={.metadata.uid}")
	counted := 0
	for _, count := range strings.Fields(q.Kubectl("get", "workloads.kueue.x-k8s.io", "-l", "kueue.x-k8s.io/job-uid="+uid, "-o", "jsonpath={.items[*].spec.podSets[*].count}")) {
		n, err := strconv.Atoi(count)
		if err != nil {
			q.Fatal(err)
		}
		counted += n
	}
	pods := strings.Fields(q.Kubectl("get", "pods", "-l", "training.kubeflow.org/job-name="+name, "--field-selector=status.phase=Running", "-o", "name"))
	if counted != want || len(pods) != want {
		q.Errorf("Kueue has counted %d, and these run: %q", counted, pods)
	}
}

// Kueue waits until the pods of the job that gives way are gone.
func (q queue) preempts() {
	q.Eventually("the pods of the jobs before have ended", func() error {
		if running := q.Kubectl("get", "pods", "--field-selector=status.phase=Running", "-o", "name"); running != "" {
			return errors.New(running)
		}
		return nil
	})
	defer q.OneJobAtATime()()
	q.Kubectl("patch", "clusterqueue", "all", "--type=merge", "-p", `{"spec":{"preemption":{"withinClusterQueue":"LowerPriority"}}}`)
	q.train("patient", queued)
	q.runs("patient")
	q.train("urgent", queued, "team}", "team, kueue.x-k8s.io/priority-class: urgent}")
	q.runs("urgent")
	q.Eventually("patient waits for Kueue", func() error {
		return found(q.types("why", "patient").Stdout, "waits for Kueue: ", "insufficient unused quota")
	})
	q.finish("urgent")
	q.runs("patient")
	q.finish("patient")
	q.isNotCharged("patient")
}

// The first restart is at once, the second ten seconds later. Kueue hears that the job is not ready meanwhile, and evicts nobody who recovers
// in time.
func (q queue) recovers() {
	q.train("heals", queued, "do sleep", "do test -f GATE/NAME-$TRAINYARD_ATTEMPT && exit 1; sleep")
	for attempt := range 2 {
		q.isReady("heals")
		q.open(fmt.Sprintf("heals-%d", attempt))
		q.Eventually("it restarts", func() error {
			return found(q.Kubectl("get", "trainjob", "heals", "-o", "jsonpath=attempt {.status.attempt}"), fmt.Sprintf("attempt %d", attempt+1))
		})
	}
	q.isReady("heals", "Recovered")
	if evicted := q.workload("heals", `{.status.conditions[?(@.type=="Evicted")].reason}`); evicted != "" {
		q.Errorf("Kueue has evicted the job: %s", evicted)
	}
	q.finish("heals")
}

// isReady waits until Kueue takes the pods of a job for ready, for this reason.
func (q queue) isReady(name string, reason ...string) {
	q.Helper()
	q.Eventually("Kueue takes "+name+" for ready", func() error {
		return found(q.workload(name, `{range .status.conditions[?(@.type=="PodsReady")]}{.status} {.reason}{end}`), append(reason, "True")...)
	})
}

// workload is something of Kueue's object for a TrainJob.
func (q queue) workload(name, path string) string {
	q.Helper()
	uid := q.Kubectl("get", "trainjob", name, "-o", "jsonpath={.metadata.uid}")
	return q.Kubectl("get", "workloads.kueue.x-k8s.io", "-l", "kueue.x-k8s.io/job-uid="+uid, "-o", "jsonpath={range .items[*]}"+path+"{end}")
}

// mpiJob is in the only version that Kueue knows. Its Worker waits for mpirun, which this Launcher does not start.
const mpiJob = `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: NAME, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - {name: mpi, image: none, command: [sh, -c, "until test -f GATE/NAME; do sleep 0.1; done"], resources: {requests: {cpu: 250m}}}
    Worker:
      replicas: 1
      template: {spec: {containers: [{name: mpi, image: none, resources: {requests: {cpu: 250m}}}]}}
`

func (q queue) takesMPIJobs() {
	q.train("mpi", mpiJob)
	q.runs("mpi")
	q.runsAsCounted("mpijob", "mpi", 2)
	q.finish("mpi")
}

// elasticPyTorchJob has bounds above its replicas, and a policy where Kueue's client does not know it.
const elasticPyTorchJob = `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: NAME, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  ttlSecondsAfterFinished: 1
  elasticPolicy: {minReplicas: 2, maxReplicas: 4}
  pytorchReplicaSpecs:
    Worker:
      replicas: 1
      template:
        spec:
          containers:
          - {name: pytorch, image: none, command: [sh, -c, "until test -f GATE/NAME; do sleep 0.1; done"], resources: {requests: {cpu: 250m}}}
`

func (q queue) takesPyTorchJobs() {
	q.train("torch", elasticPyTorchJob)
	q.runs("torch")
	q.runsAsCounted("pytorchjob", "torch", 2)
	q.open("torch")
	q.isDeleted("pytorchjob", "torch")
}
