package recorder

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/kinds/pytorch"
	"github.com/trainyard/trainyard/internal/record"
)

var day = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

// site is a machine with kubelet's log directory and a store. The clock is the test's.
type site struct {
	*testing.T
	dir   string
	store *record.Store
	r     *Recorder
	now   time.Time
	uses  map[types.NamespacedName]Use
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, dir: t.TempDir(), now: day}
	s.store = record.Open(filepath.Join(s.dir, "record"))
	s.restart()
	return s
}

// restart begins with a new process: all that the old one had in memory is lost.
func (s *site) restart() {
	s.Helper()
	r, err := New(record.Open(s.store.Dir()), Sources{
		LogDir: func(string) string { return filepath.Join(s.dir, "logs") }, Usage: func() map[types.NamespacedName]Use { return s.uses },
	})
	if err != nil {
		s.Fatal(err)
	}
	s.r = r
}

func (s *site) step(d time.Duration) {
	s.Helper()
	s.now = s.now.Add(d)
	s.r.step(s.now)
	if s.r.problem != "" {
		s.Fatal(s.r.problem)
	}
}

// sees lets the recorder see the job and its pod.
func (s *site) sees(pod *corev1.Pod) {
	s.r.jobChanged(pytorch.Kind, demo(func(*kubeflowv1.PyTorchJob) {}), false)
	s.r.podChanged(pod, false)
}

func demo(change func(*kubeflowv1.PyTorchJob)) *kubeflowv1.PyTorchJob {
	j := &kubeflowv1.PyTorchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo", UID: "j1", ResourceVersion: "1", CreationTimestamp: metav1.NewTime(day)}}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "pytorch", Env: []corev1.EnvVar{{Name: "HF_TOKEN", Value: "abc"}}}}}}
	j.Spec.PyTorchReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Worker": {Template: template}}
	change(j)
	return j
}

// workerPod is the pod of a worker in a phase.
func workerPod(version string, phase corev1.PodPhase) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "demo-worker-0", UID: "p1", ResourceVersion: version, CreationTimestamp: metav1.NewTime(day),
			Labels:          map[string]string{naming.LabelReplicaType: "worker", naming.LabelReplicaIndex: "0", naming.LabelAttempt: "0"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "PyTorchJob", Name: "demo", UID: "j1", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: "trainyard", Containers: []corev1.Container{{Name: "pytorch"}}},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "pytorch", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
}

// container is a container that writes lines into its log.
type container struct {
	path             string
	written, rotated int
}

func (s *site) container() *container {
	c := &container{path: filepath.Join(s.dir, "logs", "default_demo-worker-0_p1", "pytorch", "0.log")}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		s.Fatal(err)
	}
	s.writes(c, 0)
	return c
}

func (s *site) writes(c *container, lines int) {
	s.Helper()
	file, err := os.OpenFile(c.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	for range lines {
		fmt.Fprintf(file, "%s stdout F line %d\n", day.Add(time.Duration(c.written)*time.Millisecond).Format(time.RFC3339Nano), c.written)
		c.written++
	}
	if err := file.Close(); err != nil {
		s.Fatal(err)
	}
}

// rotate moves the log away as kubelet does, and removes the oldest if there are too many.
func (s *site) rotate(c *container, keep int) {
	c.rotated++
	if err := os.Rename(c.path, fmt.Sprintf("%s.%010d", c.path, c.rotated)); err != nil {
		s.Fatal(err)
	}
	s.writes(c, 0)
	old, _ := filepath.Glob(c.path + ".*")
	for _, name := range old[:max(0, len(old)-keep)] {
		_ = os.Remove(name)
	}
}

// hasAllLines checks that the store has each line that a container wrote, once.
func (s *site) hasAllLines(c *container) {
	s.Helper()
	var want []string
	for i := range c.written {
		want = append(want, fmt.Sprint("line ", i))
	}
	if diff := cmp.Diff(want, s.recorded()); diff != "" {
		s.Errorf("other lines (-want +got):\n%s", diff)
	}
}

// recorded is what the store has of the log.
func (s *site) recorded() (lines []string) {
	s.Helper()
	logs, err := s.store.Logs("default", "j1")
	if err != nil {
		s.Fatal(err)
	}
	for _, l := range logs {
		err := s.store.ReadLog("default", "j1", l, record.Query{}, func(e record.Entry) error {
			lines = append(lines, string(e.Text))
			return nil
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	return lines
}

// TestEveryLineIsRecordedOnce lets the recorder be killed at any moment, while the log is rotated and deleted.
func TestEveryLineIsRecordedOnce(t *testing.T) {
	for seed := range int64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			s := newSite(t)
			c := s.container()
			s.sees(workerPod("1", corev1.PodRunning))
			for range 60 {
				switch random.Intn(6) {
				case 0:
					s.rotate(c, 100)
				case 1:
					s.restart()
					s.sees(workerPod("1", corev1.PodRunning))
				case 2, 3:
					s.writes(c, random.Intn(50))
				default:
					s.step(readInterval)
				}
			}
			s.step(scanInterval) // the recorder runs when the pod ends
			if random.Intn(2) == 0 {
				if err := os.RemoveAll(filepath.Join(s.dir, "logs")); err != nil {
					t.Fatal(err)
				}
			}
			s.r.podChanged(workerPod("2", corev1.PodSucceeded), true)
			for range 5 {
				s.step(scanInterval)
			}
			s.hasAllLines(c)
		})
	}
}

func TestWhatIsLostIsAGap(t *testing.T) {
	t.Run("log files were removed while no recorder ran", func(t *testing.T) {
		s := newSite(t)
		c := s.container()
		s.sees(workerPod("1", corev1.PodRunning))
		s.writes(c, 2)
		s.step(saveInterval)
		s.writes(c, 2)
		s.rotate(c, 0)
		s.writes(c, 1)
		s.restart()
		s.sees(workerPod("1", corev1.PodRunning))
		s.step(saveInterval)
		want := []string{"line 0", "line 1", "the recorder did not run, and the log files of this time were removed meanwhile", "line 4"}
		if diff := cmp.Diff(want, s.recorded()); diff != "" {
			t.Errorf("other lines (-want +got):\n%s", diff)
		}
	})
	t.Run("the pod was deleted before its log was seen", func(t *testing.T) {
		s := newSite(t)
		s.sees(workerPod("1", corev1.PodRunning))
		s.r.podChanged(workerPod("2", corev1.PodRunning), true)
		for range 5 {
			s.step(scanInterval)
		}
		if diff := cmp.Diff([]string{"the log was gone before it could be recorded"}, s.recorded()); diff != "" {
			t.Errorf("other lines (-want +got):\n%s", diff)
		}
	})
	t.Run("the pod was deleted while no recorder ran", func(t *testing.T) {
		s := newSite(t)
		c := s.container()
		s.sees(workerPod("1", corev1.PodRunning))
		s.writes(c, 2)
		s.step(saveInterval)
		if err := os.RemoveAll(filepath.Join(s.dir, "logs")); err != nil {
			t.Fatal(err)
		}
		s.restart()
		s.r.jobChanged(pytorch.Kind, demo(func(*kubeflowv1.PyTorchJob) {}), false)
		s.r.markUnseen(s.now)
		s.step(saveInterval)
		want := []string{"line 0", "line 1", "the pod was deleted while the recorder did not run"}
		if diff := cmp.Diff(want, s.recorded()); diff != "" {
			t.Errorf("other lines (-want +got):\n%s", diff)
		}
	})
}

func TestTheRecordOutlivesTheJob(t *testing.T) {
	s := newSite(t)
	attempt := func(n int32) kubeflowv1.Attempt {
		return kubeflowv1.Attempt{Number: n, Reason: fmt.Sprint("Failure", n)}
	}
	s.sees(workerPod("1", corev1.PodRunning))
	s.r.eventHappened(&corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: "e1", Namespace: "default"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", UID: "p2"}, Message: "early"})
	other := workerPod("1", corev1.PodRunning)
	other.UID = "p2"
	s.r.podChanged(other, false)
	s.r.eventHappened(&corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: "e2", Namespace: "default"}, InvolvedObject: corev1.ObjectReference{Kind: "PyTorchJob", UID: "j1"}, Message: "restarts"})
	s.r.eventHappened(&corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: "e3", Namespace: "default"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", UID: "stranger"}, Message: "of another"})
	for n := range int32(15) { // the status keeps ten
		j := demo(func(j *kubeflowv1.PyTorchJob) {
			j.ResourceVersion = fmt.Sprint(n + 2)
			j.Status.Attempt = n
			j.Status.Attempts = []kubeflowv1.Attempt{attempt(n)}
		})
		s.r.jobChanged(pytorch.Kind, j, false)
		if n == 7 {
			s.step(saveInterval)
			s.restart()
		}
	}
	s.r.jobChanged(pytorch.Kind, demo(func(j *kubeflowv1.PyTorchJob) { j.ResourceVersion = "99" }), true)
	for _, pod := range []*corev1.Pod{workerPod("2", corev1.PodRunning), other} {
		s.r.podChanged(pod, true)
	}
	for range 5 {
		s.step(scanInterval)
	}
	r, err := s.store.Load("default", "j1")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Attempts) != 15 || r.Attempts[3].Reason != "Failure3" || len(r.Pods) != 2 || len(r.Events) != 2 {
		t.Errorf("it has %d attempts, %d pods and %d events", len(r.Attempts), len(r.Pods), len(r.Events))
	}
	if strings.Contains(string(r.Object), "abc") {
		t.Errorf("the record has a secret:\n%s", r.Object)
	}
	all, err := s.store.Summaries()
	if err != nil || len(all) != 1 || all[0].Deleted.IsZero() || !all[0].Complete || all[0].Unseen {
		t.Errorf("the list is %+v, %v", all, err)
	}
	if len(s.r.jobs)+len(s.r.owners)+len(s.r.present)+s.r.logs.watched() > 0 {
		t.Errorf("it still has %d jobs, %d owners, %d pods and %d logs in memory", len(s.r.jobs), len(s.r.owners), len(s.r.present), s.r.logs.watched())
	}
}

// TestAJobThatFailsForEver has a record of bounded size.
func TestAJobThatFailsForEver(t *testing.T) {
	s := newSite(t)
	const attempts = 130
	for n := range int32(attempts) {
		pod := workerPod("1", corev1.PodFailed)
		pod.UID, pod.Labels[naming.LabelAttempt] = types.UID(fmt.Sprint("p", n)), fmt.Sprint(n)
		s.r.jobChanged(pytorch.Kind, demo(func(j *kubeflowv1.PyTorchJob) {
			j.ResourceVersion, j.Status.Attempt = fmt.Sprint(n+2), n
			j.Status.Attempts = []kubeflowv1.Attempt{{Number: n, Reason: fmt.Sprint("Failure", n)}}
		}), false)
		s.r.podChanged(pod, false)
		s.r.eventHappened(&corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint("e", n)), Namespace: "default"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", UID: pod.UID}})
		gone := pod.DeepCopy()
		gone.ResourceVersion = "2"
		s.r.podChanged(gone, true)
		for range 4 {
			s.step(scanInterval)
		}
		if n == 115 {
			s.restart()
		}
	}
	r, err := s.store.Load("default", "j1")
	if err != nil {
		t.Fatal(err)
	}
	if r.Summary.Attempts != attempts {
		t.Errorf("it has %d attempts", r.Summary.Attempts)
	}
	logs, err := s.store.Logs("default", "j1")
	if err != nil {
		t.Fatal(err)
	}
	for what, n := range map[string]int{"attempts": len(r.Attempts) - 1, "pods": len(r.Pods), "events": len(r.Events), "logs": len(logs)} {
		if n != keptFirst+keptLast {
			t.Errorf("it keeps %d %s", n, what)
		}
	}
	gap := r.Attempts[keptFirst]
	if want := "the 30 attempts from 11 to 40 are not kept, because the job has more than 100"; gap.Reason != notKept || gap.Message != want || r.Attempts[keptFirst+1].Number != 40 {
		t.Errorf("in their place is %+v, followed by %d", gap, r.Attempts[keptFirst+1].Number)
	}
}

func TestAJobThatWasDeletedWhileNothingRecordedIsMarked(t *testing.T) {
	for sentence, change := range map[string]func(*kubeflowv1.PyTorchJob){
		"it still ran": func(*kubeflowv1.PyTorchJob) {},
		"it had ended": func(j *kubeflowv1.PyTorchJob) {
			ended := metav1.NewTime(time.Now())
			j.Status.CompletionTime = &ended
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newSite(t)
			s.r.jobChanged(pytorch.Kind, demo(change), false)
			s.step(saveInterval)
			s.restart()
			s.r.jobChanged(pytorch.Kind, demo(func(j *kubeflowv1.PyTorchJob) { change(j); j.UID, j.Name = types.UID("j2"), "other" }), false)
			s.r.markUnseen(s.now)
			s.step(saveInterval)
			all, err := s.store.Summaries()
			if err != nil {
				t.Fatal(err)
			}
			for _, summary := range all {
				if summary.Unseen != (summary.UID == "j1") {
					t.Errorf("%s was deleted unseen: %t", summary.Name, summary.Unseen)
				}
			}
		})
	}
}

// The machine stopped before its disk had the record. The next recorder begins a new one, and the old file and the logs stay.
func TestARecordThatCannotBeReadBeginsAgain(t *testing.T) {
	s := newSite(t)
	c := s.container()
	s.sees(workerPod("1", corev1.PodRunning))
	s.writes(c, 5)
	s.step(saveInterval)
	file := filepath.Join(s.store.Dir(), "v1", "jobs", "default", "j1", "record.json")
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	s.restart()
	s.sees(workerPod("1", corev1.PodRunning))
	s.writes(c, 5)
	s.step(saveInterval)
	s.hasAllLines(c)
	if r, err := s.store.Load("default", "j1"); err != nil || r.Summary.Name != "demo" || len(r.Pods) != 1 {
		t.Errorf("the new record is %v: %v", r, err)
	}
	if was, err := os.ReadFile(file + ".damaged"); err != nil || len(was) != 100 {
		t.Errorf("the old record is %q: %v", was, err)
	}
}

// A job that is over needs no memory but a line, until something happens to it again.
func TestAJobThatIsOverLeavesTheMemory(t *testing.T) {
	s := newSite(t)
	change := func(version string, gone bool) {
		s.r.jobChanged(pytorch.Kind, demo(func(j *kubeflowv1.PyTorchJob) {
			ended := metav1.NewTime(time.Now())
			j.ResourceVersion, j.Status.CompletionTime = version, &ended
		}), gone)
	}
	event := func(uid types.UID) {
		s.r.eventHappened(&corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: uid, Namespace: "default"}, InvolvedObject: corev1.ObjectReference{Kind: "PyTorchJob", UID: "j1"}})
	}
	event("early") // before the job
	s.sees(workerPod("1", corev1.PodRunning))
	change("2", false)
	s.r.podChanged(workerPod("2", corev1.PodSucceeded), false)
	settled := func() {
		t.Helper()
		for range 5 {
			s.step(scanInterval)
		}
		if len(s.r.jobs)+len(s.r.owners)+s.r.logs.watched() > 0 {
			t.Errorf("it still has %d jobs, %d owners and %d logs in memory", len(s.r.jobs), len(s.r.owners), s.r.logs.watched())
		}
	}
	settled()
	change("2", false)
	event("late")
	settled()
	s.r.podChanged(workerPod("3", corev1.PodSucceeded), true)
	settled()
	change("3", true)
	settled()
	r, err := s.store.Load("default", "j1")
	if err != nil || len(r.Events) != 2 || len(r.Pods) != 1 || r.Pods[0].Gone.IsZero() || r.Summary.Deleted.IsZero() || r.Summary.Unseen {
		t.Errorf("the record is %+v: %v", r, err)
	}
}

// Owner references and events are free text. Whoever may write them in one namespace must not reach the jobs of another, nor the disk.
func TestPodsAndEventsBelongToJobsOfTheirNamespace(t *testing.T) {
	s := newSite(t)
	forged := func(pod types.UID, owner types.UID) *corev1.Pod {
		p := workerPod("1", corev1.PodRunning)
		p.Namespace, p.UID, p.OwnerReferences[0].UID = "other", pod, owner
		return p
	}
	s.r.podChanged(forged("f0", "j1"), false) // before the job is seen
	s.sees(workerPod("1", corev1.PodRunning))
	for i, uid := range []types.UID{"j1", "../default/j1", "../../../../escaped", "..", ".", `a\b`, "a/b"} {
		s.r.podChanged(forged(types.UID(fmt.Sprint("f", i+1)), uid), true)
	}
	for uid, about := range map[types.UID]types.UID{"e1": "j1", "e2": "p1"} {
		for namespace, uid := range map[string]types.UID{"other": "forged-" + uid, "default": uid} {
			s.r.eventHappened(&corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: uid, Namespace: namespace}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", UID: about, Namespace: namespace}})
		}
	}
	for range 5 {
		s.step(scanInterval)
	}
	r, err := s.store.Load("default", "j1")
	if err != nil || len(r.Pods) != 1 || len(r.Events) != 2 {
		t.Errorf("the job has %d pods and %d events: %v", len(r.Pods), len(r.Events), err)
	}
	if logs, _ := s.store.Logs("default", "j1"); len(logs) != 0 {
		t.Errorf("the job has the logs %v", logs)
	}
	for dir, want := range map[string]string{s.dir: "record", filepath.Join(s.store.Dir(), "v1", "jobs"): "default other", filepath.Join(s.store.Dir(), "v1", "jobs", "other"): "j1"} {
		if entries, _ := filepath.Glob(filepath.Join(dir, "*")); strings.Join(entries, " ") != dir+"/"+strings.ReplaceAll(want, " ", " "+dir+"/") {
			t.Errorf("%s has %v", dir, entries)
		}
	}
}

// A record that cannot be read for a while is continued later, and not replaced.
func TestARecordThatCannotBeReadNowIsNotReplaced(t *testing.T) {
	s := newSite(t)
	file := filepath.Join(s.store.Dir(), "v1", "jobs", "default", "j1", "record.json")
	change := func(n int32) {
		s.r.jobChanged(pytorch.Kind, demo(func(j *kubeflowv1.PyTorchJob) {
			j.ResourceVersion, j.Status.Attempt, j.Status.Attempts = fmt.Sprint(n), n, []kubeflowv1.Attempt{{Number: n}}
		}), false)
	}
	change(0)
	s.r.podChanged(workerPod("1", corev1.PodRunning), false)
	s.step(saveInterval)
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil { // reading it fails, but not because it does not exist
		t.Fatal(err)
	}
	s.restart()
	change(1)
	s.now = s.now.Add(saveInterval)
	if s.r.step(s.now); !strings.Contains(s.r.problem, "is a directory") {
		t.Errorf("the problem is %q", s.r.problem)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, was, 0o600); err != nil {
		t.Fatal(err)
	}
	s.step(saveInterval)
	r, err := s.store.Load("default", "j1")
	if err != nil || len(r.Attempts) != 2 || len(r.Pods) != 1 || r.Summary.Version != "1" {
		t.Errorf("the record is %+v: %v", r, err)
	}
}

func TestUsageIsRecordedAsMeans(t *testing.T) {
	s := newSite(t)
	worker := types.NamespacedName{Namespace: "default", Name: "demo-worker-0"}
	s.sees(workerPod("1", corev1.PodRunning))
	s.step(time.Second) // nothing is measured yet
	for _, use := range []Use{{1, 100, 0, 0}, {2, 300, 0.5, 10}, {4, 200, 1, 30}} {
		s.uses = map[types.NamespacedName]Use{worker: use, {Namespace: "default", Name: "other"}: {9, 9, 9, 9}}
		s.step(meterInterval)
	}
	got, err := s.store.Usage("default", "j1")
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) time.Time { return day.Add(d) }
	want := []record.Use{{Time: at(6 * time.Second), Pod: "p1", Cores: 1, Memory: 100}, {Time: at(16 * time.Second), Pod: "p1", Cores: 3, Memory: 300, GPU: 0.75, GPUMemory: 30}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	// Later values are fewer, so that a long training does not fill the disk.
	for range 24 * 60 * 12 {
		s.step(meterInterval)
	}
	if got, _ = s.store.Usage("default", "j1"); len(got) < 500 || len(got) > 1500 {
		t.Errorf("a day has %d values", len(got))
	}
	s.uses = nil
	s.step(meterInterval)
	if len(s.r.usage.pods) != 0 {
		t.Error("a pod that ended is kept in memory")
	}
}
