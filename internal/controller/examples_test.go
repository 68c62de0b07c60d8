package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// example submits a job of the examples folder with its script, changed by pairs of old and new text.
func (w *world) example(name, file string, changes ...string) {
	w.Helper()
	folder, err := filepath.Abs(filepath.Join("..", "..", "examples", name))
	if err != nil {
		w.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		w.Fatal(err)
	}
	changes = append(changes, "examples/"+name+"/train.py]", filepath.Join(folder, "train.py]")) // the cluster's folder is not the repository's
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(string(manifest), changes[i]) {
			w.Fatalf("%s does not say %q", file, changes[i])
		}
	}
	w.Apply(strings.NewReplacer(changes...).Replace(string(manifest)))
}

// says checks that texts are among a pod's last words.
func (w *world) says(pod string, texts ...string) {
	w.Helper()
	log := w.Logs(pod)
	for _, text := range texts {
		if !strings.Contains(log, text) {
			w.Errorf("%s does not say %q:\n%s", pod, text, log)
		}
	}
}

// The worker is killed by SIGKILL in the third epoch of its first attempt, and the master loses its peer in the midst of a
// collective, within the same moment.
func TestATorchTrainingSurvivesTheDeathOfAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.example("pytorch-ddp", "pytorchjob.yaml", "/tmp/pytorch-ddp", t.TempDir(), "torchrun", "/usr/bin/python3", `SECONDS_PER_EPOCH, value: "1"`, `LOSE_WORKER_AT, value: "2"`)
	j := &training{world: w, name: "pytorch-ddp", empty: &kubeflowv1.PyTorchJob{}}
	s := j.becomes(kubeflowv1.JobSucceeded)
	if s.Retries != 1 || s.Disruptions != 0 || s.Attempt != 1 {
		t.Errorf("the status is\n%s", describe(s))
	}
	if f := s.LastFailure; f == nil || f.Pod != "pytorch-ddp-worker-0" || f.Signal == nil || *f.Signal != 9 {
		t.Errorf("the last failure is %+v", f)
	}
	w.says("pytorch-ddp-master-0", "rank 0 of 2, attempt 1", "epoch 9", "rank 0 is done")
	if log := w.Logs("pytorch-ddp-master-0"); strings.Contains(log, "epoch 0:") || strings.Contains(log, "from epoch 0") {
		t.Errorf("it has begun from the beginning:\n%s", log)
	}
}

// Each process says whom it has connected to, so that all three must have found each other.
func TestTheProcessesOfAJAXJobMeetAtTheCoordinator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.example("jaxjob", "jaxjob.yaml")
	j := &training{world: w, name: "jaxjob", empty: &kubeflowv1.JAXJob{}}
	if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries+s.Disruptions != 0 || s.ReplicaStatuses["Worker"].Succeeded != 3 {
		t.Errorf("the status is\n%s", describe(s))
	}
	for i, pod := range []string{"jaxjob-worker-0", "jaxjob-worker-1", "jaxjob-worker-2"} {
		w.says(pod, fmt.Sprintf("process %d of 3, coordinator jaxjob-worker-0:6666", i), "is done: y = 3.0")
	}
}

// The Workers find the Master, and the Master resolves the addresses of all Workers. The job ends with the Master.
func TestTheReplicasOfAnXGBoostJobMeetAtTheMaster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.example("xgboostjob", "xgboostjob.yaml", "backoffLimit: 2", "cleanPodPolicy: None")
	j := &training{world: w, name: "xgboostjob", empty: &kubeflowv1.XGBoostJob{}}
	if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries+s.Disruptions != 0 || s.ReplicaStatuses["Master"].Succeeded != 1 {
		t.Errorf("the status is\n%s", describe(s))
	}
	w.says("xgboostjob-master-0", "rank 0 of 3, master xgboostjob-master-0:9999", "workers: 2 found",
		"rank 1 has sent 1000 values", "rank 2 has sent 1000 values", "done: 3000 values in 10 bins")
	w.Await("rank 2: taken", "logs", "xgboostjob-worker-1")
}

// XGBoost itself trains over three pods: its tracker runs in the Master, and the replicas find it by the variables that XGBoost reads. All of
// them end with the same trees, although each has other data.
func TestXGBoostTrainsOverItsTracker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script, err := filepath.Abs(filepath.Join("testdata", "boost.py"))
	if err != nil {
		t.Fatal(err)
	}
	role := func(n int32) *kubeflowv1.ReplicaSpec {
		return running(n, "DMLC_WORKER_CONNECT_RETRY=100 exec /usr/bin/python3 "+script)
	}
	xj := &kubeflowv1.XGBoostJob{ObjectMeta: metav1.ObjectMeta{Name: "boost"}}
	xj.Spec.XGBReplicaSpecs = roles{"Master": role(1), "Worker": role(2)}
	xj.Spec.RunPolicy.CleanPodPolicy = new(kubeflowv1.CleanPodPolicyNone)
	w.submit(xj).becomes(kubeflowv1.JobSucceeded)
	trees := regexp.MustCompile(`rank (\d) of 3 is done, trees (\w+)`)
	found := trees.FindStringSubmatch(w.Logs("boost-master-0"))
	if found == nil || found[1] != "0" {
		t.Fatalf("the Master says %q", w.Logs("boost-master-0"))
	}
	w.Await("rank 1 of 3 is done, trees "+found[2], "logs", "boost-worker-0")
	w.Await("rank 2 of 3 is done, trees "+found[2], "logs", "boost-worker-1")
}

// The first Worker serves at its own address, which the kubelet gives it, and the others find it by name.
func TestTheWorkersOfAPaddleJobMeetAtTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.example("paddlejob", "paddlejob.yaml")
	j := &training{world: w, name: "paddlejob", empty: &kubeflowv1.PaddleJob{}}
	if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries+s.Disruptions != 0 || s.ReplicaStatuses["Worker"].Succeeded != 3 {
		t.Errorf("the status is\n%s", describe(s))
	}
	for i, pod := range []string{"paddlejob-worker-0", "paddlejob-worker-1", "paddlejob-worker-2"} {
		w.says(pod, fmt.Sprintf("job paddlejob: %s is rank %d of 3", pod, i))
	}
}

func TestTheReplicasOfATFJobTalkAsTFConfigSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.example("tfjob", "tfjob.yaml", "cleanPodPolicy: Running", "cleanPodPolicy: None")
	j := &training{world: w, name: "tfjob", empty: &kubeflowv1.TFJob{}}
	if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries+s.Disruptions != 0 {
		t.Errorf("the status is\n%s", describe(s))
	}
	all := `of {"chief": 1, "evaluator": 1, "ps": 1, "worker": 2}`
	w.says("tfjob-chief-0", "chief-0 "+all, "worker-0 is done", "worker-1 is done", "the training is over")
	w.says("tfjob-worker-1", "worker-1 "+all, "worker-1: done")
	w.says("tfjob-ps-0", "ps-0 "+all, "chief-0 has joined", "worker-0 has joined", "worker-1 has joined")
	w.Await("the slope is right", "logs", "tfjob-evaluator-0")
}

// A hostfile, as DeepSpeed and MPI read it, has the bare names of the pods. All of them resolve in each pod, in each to the same address.
func TestReplicasFindEachOtherByBareNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	resolve := `for host in $(printf 'demo-master-0 slots=1\ndemo-worker-0 slots=1\ndemo-worker-1 slots=1\n' | cut -d' ' -f1); do
		until getent ahostsv4 $host >/dev/null; do sleep 0.1; done
		echo $host $(getent ahostsv4 $host | head -1 | cut -d' ' -f1)
	done`
	gate := filepath.Join(t.TempDir(), "gate") // the name of a pod that has ended does not resolve
	j := w.submit(gang(2, resolve+fmt.Sprintf("; echo done; until test -f %s; do sleep 0.1; done", gate)))
	j.becomes(kubeflowv1.JobRunning)
	pods, want := j.pods(), ""
	for _, name := range []string{"master-0", "worker-0", "worker-1"} {
		want += "demo-" + name + " " + w.Get("demo-"+name).Status.PodIP + "\n"
	}
	for name := range pods {
		if got := w.Await("done", "logs", "demo-"+name); got != want+"done\n" {
			t.Errorf("%s finds\n%s, want\n%s", name, got, want)
		}
	}
	open(t, gate)
	j.becomes(kubeflowv1.JobSucceeded)
}
