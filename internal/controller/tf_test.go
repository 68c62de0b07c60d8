package controller

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// Replicas of a TFJob are restarted in place by the kubelet. Each failure is counted, and the one after the last retry
// ends the job and its crash loop.
func TestRestartsInPlaceAreCounted(t *testing.T) {
	w := newWorld(t)
	role := func(script string) *kubeflowv1.ReplicaSpec {
		return &kubeflowv1.ReplicaSpec{RestartPolicy: kubeflowv1.RestartPolicyOnFailure, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers:                    []corev1.Container{{Name: "tensorflow", Image: "none", Command: []string{"sh", "-c", script}}},
		}}}
	}
	tf := &kubeflowv1.TFJob{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: w.Namespace}}
	tf.Spec.RunPolicy.BackoffLimit = new(int32(1))
	tf.Spec.TFReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"PS": role(`sleep 600`), "Worker": role(`exit 1`)}
	if err := w.client.Create(context.Background(), tf); err != nil {
		t.Fatal(err)
	}
	w.Eventually("the job is failed", func() error {
		if err := w.client.Get(context.Background(), client.ObjectKeyFromObject(tf), tf); err != nil {
			return err
		}
		if n := len(tf.Status.Conditions); n == 0 || tf.Status.Conditions[n-1].Type != kubeflowv1.JobFailed {
			return fmt.Errorf("status: %+v", tf.Status)
		}
		return nil
	})
	if tf.Status.Retries != 1 || tf.Status.LastFailure.Replica != "worker-0" {
		t.Errorf("status: %+v", tf.Status)
	}
	w.Eventually("nothing runs any more", func() error {
		pods, err := w.Client.CoreV1().Pods(w.Namespace).List(context.Background(), metav1.ListOptions{})
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning {
				return fmt.Errorf("%s runs", pod.Name)
			}
		}
		return err
	})
}
