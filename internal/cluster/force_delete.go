package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// onShorterGracePeriod calls shorten for pods whose grace period is shortened after it began, and for pods that are deleted before
// it ends. Kubelet goes on with the period that it began with, so that `kubectl delete --force` would free nothing, not even a GPU.
func onShorterGracePeriod(shorten func(pod string, grace time.Duration)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, now any) {
			before, after := old.(metav1.Object).GetDeletionGracePeriodSeconds(), now.(metav1.Object).GetDeletionGracePeriodSeconds()
			if before != nil && after != nil && *after < *before {
				shorten(string(now.(metav1.Object).GetUID()), time.Duration(*after)*time.Second)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if pod, ok := obj.(metav1.Object); ok {
				shorten(string(pod.GetUID()), 0)
			}
		},
	}
}
