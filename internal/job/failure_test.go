package job

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aPod is a pod of a gang whose training runs on node n1.
func aPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "demo-worker-0", UID: "u1"}}
	pod.Spec = corev1.PodSpec{NodeName: "n1", RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "sidecar"}, {Name: "pytorch"}}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "sidecar", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		{Name: "pytorch", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func ended(code int32, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		end := &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(epoch)}
		p.Status.ContainerStatuses[1].State = corev1.ContainerState{Terminated: end}
	}
}

func phase(phase corev1.PodPhase, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = phase, reason }
}

func deletedAt(asked time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: asked.Add(30 * time.Second)}, ptr(int64(30))
	}
}

func inPlace(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }

func targeted(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler"}}
}

func neverStarted(p *corev1.Pod) { p.Status.ContainerStatuses = nil }

func initFailed(p *corev1.Pod) {
	neverStarted(p)
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}}}
}

func TestFailures(t *testing.T) {
	do := func(changes ...func(*corev1.Pod)) []func(*corev1.Pod) { return changes }
	for _, row := range []struct {
		sentence string
		pod      []func(*corev1.Pod)
		want     string // class and reading, "" for no failure
	}{
		{"training that runs has not failed", nil, ""},
		{"an exit code of its own", do(ended(1, "Error"), phase(corev1.PodFailed, "")), "Application: Worker 0 (pod demo-worker-0 on node n1) exited with code 1"},
		{"a signal", do(ended(139, "Error"), phase(corev1.PodFailed, "")), "Application: Worker 0 (pod demo-worker-0 on node n1) exited with code 139 (SIGSEGV)"},
		{"out of memory is the application's", do(ended(137, "OOMKilled"), phase(corev1.PodFailed, "")), "Application: Worker 0 (pod demo-worker-0 on node n1) ran out of memory (OOMKilled, exit code 137)"},
		{"the training failed while a sidecar runs on", do(ended(1, "Error")), "Application: Worker 0 (pod demo-worker-0 on node n1) exited with code 1"},
		{"the kubelet will restart it in place: not for good", do(ended(1, "Error"), inPlace), ""},
		{"an init container failed", do(initFailed, phase(corev1.PodFailed, "")), "Application: Worker 0 (pod demo-worker-0 on node n1) exited with code 3"},
		{"evicted by a node under pressure, with the code of the kill", do(ended(137, "Error"), phase(corev1.PodFailed, "Evicted"), targeted), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (Evicted)"},
		{"evicted by a node under pressure, and exits with 0", do(ended(0, "Completed"), phase(corev1.PodFailed, "Evicted"), targeted), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (Evicted)"},
		{"evicted for its own limit", do(ended(137, "Error"), phase(corev1.PodFailed, "Evicted")), "Application: Worker 0 (pod demo-worker-0 on node n1) was evicted for exceeding its own limit"},
		{"evicted for its own limit, and exits with 0", do(ended(0, "Completed"), phase(corev1.PodFailed, "Evicted")), "Application: Worker 0 (pod demo-worker-0 on node n1) was evicted for exceeding its own limit"},
		{"shut down with its node, and exits with 0", do(ended(0, "Completed"), phase(corev1.PodFailed, "Terminated")), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (Terminated)"},
		{"preempted, and exits with 0 before it is deleted", do(ended(0, "Completed"), phase(corev1.PodSucceeded, ""), targeted), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (PreemptionByScheduler)"},
		{"succeeded, and then its node was lost", do(ended(0, "Completed"), phase(corev1.PodSucceeded, ""), targeted, func(p *corev1.Pod) {
			p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(epoch.Add(2 * time.Minute))
		}), ""},
		{"preempted", do(ended(143, "Error"), phase(corev1.PodFailed, ""), targeted), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (PreemptionByScheduler)"},
		{"marked as a target, but alive", do(targeted), ""},
		{"refused by its node, which lacks something", do(neverStarted, phase(corev1.PodFailed, "OutOfcpu")), "Refusal: Worker 0 (pod demo-worker-0 on node n1) was refused by its node (OutOfcpu)"},
		{"refused by its node, whose device is gone", do(neverStarted, phase(corev1.PodFailed, "UnexpectedAdmissionError")), "Refusal: Worker 0 (pod demo-worker-0 on node n1) was refused by its node (UnexpectedAdmissionError)"},
		{"failed before anything ran, and nobody says why", do(neverStarted, phase(corev1.PodFailed, "")), "Refusal: Worker 0 (pod demo-worker-0 on node n1) was refused by its node (Refused)"},
		{"failed, and no container did it", do(phase(corev1.PodFailed, "")), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (Disrupted)"},
		{"its node was rebooted, as containerd tells", do(ended(255, "Unknown"), phase(corev1.PodFailed, "")), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (Disrupted)"},
		{"the node came back and knows nothing", do(ended(137, "ContainerStatusUnknown"), phase(corev1.PodFailed, "")), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (Disrupted)"},
		{"being deleted while it runs", do(deletedAt(epoch)), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (Deleted)"},
		{"being deleted before its training began: nothing is lost", do(neverStarted, deletedAt(epoch)), ""},
		{"ended by its deletion", do(ended(143, "Error"), phase(corev1.PodFailed, ""), deletedAt(epoch.Add(-time.Second))), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (Deleted)"},
		{"failed before it was deleted", do(ended(1, "Error"), phase(corev1.PodFailed, ""), deletedAt(epoch.Add(time.Second))), "Application: Worker 0 (pod demo-worker-0 on node n1) exited with code 1"},
		{"succeeded, then deleted", do(ended(0, "Completed"), phase(corev1.PodSucceeded, ""), deletedAt(epoch.Add(2*time.Minute))), ""},
		{"evicted, with a clock that is ten seconds behind", do(ended(0, "Completed"), phase(corev1.PodSucceeded, ""), deletedAt(epoch.Add(10*time.Second))), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (Deleted)"},
		{"exits with 0 because it is deleted", do(ended(0, "Completed"), phase(corev1.PodSucceeded, ""), deletedAt(epoch.Add(-time.Second))), "Disruption: Worker 0 (pod demo-worker-0 on node n1) was disrupted (Deleted)"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := ""
			if f := readPod(aPod(row.pod...), Replica{"Worker", 0}, "pytorch").failure; f != nil {
				got = string(f.Class) + ": " + f.String()
			}
			if got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
}

func TestLastWordsAreCut(t *testing.T) {
	long := ""
	for range 500 {
		long += "äöü "
	}
	pod := aPod(ended(1, "Error"), phase(corev1.PodFailed, ""))
	pod.Status.ContainerStatuses[1].State.Terminated.Message = long + "1 of 9\r2 of 9\r\n\x1b[A\x1b[31mthe end\x1b[0m"
	f := readPod(pod, Replica{"Worker", 0}, "pytorch").failure
	if n := len(f.Message); n > 1030 || f.Message[n-14:] != "2 of 9\nthe end" {
		t.Errorf("%d bytes, ending in %q", n, f.Message[n-20:])
	}
}

// A sentence about a failure ends with one line of what was said, and says whose words they are.
func TestASentenceTellsOneLineOfTheLastWords(t *testing.T) {
	banner := "WARNING:torch.distributed.run:\n*****\nSetting OMP_NUM_THREADS"
	for _, row := range []struct {
		sentence string
		failure  *Failure
		want     string
	}{
		{"nobody failed", nil, ""},
		{"it said nothing", &Failure{}, ""},
		{"nor are empty lines words", &Failure{Message: " \n\n"}, ""},
		{"the last line of a traceback names the error", &Failure{Message: "Traceback:\n  File \"train.py\"\nValueError: no data\n\n"}, "; it last said: ValueError: no data"},
		{"no more than one", &Failure{Message: banner}, "; it last said: Setting OMP_NUM_THREADS"},
		{"a line without words is none", &Failure{Message: "unable to start one or more daemons.\n-----\n"}, "; it last said: unable to start one or more daemons."},
		{"a long line is cut", &Failure{Message: "é" + strings.Repeat("x", 200)}, "; it last said: é" + strings.Repeat("x", 118) + "…"},
		{"who disrupts a pod says why", &Failure{Class: Disruption, Message: "The node was low on memory"}, ": The node was low on memory"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := row.failure.lastLine(); got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
}

// The whole of the last words is kept in one place; the sentences have a line of them, the ledger of attempts none.
func TestLastWordsStandInOnePlace(t *testing.T) {
	said := "epoch 3\nloading\nValueError: no data"
	w := started(t, demo(0, func(j *Job) { j.Roles[0].RestartPolicy = RestartNever }))
	w.now = w.now.Add(time.Minute)
	w.exit(w.pods["demo-master-0"], 1, "Error", said)
	d := decide(w)
	sentence := "failed: Master 0 (pod demo-master-0 on node n1) exited with code 1; restartPolicy Never does not restart it"
	event := d.Events[0].Message
	for _, row := range []struct{ where, got, want string }{
		{"the last failure", d.Status.LastFailure.Message, said},
		{"the ledger", d.Status.Attempts[0].Message, sentence},
		{"the condition", d.Status.condition(Failed).Message, "PyTorchJob demo " + sentence + "; it last said: ValueError: no data."},
		{"the event", event, d.Status.condition(Failed).Message},
	} {
		if row.got != row.want {
			t.Errorf("%s says %q\nwant %q", row.where, row.got, row.want)
		}
	}
}
