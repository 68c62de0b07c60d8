package job

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node that refuses every pod, as one whose device plugin has lost a GPU does, costs few pods, and nobody else is restarted.
func TestARefusedPodIsReplacedEverMoreRarely(t *testing.T) {
	w := newWorld(demo(2, func(j *Job) { j.Policy.BackoffLimit = ptr(int32(0)) }))
	rest(t, w)
	w.start(w.pods["demo-master-0"], "n1")
	w.start(w.pods["demo-worker-0"], "n1")
	rest(t, w)
	master := w.pods["demo-master-0"].UID
	created, end := 1, w.now.Add(10*time.Minute)
	for refused := 0; refused < 20; refused++ {
		w.refusePod(w.pods["demo-worker-1"], "n2")
		rest(t, w)
		for w.pods["demo-worker-1"] == nil {
			d, _ := w.reconcile(chaos{})
			if d.RequeueAt.IsZero() {
				t.Fatalf("after %d refusals nobody will create the pod: %+v", refused+1, w.status)
			}
			w.now = d.RequeueAt
			rest(t, w)
		}
		if !w.now.After(end) {
			created++
		}
	}
	s := w.status
	if created > 8 || s.Attempt != 0 || s.Retries != 0 || s.Disruptions != 0 || s.Finished() || w.pods["demo-master-0"].UID != master {
		t.Errorf("%d pods in 10 minutes; attempt %d, %d retries, %d disruptions", created, s.Attempt, s.Retries, s.Disruptions)
	}
	if f := s.LastFailure; f.Class != Refusal || f.Node != "n2" || len(s.Avoided(w.job, w.now).Prefer) != 1 || s.AvoidNodes[0].Strikes != 20 {
		t.Errorf("the last failure is %+v, and %+v are avoided", f, s.AvoidNodes)
	}
}

// A kubelet that restarts may refuse a pod that trained: then its peers have lost it.
func TestAPodThatTrainedAndIsRefusedIsADisruption(t *testing.T) {
	w := started(t, demo(1))
	pod := w.pods["demo-worker-0"]
	pod.Status.ContainerStatuses = nil
	w.refusePod(pod, "n1")
	rest(t, w)
	if s := w.status; s.Attempt != 1 || s.Disruptions != 1 || s.LastFailure.Class != Disruption {
		t.Errorf("attempt %d, %d disruptions, last failure %+v", s.Attempt, s.Disruptions, s.LastFailure)
	}
}

// A job that was stored with a number nobody can have meant fails with a sentence, and costs no memory.
func TestAJobOfTooManyReplicas(t *testing.T) {
	for sentence, replicas := range map[string][]int32{
		"one role": {0, 2_000_000_000}, "all roles together": {5001, 5000}, "more than a number holds": {2_000_000_000, 2_000_000_000},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(demo(1, func(j *Job) { j.Roles[0].Replicas, j.Roles[1].Replicas = replicas[0], replicas[1] }))
			rest(t, w)
			if s := w.status; !s.Is(Failed) || len(w.pods) > 0 || s.endReason() != ReasonRefused {
				t.Errorf("%d pods, and the status is %+v", len(w.pods), s.Conditions)
			}
		})
	}
	w := newWorld(demo(MaxReplicas - 1))
	if d := Decide(w.observe(0)); len(d.CreatePods) != MaxReplicas {
		t.Errorf("%d pods of a job of as many replicas as may be", len(d.CreatePods))
	}
}

// A job that has trained for long is scaled up, and the new pod is refused each time: the others' time does not make it healthy.
func TestARefusedPodOfARunningJobIsReplacedEverMoreRarely(t *testing.T) {
	w := started(t, demo(1, func(j *Job) {
		if err := set(j, "elastic=1:4"); err != nil {
			t.Fatal(err)
		}
		j.Roles[0].Replicas = 0
	}))
	w.now = w.now.Add(time.Hour)
	w.edit(func(j *Job) { j.Roles[1].Replicas = 2 })
	rest(t, w)
	created, end := 1, w.now.Add(10*time.Minute)
	for range 20 {
		w.refusePod(w.pods["demo-worker-1"], "n2")
		rest(t, w)
		for w.pods["demo-worker-1"] == nil {
			d, _ := w.reconcile(chaos{})
			w.now = d.RequeueAt
			rest(t, w)
		}
		if !w.now.After(end) {
			created++
		}
	}
	if created > 8 || !w.status.Is(Running) {
		t.Errorf("%d pods in 10 minutes, and the conditions are %+v", created, w.status.Conditions)
	}
}

// A long training makes earlier restarts forgotten. But where the pod of a step after it is refused, the gang's time does not make that pod
// healthy.
func TestALongTrainingResetsTheDelay(t *testing.T) {
	w := started(t, demo(1))
	w.now = w.now.Add(time.Hour)
	p := newPass(w.observe(0))
	for class, want := range map[Class]int32{Refusal: 4, Disruption: 0, Application: 1} {
		failed := incident{replica: replica{Replica: Replica{"Worker", 0}}, Failure: &Failure{Class: class}}
		if n := p.inARow(3, &failed); n != want {
			t.Errorf("%s after an hour of training: %d restarts in a row, want %d", class, n, want)
		}
	}
}

// A container that never started has not trained, though the kubelet dates its start to 1970.
func TestAContainerThatNeverStartedHasNotTrained(t *testing.T) {
	status := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 128, Reason: "StartError", StartedAt: metav1.NewTime(time.Unix(0, 0)), FinishedAt: metav1.NewTime(epoch),
	}}}
	if from, to := lastRun(status); !from.IsZero() || !to.IsZero() {
		t.Errorf("it ran from %s to %s", from, to)
	}
}

// More nodes fail the job than it remembers. Each is new again when it fails the next time, and is not reported again.
func TestAvoidedNodesAreReportedOnce(t *testing.T) {
	w := started(t, demo(1))
	events := 0
	for n := range 50 {
		p := newPass(w.observe(0))
		p.avoid(&Failure{Replica: Replica{"Worker", 0}, Class: Refusal, Reason: "OutOfcpu", Node: fmt.Sprintf("n%d", n%25)})
		events += len(p.Events)
		w.status = p.next().clone()
	}
	if events != avoidedKept || len(w.status.AvoidNodes) != avoidedKept {
		t.Errorf("%d events of %d nodes", events, len(w.status.AvoidNodes))
	}
}

// The record of a replaced replica goes when it says nothing any more.
func TestRecordsThatSayNothingAreDropped(t *testing.T) {
	w := started(t, demo(2, func(j *Job) { j.ScopeOverride = ScopeReplica }))
	w.now = w.now.Add(time.Hour)
	for _, name := range []string{"demo-worker-0", "demo-worker-1"} {
		w.exit(w.pods[name], 1, "Error", "")
		w.reboot(w.pods[name])
		rest(t, w)
		w.start(w.pods[name], "n1")
		w.main(w.pods[name]).State.Running.StartedAt = metav1.NewTime(w.now)
		w.changed()
		rest(t, w)
	}
	if n := len(w.status.Records); n != 2 {
		t.Fatalf("%d records of two replicas that were just replaced: %+v", n, w.status.Records)
	}
	w.now = w.now.Add(healthyAfter)
	w.exit(w.pods["demo-master-0"], 0, "Completed", "")
	rest(t, w)
	if n := len(w.status.Records); n != 0 {
		t.Errorf("%d records of replicas that have trained for ten minutes: %+v", n, w.status.Records)
	}
}

func TestHowNodesAreAvoided(t *testing.T) {
	now := epoch
	node := func(name string, changes ...func(*AvoidedNode)) AvoidedNode {
		n := AvoidedNode{Node: name, Until: now.Add(time.Hour), Strikes: 1}
		for _, change := range changes {
			change(&n)
		}
		return n
	}
	over := func(n *AvoidedNode) { n.Until = now }
	accepted := func(n *AvoidedNode) { n.OnlyPreferred = true }
	for _, row := range []struct {
		sentence string
		mode     AvoidNodes
		workers  int32
		nodes    []AvoidedNode
		want     Avoidance
	}{
		{"others are preferred", AvoidPrefer, 3, []AvoidedNode{node("b"), node("a")}, Avoidance{Prefer: []string{"a", "b"}}},
		{"switched off, none, also of those noted before", AvoidOff, 3, []AvoidedNode{node("a")}, Avoidance{}},
		{"not for ever", AvoidRequire, 3, []AvoidedNode{node("a", over)}, Avoidance{}},
		{"one may always be forbidden", AvoidRequire, 0, []AvoidedNode{node("a")}, Avoidance{Require: []string{"a"}}},
		{"two are too many for four replicas", AvoidRequire, 3, []AvoidedNode{node("b"), node("a")}, Avoidance{Prefer: []string{"a", "b"}}},
		{"two may be forbidden to twenty replicas", AvoidRequire, 19, []AvoidedNode{node("b"), node("a")}, Avoidance{Require: []string{"a", "b"}}},
		{"not where the job could not be placed", AvoidRequire, 3, []AvoidedNode{node("b", accepted), node("a")}, Avoidance{Prefer: []string{"b"}, Require: []string{"a"}}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			j, s := demo(row.workers, func(j *Job) { j.AvoidNodes = row.mode }), Status{AvoidNodes: row.nodes}
			if got := s.Avoided(j, now); !reflect.DeepEqual(got, row.want) {
				t.Errorf("avoids %+v, want %+v", got, row.want)
			}
		})
	}
}

// A pod that requires other nodes finds none. After five minutes it is created again, and only prefers them. A pod that has found a node
// meanwhile, which the cache does not show yet, stays.
func TestAPodThatFindsNoOtherNodeAcceptsThoseAvoided(t *testing.T) {
	for _, placed := range []bool{false, true} {
		w := started(t, demo(1, func(j *Job) { j.AvoidNodes = AvoidRequire }))
		w.status.AvoidNodes = []AvoidedNode{{Node: "n2", Until: epoch.Add(time.Hour), Strikes: 1}}
		w.newVersion()
		waiting := w.newPod(Replica{"Worker", 0}, 0, "j1")
		waiting.Annotations = map[string]string{AnnotationRequiresOtherNodes: "true"}
		w.pods[waiting.Name] = waiting
		w.status.Roles[1].Started = nil
		w.changed()
		rest(t, w)
		if d := decide(w); len(d.DeletePods) > 0 || !d.RequeueAt.Equal(epoch.Add(otherNodesWait)) {
			t.Fatalf("deletes %v before five minutes have passed, looks again at %s", d.DeletePods, d.RequeueAt)
		}
		w.now = w.now.Add(otherNodesWait)
		lag := 0
		if placed {
			waiting.Spec.NodeName = "n3"
			w.changed()
			lag = 1
		}
		d, _ := w.reconcile(chaos{lag: lag})
		if deleted := len(d.DeletePods) == 1; deleted == placed || w.status.AvoidNodes[0].OnlyPreferred == placed {
			t.Errorf("placed %v: deletes %+v, avoids %+v", placed, d.DeletePods, w.status.AvoidNodes)
		}
	}
}
