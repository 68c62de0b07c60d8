package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubelet is the scheduler and all kubelets: it binds every pod, runs it at once, and ends it when it is told to.
type kubelet struct {
	client  client.Client
	ctx     context.Context
	pods    chan *corev1.Pod
	mu      sync.Mutex
	running map[types.UID]*corev1.Pod
}

func startKubelet(ctx context.Context, w *world, namespace string) (*kubelet, error) {
	c, err := client.NewWithWatch(w.config("kubelet"), client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		return nil, err
	}
	k := &kubelet{client: c, ctx: ctx, pods: make(chan *corev1.Pod, 20000), running: map[types.UID]*corev1.Pod{}}
	for range inFlight {
		go k.work()
	}
	return k, follow(ctx, c, &corev1.PodList{}, namespace, func(e watch.EventType, obj client.Object) {
		if pod := obj.(*corev1.Pod); e == watch.Added || e == watch.Modified && pod.DeletionTimestamp != nil {
			k.pods <- pod
		}
	})
}

func (k *kubelet) work() {
	for {
		select {
		case <-k.ctx.Done():
			return
		case pod := <-k.pods:
			if pod.DeletionTimestamp != nil {
				k.remove(pod)
			} else {
				k.start(pod)
			}
		}
	}
}

// start binds a pod and runs it. A pod that was deleted meanwhile is left.
func (k *kubelet) start(pod *corev1.Pod) {
	node := fmt.Sprintf("node-%d", len(pod.Name)%100)
	if k.client.SubResource("binding").Create(k.ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}) != nil {
		return
	}
	k.mu.Lock()
	k.running[pod.UID] = pod.DeepCopy() // before others can see it run, and end it
	k.mu.Unlock()
	k.report(pod, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
}

func (k *kubelet) report(pod *corev1.Pod, phase corev1.PodPhase, state corev1.ContainerState) {
	was := pod.DeepCopy()
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, Image: "train", ImageID: "train", State: state}}
	_ = k.client.Status().Patch(k.ctx, pod, client.MergeFrom(was))
}

// remove ends a pod that is being deleted, at once.
func (k *kubelet) remove(pod *corev1.Pod) {
	k.mu.Lock()
	delete(k.running, pod.UID)
	k.mu.Unlock()
	_ = k.client.Delete(k.ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
}

// succeed lets every pod exit with 0.
func (k *kubelet) succeed() {
	k.end(func(*corev1.Pod) bool { return true }, corev1.PodSucceeded, corev1.ContainerStateTerminated{Reason: "Completed"})
}

// fail kills the first Worker of every job.
func (k *kubelet) fail() {
	first := func(pod *corev1.Pod) bool { return strings.HasSuffix(pod.Name, "-worker-0") }
	k.end(first, corev1.PodFailed, corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 137})
}

func (k *kubelet) end(which func(*corev1.Pod) bool, phase corev1.PodPhase, state corev1.ContainerStateTerminated) {
	var all []*corev1.Pod
	k.mu.Lock()
	for uid, pod := range k.running {
		if which(pod) {
			all = append(all, pod)
			delete(k.running, uid)
		}
	}
	k.mu.Unlock()
	state.FinishedAt = metav1.Now()
	_ = inParallel(len(all), func(i int) error {
		k.report(all[i], phase, corev1.ContainerState{Terminated: &state})
		return nil
	})
}
