package controller_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/controller"
)

var gangRounds = flag.Int("gangs", 2, "how often two gangs that fit one at a time are submitted together")

// Two jobs of four that fit only one at a time, submitted together: never do parts of both hold places, and both finish. Their
// replicas wait for each other, so a part of a gang would wait for ever.
func TestTwoGangsThatFitOneAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.twoGangs(w.places(4), *gangRounds)
}

// twoGangs submits two gangs of four at the same time, several times. There is one place for each replica of one of them.
func (w *world) twoGangs(place corev1.ResourceName, rounds int) {
	w.Helper()
	defer w.OneJobAtATime()()
	for round := range rounds {
		var both []*training
		for _, name := range []string{fmt.Sprintf("a-%d", round), fmt.Sprintf("b-%d", round)} {
			meets := fmt.Sprintf(`touch %[1]s/$RANK; until test $(ls %[1]s | wc -l) = 4; do sleep 0.05; done`, w.t.TempDir())
			both = append(both, w.submit(gang(3, meets, asGang(name, place, ""))))
		}
		for _, j := range both {
			if s := j.becomes(kubeflowv1.JobSucceeded); s.Attempt != 0 || s.Retries+s.Disruptions > 0 {
				w.Errorf("it was restarted:\n%s", describe(s))
			}
		}
	}
}

// A gang of higher priority takes the places of a whole gang, which is not charged for that and trains afterwards. Meanwhile its
// message quotes the scheduler.
func TestAGangIsPreemptedWholeAndUncharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	place := w.places(2)
	low, high := w.priority("low", 1000), w.priority("high", 2000)
	gate := t.TempDir()
	until := func(file string) string { return fmt.Sprintf("until test -f %s/%s; do sleep 0.1; done", gate, file) }
	first := w.submit(gang(1, until("low"), asGang("first", place, low)))
	first.becomes(kubeflowv1.JobRunning)
	second := w.submit(gang(1, until("high"), asGang("second", place, high)))
	second.becomes(kubeflowv1.JobRunning)
	s := first.until("waits for its places", func(s kubeflowv1.JobStatus) bool { return strings.Contains(s.Message, "places") })
	if !strings.HasPrefix(s.Message, "waits for 2 of 2 places: 0/") || !strings.Contains(s.Message, "Insufficient "+string(place)) {
		t.Errorf("the message is %q", s.Message)
	}
	if s.Attempt != 1 || s.Retries != 0 || s.Disruptions != 1 {
		t.Errorf("the job that gave way:\n%s", describe(s))
	}
	open(t, gate+"/high")
	open(t, gate+"/low")
	second.becomes(kubeflowv1.JobSucceeded)
	if s := first.becomes(kubeflowv1.JobSucceeded); s.Attempt != 1 || s.Retries != 0 || s.Disruptions != 1 {
		t.Errorf("the job that gave way:\n%s", describe(s))
	}
}

// Without a gang scheduler a replica gets a node though there is none for the other. It keeps the node for scheduleTimeoutSeconds, then the job
// releases it, is not charged, and tries again.
func TestAJobReleasesThePlacesOfAPart(t *testing.T) {
	t.Parallel()
	w := withoutOperator(t)
	w.operateWith(func(o *controller.Options) { o.GangScheduler = controller.None })
	place := w.places(1)
	j := w.submit(gang(1, "test $TRAINYARD_ATTEMPT != 0 || sleep 600", asGang("demo", place, ""), func(pj *kubeflowv1.PyTorchJob) {
		pj.Spec.RunPolicy.SchedulingPolicy.ScheduleTimeoutSeconds = new(int32(2))
	}))
	s := j.until("releases its place", func(s kubeflowv1.JobStatus) bool { return s.Attempt == 1 })
	if why := s.Attempts[0]; why.Reason != "Unplaced" || why.Why != "1 of 2 places were not found within scheduleTimeoutSeconds 2; not charged" {
		t.Errorf("the first attempt ended by %s: %s", why.Reason, why.Why)
	}
	w.places(2)
	if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries+s.Disruptions > 0 {
		t.Errorf("it was charged:\n%s", describe(s))
	}
}

// A member of a gang that comes back alone gets a place, though another member has finished and the scheduler no longer counts it.
func TestAMemberOfAGangReturnsAlone(t *testing.T) {
	t.Parallel()
	newWorld(t).oneReturns()
}

func (w *world) oneReturns() {
	w.Helper()
	gate := filepath.Join(w.TempDir(), "gate")
	script := fmt.Sprintf("case $(hostname) in *-2) exit;; esac; until test -f %s; do sleep 0.1; done", gate)
	j := w.submit(tensorflow(roles{"Worker": running(3, script)}, func(tf *kubeflowv1.TFJob) {
		tf.Name = "returns"
		tf.Spec.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{}
		tf.Spec.TFReplicaSpecs["Worker"].RestartPolicy = kubeflowv1.RestartPolicyOnFailure
	}))
	j.becomes(kubeflowv1.JobRunning)
	j.until("knows that the last worker has finished", func(s kubeflowv1.JobStatus) bool { return s.ReplicaStatuses["Worker"].CompletedIndexes == "2" })
	before := j.uids()["worker-1"]
	w.Kubectl("delete", "pod", "returns-worker-1")
	w.Eventually("the worker in the middle trains again", func() error {
		if pod := j.pods()["worker-1"]; pod == nil || pod.UID == before || pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("the pod is %+v", pod)
		}
		return nil
	})
	open(w.t, gate)
	j.becomes(kubeflowv1.JobSucceeded)
}

// A pod group belongs to one attempt, and is gone when the job is suspended or has ended. It costs one request more until the end.
func TestThePodGroupOfAnAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := t.TempDir() + "/gate"
	j := w.submit(gang(1, fmt.Sprintf("until test -f %s; do sleep 0.1; done", gate), asGang("demo", "", "")))
	j.becomes(kubeflowv1.JobRunning)
	j.hasGroups("demo-0 of 2")
	j.edit(suspended(true))
	j.becomes(kubeflowv1.JobSuspended)
	j.hasGroups()
	j.edit(suspended(false))
	j.becomes(kubeflowv1.JobRunning)
	j.hasGroups("demo-1 of 2")
	if err := w.client.Delete(context.Background(), &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "demo-1"}}); err != nil {
		t.Fatal(err)
	}
	open(t, gate)
	j.becomes(kubeflowv1.JobSucceeded)
	j.hasGroups()
	created := 0
	for _, r := range w.audited(operatorOf(w.Namespace)) {
		if r.String() == "create podgroups" {
			created++
		}
	}
	if created != 2 {
		t.Errorf("%d pod groups were created for two attempts", created)
	}
	w.checkRights()
}

// asGang names the job and asks for a gang. Each replica wants one place, where there is a resource of that name, at a priority.
func asGang(name string, place corev1.ResourceName, priority string) func(*kubeflowv1.PyTorchJob) {
	return func(pj *kubeflowv1.PyTorchJob) {
		pj.Name = name
		pj.Spec.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{PriorityClass: priority}
		for _, spec := range pj.Spec.PyTorchReplicaSpecs {
			spec.RestartPolicy = kubeflowv1.RestartPolicyOnFailure
			if place != "" {
				spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{place: resource.MustParse("1")}
			}
		}
	}
}

// places is a resource of which the node has so many, for the pods of this test alone.
func (w *world) places(n int) corev1.ResourceName {
	w.Helper()
	name := "trainyard.test/" + w.Namespace
	amount := map[string]any{"status": map[string]any{"capacity": map[string]any{name: fmt.Sprint(n)}, "allocatable": map[string]any{name: fmt.Sprint(n)}}}
	patch, err := json.Marshal(amount)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.Client.CoreV1().Nodes().Patch(context.Background(), "trainyard", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		w.Fatal(err)
	}
	return corev1.ResourceName(name)
}

// priority is the name of a priority class of that value.
func (w *world) priority(name string, value int32) string {
	w.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name}, Value: value}
	if err := w.client.Create(context.Background(), class); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = w.client.Delete(context.Background(), class) })
	return class.Name
}

// hasGroups waits until the job has these pod groups with these numbers of members, and no others.
func (j *training) hasGroups(want ...string) {
	j.Helper()
	j.Eventually(fmt.Sprintf("job %s has the pod groups %q", j.name, want), func() error {
		var list schedulingv1beta1.PodGroupList
		if err := j.client.List(context.Background(), &list, client.InNamespace(j.Namespace), client.MatchingLabels{naming.LabelJobName: j.name}); err != nil {
			return err
		}
		var have []string
		for _, group := range list.Items {
			have = append(have, fmt.Sprintf("%s of %d", group.Name, group.Spec.SchedulingPolicy.Gang.MinCount))
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			return fmt.Errorf("it has %q", have)
		}
		return nil
	})
}
