package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/trainyard/trainyard/api/naming"
)

// OneJobAtATime watches which jobs hold places: those with pods that have a node and have not ended. The function that it returns ends the
// watch, and the test fails if two jobs held places at the same time.
func (w *World) OneJobAtATime() (done func()) {
	w.Helper()
	pods := w.Client.CoreV1().Pods(w.Namespace)
	now, err := pods.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	// The API server ends watches from time to time. This one goes on where it was.
	stream, err := watchtools.NewRetryWatcherWithContext(context.Background(), now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, options)
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	holders := places{}
	for i := range now.Items {
		holders.see(watch.Added, &now.Items[i])
	}
	found := make(chan []string, 1)
	go func() {
		var moments []string
		for e := range stream.ResultChan() {
			pod, ok := e.Object.(*corev1.Pod)
			if !ok {
				moments = append(moments, fmt.Sprintf("the watch failed: %v", e.Object))
				continue
			}
			holders.see(e.Type, pod)
			if len(holders) > 1 {
				moments = append(moments, holders.String())
			}
		}
		found <- moments
	}()
	return func() {
		w.Helper()
		stream.Stop()
		if moments := <-found; len(moments) > 0 {
			w.Errorf("two jobs held places at the same time: %s", strings.Join(moments, "; "))
		}
	}
}

// places are the pods that hold places, by their jobs.
type places map[string]map[string]bool

func (p places) see(change watch.EventType, pod *corev1.Pod) {
	job := pod.Labels[naming.LabelJobName]
	if pod.Spec.NodeName != "" && !ended(pod) && change != watch.Deleted {
		if p[job] == nil {
			p[job] = map[string]bool{}
		}
		p[job][pod.Name] = true
		return
	}
	delete(p[job], pod.Name)
	if len(p[job]) == 0 {
		delete(p, job)
	}
}

func (p places) String() string {
	var all []string
	for _, job := range slices.Sorted(maps.Keys(p)) {
		all = append(all, fmt.Sprintf("%d of %s", len(p[job]), job))
	}
	return strings.Join(all, " and ")
}
