package local

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod is a pod that runs a shell script in one container, main, and is not restarted. Change it before it is created.
func Pod(name, script string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "none", Command: []string{"sh", "-c", script}}},
		},
	}
}

// Create creates pods.
func (w *World) Create(pods ...*corev1.Pod) {
	w.Helper()
	for _, pod := range pods {
		if _, err := w.Client.CoreV1().Pods(w.Namespace).Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
			w.Fatalf("creating pod %s: %v", pod.Name, err)
		}
	}
}

// Get is a pod as it is now.
func (w *World) Get(name string) *corev1.Pod {
	w.Helper()
	pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatalf("reading pod %s: %v", name, err)
	}
	return pod
}

// Until waits until a pod is as check wants it, and returns it.
func (w *World) Until(name, what string, check func(*corev1.Pod) bool) *corev1.Pod {
	w.Helper()
	var pod *corev1.Pod
	w.Eventually(fmt.Sprintf("pod %s is %s", name, what), func() error {
		pod = w.Get(name)
		if check(pod) {
			return nil
		}
		return fmt.Errorf("it is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
	})
	return pod
}

// UntilPhase waits until a pod is in a phase. One that has ended in another is not waited for.
func (w *World) UntilPhase(name string, phase corev1.PodPhase) *corev1.Pod {
	w.Helper()
	pod := w.Until(name, string(phase), func(p *corev1.Pod) bool { return p.Status.Phase == phase || ended(p) })
	if pod.Status.Phase != phase {
		w.Fatalf("pod %s is to be %s: it is %s: %+v", name, phase, pod.Status.Phase, pod.Status.ContainerStatuses)
	}
	return pod
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Container is how a container of a pod is, also of one that initializes it.
func Container(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.Name == name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// Logs is what a pod's container has printed.
func (w *World) Logs(pod string, args ...string) string {
	w.Helper()
	return w.Kubectl(append([]string{"logs", pod}, args...)...)
}
