package main

import (
	"context"
	"fmt"
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
		if e == watch.Added {
			k.pods <- obj.(*corev1.Pod)
		}
	})
}

func (k *kubelet) work() {
	for {
		select {
		case <-k.ctx.Done():
			return
		case pod := <-k.pods:
			k.start(pod)
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

// succeed lets every pod exit with 0.
func (k *kubelet) succeed() {
	k.mu.Lock()
	var all []*corev1.Pod
	for _, pod := range k.running {
		all = append(all, pod)
	}
	k.mu.Unlock()
	end := &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.Now()}
	_ = inParallel(len(all), func(i int) error {
		k.report(all[i], corev1.PodSucceeded, corev1.ContainerState{Terminated: end})
		return nil
	})
}
