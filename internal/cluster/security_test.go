package cluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestSecurityContext(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	as := func(pod *corev1.Pod, security corev1.PodSecurityContext) *corev1.Pod {
		pod.Spec.SecurityContext = &security
		return pod
	}
	container := func(pod *corev1.Pod, security corev1.SecurityContext) *corev1.Pod {
		pod.Spec.Containers[0].SecurityContext = &security
		return pod
	}
	const who = `echo $(id -u):$(id -g)`
	cases := []struct {
		what string
		pod  *corev1.Pod
		want string
	}{
		{"runs as root where nothing is said", local.Pod("root", who), "0:0\n"},
		{"runAsUser, with the user's own group", as(local.Pod("nobody", who), corev1.PodSecurityContext{RunAsUser: ptr.To(int64(65534))}), "65534:65534\n"},
		{"runAsUser and runAsGroup that nobody has", as(local.Pod("someone", who), corev1.PodSecurityContext{RunAsUser: ptr.To(int64(1234)), RunAsGroup: ptr.To(int64(4321))}), "1234:4321\n"},
		{"the container's word counts more than the pod's",
			container(as(local.Pod("both", who), corev1.PodSecurityContext{RunAsUser: ptr.To(int64(1234)), RunAsGroup: ptr.To(int64(4321))}), corev1.SecurityContext{RunAsUser: ptr.To(int64(99))}), "99:4321\n"},
		{"runAsNonRoot without a user", as(local.Pod("anyone", who), corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}), "65532:0\n"},
		{"supplementalGroups", as(local.Pod("groups", `id -G`), corev1.PodSecurityContext{RunAsUser: ptr.To(int64(1234)), RunAsGroup: ptr.To(int64(1)), SupplementalGroups: []int64{50, 60}}), "1 50 60\n"},
		{"fsGroup owns the volumes, so that an ordinary user can write them",
			as(withScratch(local.Pod("fsgroup", `touch /scratch/f && stat -c '%u:%g' /scratch/f; stat -c %a:%g /scratch`)), corev1.PodSecurityContext{RunAsUser: ptr.To(int64(1234)), FSGroup: ptr.To(int64(777))}), "1234:777\n2777:777\n"},
		{"an ordinary user can say its last words", container(local.Pod("words", `echo bye > /dev/termination-log && echo said`), corev1.SecurityContext{RunAsUser: ptr.To(int64(1234))}), "said\n"},
		{"an ordinary user cannot become root", container(local.Pod("confined", `grep NoNewPrivs /proc/self/status | tr -d '\t'`), corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false)}), "NoNewPrivs:1\n"},
		{"readOnlyRootFilesystem leaves the volumes writable",
			container(withScratch(local.Pod("readonly", `for d in / /tmp /etc /root /run /usr /var/tmp; do touch $d/f-$(hostname) 2>/dev/null && echo $d is writable; done; echo 1 > /scratch/f && cat /scratch/f; echo 2 > /dev/shm/f && cat /dev/shm/f; echo 3 > /dev/null && echo bye > /dev/termination-log && echo 3`)),
				corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true)}), "1\n2\n3\n"},
	}
	for _, c := range cases {
		w.Create(c.pod)
	}
	refused := as(local.Pod("refused", who), corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(0))})
	w.Create(refused)
	for _, c := range cases {
		w.Run(t, c.what, func(t *testing.T, w *local.World) {
			w.UntilPhase(c.pod.Name, corev1.PodSucceeded)
			if got := w.Logs(c.pod.Name); got != c.want {
				t.Errorf("the pod printed %q, want %q", got, c.want)
			}
		})
	}
	w.Run(t, "runAsNonRoot refuses root", func(t *testing.T, w *local.World) {
		w.Await("CreateContainerConfigError", "get", "pod", "refused")
		w.Await("container's runAsUser breaks non-root policy", "describe", "pod", "refused")
	})
}

func TestSharedProcessNamespace(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	pod := local.Pod("shared", `until pkill -TERM -f 'sleep 12[3]4'; do sleep 0.1; done; echo killed the other`)
	pod.Spec.ShareProcessNamespace = ptr.To(true)
	pod.Spec.Containers = append(pod.Spec.Containers, script("other", `sleep 1000 & exec sleep 1234`))
	w.Create(withMark(pod, w.Namespace))
	pod = w.UntilPhase("shared", corev1.PodFailed)
	for name, code := range map[string]int32{"main": 0, "other": 143} {
		if end := local.Container(pod, name).State.Terminated; end == nil || end.ExitCode != code {
			t.Errorf("%s ended as %+v, want exit code %d", name, end, code)
		}
	}
	w.Eventually("all that the containers started is gone", func() error { return left(w.Namespace) })
}
