package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/text"
)

// start lets a pod's training run, unless the pod is gone or going.
func (w *world) start(pod *corev1.Pod) {
	if w.pods[pod.Name] != pod || pod.DeletionTimestamp != nil {
		return
	}
	pod.Spec.NodeName = "node-" + pod.Labels[naming.LabelReplicaIndex]
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.run(pod)
}

// run begins a run of the training container, which ends by itself in the end, or before as the script says.
func (w *world) run(pod *corev1.Pod) {
	main := w.main(pod)
	main.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}}
	attempt, _ := strconv.Atoi(pod.Labels[naming.LabelAttempt])
	w.runs[pod.UID] = len(w.life.Runs)
	w.life.Runs = append(w.life.Runs, Run{Replica: w.short(pod), Attempt: int32(attempt), Start: w.now.Sub(epoch), Code: -1})

	count := main.RestartCount
	same := func() bool { return w.pods[pod.Name] == pod && running(pod) && w.main(pod).RestartCount == count }
	for _, h := range w.script {
		if h.Each && h.Who == w.short(pod) {
			w.at(w.now.Add(h.At), func() {
				if same() {
					w.befall(pod, h)
				}
			})
		}
	}
	w.at(w.now.Add(w.pace.Trains), func() {
		if same() {
			w.tell(FromScript, "%s exits 0", w.short(pod))
			w.exit(pod, 0, "Completed")
		}
	})
}

// exit ends the training container. The kubelet restarts it in place where the pod's restart policy says so.
func (w *world) exit(pod *corev1.Pod, code int32, reason string) {
	w.close(pod, code)
	main := w.main(pod)
	end := &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(w.now.Truncate(time.Second))}
	main.State = corev1.ContainerState{Terminated: end}
	switch {
	case pod.DeletionTimestamp != nil:
	case code != 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		pod.Status.Phase = corev1.PodFailed
	case code == 0 && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways:
		pod.Status.Phase = corev1.PodSucceeded
	default:
		w.restart(pod, end)
	}
}

// restart is the kubelet's, in place: after a second, then after 10 s, doubling up to 5 minutes.
func (w *world) restart(pod *corev1.Pod, end *corev1.ContainerStateTerminated) {
	main := w.main(pod)
	main.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	main.LastTerminationState = corev1.ContainerState{Terminated: end}
	wait := time.Second
	if n := main.RestartCount; n > 0 {
		wait = min(10*time.Second<<min(n-1, 8), 5*time.Minute)
	}
	w.at(w.now.Add(wait), func() {
		if w.pods[pod.Name] == pod && pod.DeletionTimestamp == nil && !over(pod) {
			w.tell(FromScript, "%s starts again in its pod", w.short(pod))
			w.main(pod).RestartCount++
			w.run(pod)
		}
	})
}

func (w *world) evict(pod *corev1.Pod) {
	w.close(pod, -1)
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", LastTransitionTime: metav1.NewTime(w.now),
	})
	w.main(pod).State = corev1.ContainerState{}
}

// deletePod is graceful as the API server's: a pod that a kubelet runs takes its time, any other is gone at once.
func (w *world) deletePod(pod *corev1.Pod, force bool) {
	if force || pod.Spec.NodeName == "" || over(pod) {
		w.close(pod, -1)
		delete(w.pods, pod.Name)
		return
	}
	if pod.DeletionTimestamp != nil {
		return
	}
	grace := int64(30)
	pod.DeletionTimestamp = &metav1.Time{Time: w.now.Add(30 * time.Second)}
	pod.DeletionGracePeriodSeconds = &grace
	w.at(w.now.Add(w.pace.Stops), func() {
		if w.pods[pod.Name] == pod {
			w.close(pod, -1)
			delete(w.pods, pod.Name)
		}
	})
}

// close ends the pod's open run, if it has one.
func (w *world) close(pod *corev1.Pod, code int32) {
	if open, ok := w.runs[pod.UID]; ok {
		w.life.Runs[open].End, w.life.Runs[open].Code = w.now.Sub(epoch), code
		delete(w.runs, pod.UID)
	}
}

// main is the status of the training container.
func (w *world) main(pod *corev1.Pod) *corev1.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: w.trains(pod)}}
	}
	return &pod.Status.ContainerStatuses[0]
}

// trains is the name of the container that counts in a pod of its role.
func (w *world) trains(pod *corev1.Pod) string {
	for _, role := range w.manifest.Job.Roles {
		if strings.EqualFold(role.Name, pod.Labels[naming.LabelReplicaType]) {
			return job.TrainingContainer(pod.Spec, role.Container)
		}
	}
	return ""
}

func running(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil
}

func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// sorted are the objects in the order of their names, as copies.
func sorted[T any](objects map[string]T, snapshot func(T) T) []T {
	var list []T
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		list = append(list, snapshot(objects[name]))
	}
	return list
}

// Describe is what a job is made of and by which rules it lives, in one line.
func Describe(j job.Job) string {
	words := ""
	for _, role := range j.Roles {
		words += fmt.Sprintf("%s %d, ", role.Name, j.Size(role))
	}
	if j.RestartScope() == job.ScopeJob {
		words += "a failure restarts everyone"
	} else {
		words += "a failure restarts that replica"
	}
	if e := j.Elastic; e != nil && e.Anchored && j.ScopeOverride == "" {
		words += fmt.Sprintf(", of %s everyone", job.Replica{Role: e.Role})
	}
	if limit := j.Policy.BackoffLimit; limit != nil {
		words += ", " + text.Count(*limit, "retry", "retries")
	} else {
		words += ", any number of retries"
	}
	if deadline := j.Policy.ActiveDeadlineSeconds; deadline != nil {
		words += ", deadline " + short(job.Seconds(*deadline))
	}
	words += ", cleanPodPolicy " + string(j.Policy.CleanPodPolicy)
	if ttl := j.Policy.TTLSecondsAfterFinished; ttl != nil {
		words += ", TTL " + short(time.Duration(*ttl)*time.Second)
	}
	return words
}
