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

// start starts a pod's training, unless the pod is gone or terminating.
func (w *world) start(pod *corev1.Pod) {
	if w.pods[pod.Name] != pod || pod.DeletionTimestamp != nil {
		return
	}
	pod.Spec.NodeName = "node-" + pod.Labels[naming.LabelReplicaIndex]
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.runContainer(pod)
}

// runContainer starts the training container. It exits by itself in the end, or earlier if the script says so.
func (w *world) runContainer(pod *corev1.Pod) {
	status := w.containerStatus(pod)
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}}
	attempt, _ := strconv.Atoi(pod.Labels[naming.LabelAttempt])
	w.runs[pod.UID] = len(w.life.Runs)
	w.life.Runs = append(w.life.Runs, Run{Replica: w.short(pod), Attempt: int32(attempt), Start: w.now.Sub(epoch), Code: -1})

	count := status.RestartCount
	same := func() bool {
		return w.pods[pod.Name] == pod && running(pod) && w.containerStatus(pod).RestartCount == count
	}
	for _, h := range w.script {
		if h.Each && h.Who == w.short(pod) {
			w.at(w.now.Add(h.At), func() {
				if same() {
					w.applyToPod(pod, h)
				}
			})
		}
	}
	w.at(w.now.Add(w.pace.Trains), func() {
		if same() {
			w.record(FromScript, "%s exits 0", w.short(pod))
			w.exit(pod, 0, "Completed")
		}
	})
}

// exit ends the training container. The kubelet restarts it in place if the pod's restart policy says so.
func (w *world) exit(pod *corev1.Pod, code int32, reason string) {
	w.endRun(pod, code)
	status := w.containerStatus(pod)
	end := &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(w.now.Truncate(time.Second))}
	status.State = corev1.ContainerState{Terminated: end}
	switch {
	case pod.DeletionTimestamp != nil:
	case code != 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		pod.Status.Phase = corev1.PodFailed
	case code == 0 && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways:
		pod.Status.Phase = corev1.PodSucceeded
	default:
		w.restartInPlace(pod, end)
	}
}

// restartInPlace is the kubelet's restart: after a second, then after 10 s, doubling up to 5 minutes.
func (w *world) restartInPlace(pod *corev1.Pod, end *corev1.ContainerStateTerminated) {
	status := w.containerStatus(pod)
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	status.LastTerminationState = corev1.ContainerState{Terminated: end}
	wait := time.Second
	if n := status.RestartCount; n > 0 {
		wait = min(10*time.Second<<min(n-1, 8), 5*time.Minute)
	}
	w.at(w.now.Add(wait), func() {
		if w.pods[pod.Name] == pod && pod.DeletionTimestamp == nil && !finished(pod) {
			w.record(FromScript, "%s starts again in its pod", w.short(pod))
			w.containerStatus(pod).RestartCount++
			w.runContainer(pod)
		}
	})
}

func (w *world) evict(pod *corev1.Pod) {
	w.endRun(pod, -1)
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", LastTransitionTime: metav1.NewTime(w.now),
	})
	w.containerStatus(pod).State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 137, Reason: "Error", FinishedAt: metav1.NewTime(w.now),
	}}
}

// deletePod deletes gracefully, as the API server does: a pod that runs on a node takes time to stop, any other is gone at once.
func (w *world) deletePod(pod *corev1.Pod, force bool) {
	if force || pod.Spec.NodeName == "" || finished(pod) {
		w.endRun(pod, -1)
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
			w.endRun(pod, -1)
			delete(w.pods, pod.Name)
		}
	})
}

// endRun ends the pod's current run, if it has one.
func (w *world) endRun(pod *corev1.Pod, code int32) {
	if open, ok := w.runs[pod.UID]; ok {
		w.life.Runs[open].End, w.life.Runs[open].Code = w.now.Sub(epoch), code
		delete(w.runs, pod.UID)
	}
}

// containerStatus is the status of the training container.
func (w *world) containerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: w.trainingContainer(pod)}}
	}
	return &pod.Status.ContainerStatuses[0]
}

// trainingContainer is the name of the training container in a pod.
func (w *world) trainingContainer(pod *corev1.Pod) string {
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

func finished(pod *corev1.Pod) bool {
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

// Describe is one line on a job: its roles and its policy.
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
		words += fmt.Sprintf(", a failure of %s everyone", job.Replica{Role: e.Role})
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
