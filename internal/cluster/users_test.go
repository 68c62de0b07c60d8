package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A container gets a user only where it must not be root and neither it nor its pod names one.
func TestWhoGetsAUser(t *testing.T) {
	yes, no, someone := new(true), new(false), new(int64(1000))
	for sentence, row := range map[string]struct {
		pod  *corev1.PodSecurityContext
		own  *corev1.SecurityContext
		want bool
	}{
		"nothing is said":                    {nil, nil, false},
		"the pod must not be root":           {&corev1.PodSecurityContext{RunAsNonRoot: yes}, nil, true},
		"the container must not be root":     {nil, &corev1.SecurityContext{RunAsNonRoot: yes}, true},
		"the container may be root":          {&corev1.PodSecurityContext{RunAsNonRoot: yes}, &corev1.SecurityContext{RunAsNonRoot: no}, false},
		"the pod names a user":               {&corev1.PodSecurityContext{RunAsNonRoot: yes, RunAsUser: someone}, nil, false},
		"the container names a user":         {&corev1.PodSecurityContext{RunAsNonRoot: yes}, &corev1.SecurityContext{RunAsUser: someone}, false},
		"the pod names a user, but any will": {&corev1.PodSecurityContext{RunAsUser: someone}, nil, false},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: row.pod, Containers: []corev1.Container{{SecurityContext: row.own}}}}
		if got := wantsUser(pod); got != row.want {
			t.Errorf("%s: %t", sentence, got)
		}
		setUser(pod)
		if c := pod.Spec.Containers[0].SecurityContext; row.want && (c == nil || c.RunAsUser == nil || *c.RunAsUser != nonRoot) {
			t.Errorf("%s: the user is %v", sentence, c)
		}
	}
}
