package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// Something stands in the way of a job's children. The job waits, says for what, charges nothing, and runs once the way is
// free.
func TestWhatStandsInTheWayIsSaidAndWaitedOut(t *testing.T) {
	t.Parallel()
	asks := func(cpu string) func(*kubeflowv1.PyTorchJob) {
		return func(pj *kubeflowv1.PyTorchJob) {
			limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
			pj.Spec.PyTorchReplicaSpecs["Worker"].Template.Spec.Containers[0].Resources.Limits = limits
		}
	}
	for _, c := range []struct {
		sentence string
		job      *kubeflowv1.PyTorchJob
		block    func(w *world)
		says     string
		ready    string // meanwhile
		makeWay  func(w *world)
	}{
		{
			"a quota", gang(1, "sleep 600"), func(w *world) { w.quota(1) }, "exceeded quota: small", "1/2",
			func(w *world) { w.quota(9) },
		},
		{
			"a limit range", gang(1, "sleep 600", asks("200m")), func(w *world) { w.limit("100m") }, "maximum cpu usage per Container is 100m", "1/2",
			func(w *world) { w.Kubectl("delete", "limitrange", "small") },
		},
		{
			"a Service of the job's name", gang(1, "sleep 600"), func(w *world) { w.Kubectl("create", "service", "clusterip", "demo", "--tcp=80") },
			"service demo", "0/2", func(w *world) { w.Kubectl("delete", "service", "demo") },
		},
		{
			"a pod of a replica's name", gang(1, "sleep 600"), func(w *world) { w.Kubectl("run", "demo-worker-0", "--image=none", "--command", "--", "sleep", "600") },
			"pod demo-worker-0", "1/2", func(w *world) { w.Kubectl("delete", "pod", "demo-worker-0", "--now") },
		},
		{
			"an image that cannot be pulled", gang(1, "sleep 600", func(pj *kubeflowv1.PyTorchJob) {
				pj.Spec.PyTorchReplicaSpecs["Worker"].Template.Spec.Containers[0].Image = "Not//an:image"
			}), func(*world) {}, "Worker 0 (pod demo-worker-0) waits: the image Not//an:image of container train cannot be pulled", "1/2",
			nil,
		},
		{
			"no node to run on", gang(1, "sleep 600", asks("9999")), func(*world) {}, "Worker 0 (pod demo-worker-0) waits: it cannot be scheduled", "1/2",
			nil,
		},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.block(w)
			j := w.submit(c.job)
			s := j.until("says what it waits for", func(s kubeflowv1.JobStatus) bool { return strings.Contains(s.Message, c.says) && s.Ready == c.ready })
			if newest(s).Type != kubeflowv1.JobCreated || s.Restarts != 0 {
				t.Errorf("the status is\n%s", describe(s))
			}
			if c.makeWay == nil {
				return
			}
			c.makeWay(w)
			if s := j.becomes(kubeflowv1.JobRunning); s.Restarts != 0 {
				t.Errorf("the status is\n%s", describe(s))
			}
		})
	}
}

// quota allows so many pods. What a quota's controller would write into its status is written here.
func (w *world) quota(pods int64) {
	w.Helper()
	ctx := context.Background()
	hard := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: w.Namespace}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if err := w.client.Create(ctx, quota); client.IgnoreAlreadyExists(err) != nil {
		w.Fatal(err)
	}
	w.Eventually("the quota counts", func() error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		quota.Spec.Hard = hard
		if err := w.client.Update(ctx, quota); err != nil {
			return err
		}
		quota.Status.Hard = hard
		if quota.Status.Used == nil {
			quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		}
		return w.client.Status().Update(ctx, quota)
	})
}

// limit allows containers at most so much CPU.
func (w *world) limit(cpu string) {
	w.Helper()
	item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	err := w.client.Create(context.Background(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: w.Namespace}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
	})
	if err != nil {
		w.Fatal(err)
	}
}

// A template that the API server will never accept ends the job, with the API server's sentence.
func TestARefusedTemplateEndsTheJob(t *testing.T) {
	t.Parallel()
	j := newWorld(t).submit(gang(1, `true`, func(pj *kubeflowv1.PyTorchJob) {
		mounts := []corev1.VolumeMount{{Name: "nowhere", MountPath: "/data"}}
		pj.Spec.PyTorchReplicaSpecs["Worker"].Template.Spec.Containers[0].VolumeMounts = mounts
	}))
	s := j.becomes(kubeflowv1.JobFailed)
	if message := newest(s).Message; !strings.Contains(message, "pod demo-worker-0") || !strings.Contains(message, `volumeMounts[0].name: Not found: "nowhere"`) {
		t.Errorf("the message is %q", message)
	}
	j.comesToRest()
}

// A replica that runs out of memory has failed by itself, and another try is worth it whatever code it ends with.
func TestOutOfMemoryIsChargedAndRetried(t *testing.T) {
	t.Parallel()
	greedy := failing(t, `{ /usr/bin/python3 -c 'x = bytearray(200 << 20)'; exit 1; }`)
	job := lineup("Job", greedy, kubeflowv1.RestartPolicyExitCode)
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	specsOf(job)["Worker"].Template.Spec.Containers[0].Resources.Limits = limits
	j := newWorld(t).submit(job)
	s := j.until("runs again", func(s kubeflowv1.JobStatus) bool { return s.Attempt == 1 && newest(s).Type == kubeflowv1.JobRunning })
	if f := s.LastFailure; s.Retries != 1 || s.Disruptions != 0 || f.Replica != "worker-0" || f.Reason != "OOMKilled" || f.Class != kubeflowv1.FailureApplication {
		t.Errorf("the last failure is %+v, and the status is\n%s", f, describe(s))
	}
	if why := s.Attempts[0].Why; !strings.Contains(why, "ran out of memory (OOMKilled") {
		t.Errorf("the first attempt ended because %s", why)
	}
}

// A pod that is gone from one moment to the next was disrupted, and nothing is charged.
func TestAVanishedPodIsADisruption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(gang(1, `sleep 600`, func(pj *kubeflowv1.PyTorchJob) { pj.Spec.RunPolicy.BackoffLimit = new(int32(0)) }))
	j.becomes(kubeflowv1.JobRunning)
	w.Kubectl("delete", "pod", "demo-worker-0", "--force", "--grace-period=0")
	j.until("runs again, not charged", func(s kubeflowv1.JobStatus) bool {
		return newest(s).Type == kubeflowv1.JobRunning && s.Attempt == 1 && s.Retries == 0 && s.Disruptions == 1
	})
}

// A pod that makes way for one of higher priority was disrupted. The job waits for room and runs again.
func TestAPreemptedPodIsADisruption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	most := resource.NewMilliQuantity(nodes.Items[0].Status.Allocatable.Cpu().MilliValue()*6/10, resource.DecimalSI)
	room := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *most}}
	urgent := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 1000}
	if err := w.client.Create(t.Context(), urgent); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.client.Delete(context.Background(), urgent) })

	j := w.submit(gang(1, `sleep 600`, func(pj *kubeflowv1.PyTorchJob) {
		pj.Spec.PyTorchReplicaSpecs["Worker"].Template.Spec.Containers[0].Resources = room
	}))
	j.becomes(kubeflowv1.JobRunning)
	w.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Spec: corev1.PodSpec{
		PriorityClassName: urgent.Name, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{{Name: "main", Image: "none", Command: []string{"sleep", "600"}, Resources: room}},
	}})
	s := j.until("waits for room", func(s kubeflowv1.JobStatus) bool {
		return newest(s).Type == kubeflowv1.JobRestarting && strings.Contains(s.Message, "cannot be scheduled")
	})
	if f := s.LastFailure; s.Retries != 0 || s.Disruptions != 1 || f.Class != kubeflowv1.FailureDisruption || f.Reason != "PreemptionByScheduler" {
		t.Errorf("the last failure is %+v, and the status is\n%s", f, describe(s))
	}
	w.Kubectl("delete", "pod", "urgent", "--now")
	j.becomes(kubeflowv1.JobRunning)
}

// A job created again under the same name waits for the pods of its namesake to go. It neither adopts nor counts them.
func TestANamesakeOfAnOlderUIDIsWaitedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stubborn := gang(1, `trap '' TERM; while true; do sleep 0.1; done`)
	for _, spec := range stubborn.Spec.PyTorchReplicaSpecs {
		spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(5))
	}
	old := w.submit(stubborn)
	old.becomes(kubeflowv1.JobRunning)
	older := old.pods()["worker-0"]
	w.Kubectl("delete", "pytorchjob", "demo", "--wait=false")
	old.isGone()
	j := w.submit(gang(1, `sleep 600`))
	s := j.becomes(kubeflowv1.JobRunning)
	if s.Restarts != 0 || s.Attempt != 0 || s.LastFailure != nil {
		t.Errorf("the status is\n%s", describe(s))
	}
	obj, err := j.get()
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range j.pods() {
		if owner := metav1.GetControllerOf(pod); owner.UID != obj.GetUID() || pod.UID == older.UID {
			t.Errorf("pod %s belongs to %s", name, owner.UID)
		}
	}
}

// The last failure says everything a person wants to know when the pod is gone.
func TestTheLastFailureIsKept(t *testing.T) {
	t.Parallel()
	j := newWorld(t).submit(gang(1, fmt.Sprintf(`test $RANK = 1 && { %s; }; sleep 600`, failing(t, `echo CUDA error: out of luck >&2 && sh -c 'kill -SEGV $PPID'`))))
	s := j.until("runs again", func(s kubeflowv1.JobStatus) bool { return s.Attempt == 1 && newest(s).Type == kubeflowv1.JobRunning })
	f := s.LastFailure
	if f.Replica != "worker-0" || f.Pod != "demo-worker-0" || f.Node == "" || *f.ExitCode != 139 || *f.Signal != 11 ||
		!strings.Contains(f.Message, "out of luck") || f.Time == nil || f.Class != kubeflowv1.FailureApplication {
		t.Errorf("the last failure is %+v", f)
	}
	if s.Attempts[0].Reason != "Restarted" || !strings.Contains(s.Attempts[0].Why, "SIGSEGV") {
		t.Errorf("the attempts are %+v", s.Attempts)
	}
}
