package cluster

import (
	corev1 "k8s.io/api/core/v1"
	kubelettypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/trainyard/trainyard/internal/enclave"
)

// nonRoot is the user of containers that must not run as root and name no other. Images made for that, distroless ones first of all, name
// this one; here there is no image that could.
const nonRoot = 65532

// withUsers passes lists of pods on to kubelet. It gives containers with runAsNonRoot and without runAsUser a user: kubelet would ask the
// image for one, and refuse them. Where the cluster runs as an ordinary user, that is who they run as.
func withUsers(in <-chan kubelettypes.PodUpdate) <-chan kubelettypes.PodUpdate {
	if uid, _, ok := enclave.Outside(); ok && uid != 0 {
		return in
	}
	out := make(chan kubelettypes.PodUpdate)
	go func() {
		for update := range in {
			for i, pod := range update.Pods {
				if wantsUser(pod) {
					update.Pods[i] = pod.DeepCopy()
					setUser(update.Pods[i])
				}
			}
			out <- update
		}
	}()
	return out
}

// wantsUser reports whether some container of the pod must not run as root and names no user.
func wantsUser(pod *corev1.Pod) bool {
	found := false
	forUserless(pod, func(*corev1.Container) { found = true })
	return found
}

func setUser(pod *corev1.Pod) {
	forUserless(pod, func(c *corev1.Container) {
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		c.SecurityContext.RunAsUser = new(int64(nonRoot))
	})
}

// forUserless visits the containers that must not run as root and name no user, by themselves or by their pod.
func forUserless(pod *corev1.Pod, visit func(*corev1.Container)) {
	ofPod := pod.Spec.SecurityContext
	if ofPod == nil {
		ofPod = &corev1.PodSecurityContext{}
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			own := containers[i].SecurityContext
			if own == nil {
				own = &corev1.SecurityContext{}
			}
			must := own.RunAsNonRoot
			if must == nil {
				must = ofPod.RunAsNonRoot
			}
			if must != nil && *must && own.RunAsUser == nil && ofPod.RunAsUser == nil {
				visit(&containers[i])
			}
		}
	}
}
