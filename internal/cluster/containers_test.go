package cluster_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// script is a container that runs a shell script.
func script(name, text string) corev1.Container {
	return corev1.Container{Name: name, Image: "none", Command: []string{"sh", "-c", text}}
}

// withScratch gives all containers of a pod one empty directory, /scratch.
func withScratch(pod *corev1.Pod) *corev1.Pod {
	return withVolume(pod, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
}

// withFolder gives all containers of a pod a folder of the machine as /scratch, which the test can look into.
func withFolder(pod *corev1.Pod, folder string) *corev1.Pod {
	return withVolume(pod, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}})
}

func withVolume(pod *corev1.Pod, source corev1.VolumeSource) *corev1.Pod {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: source})
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: "/scratch"})
		}
	}
	return pod
}

// read is the content of a file of the machine, empty where there is none.
func read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(content)
}

// write writes a file of the machine.
func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// remove removes a file of the machine.
func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestContainersOfOnePod(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	share := local.Pod("share", `until [ -e /scratch/note ]; do sleep 0.1; done; cat /scratch/note`)
	share.Spec.Containers = append(share.Spec.Containers, script("writer", `echo "written by $(hostname)" > /scratch/note; echo done`))
	talk := local.Pod("talk", `until curl -sf localhost:8000/etc/hostname; do sleep 0.2; done; grep -al 'http[.]server' /proc/[0-9]*/cmdline; true`)
	talk.Spec.Containers = append(talk.Spec.Containers, script("server", `cd /; exec timeout 20 /usr/bin/python3 -m http.server 8000`))
	uneven := local.Pod("uneven", `exit 0`)
	uneven.Spec.Containers = append(uneven.Spec.Containers, script("other", `exit 3`))
	stay := local.Pod("stay", `sleep 1000`)
	stay.Spec.Containers = append(stay.Spec.Containers, script("other", `sleep 1000`))
	w.Create(withScratch(share), talk, uneven, stay)

	w.Run(t, "share volumes", func(t *testing.T, w *local.World) {
		w.UntilPhase("share", corev1.PodSucceeded)
		if got := w.Logs("share", "-c", "main"); got != "written by share\n" {
			t.Errorf("main's log is %q", got)
		}
		if got := w.Logs("share", "--all-containers", "--prefix"); !strings.Contains(got, "[pod/share/writer] done\n") {
			t.Errorf("the log of all is %q", got)
		}
	})
	w.Run(t, "share the loopback interface and not their processes", func(t *testing.T, w *local.World) {
		w.Until("talk", "without main", func(p *corev1.Pod) bool { return local.Container(p, "main").State.Terminated != nil })
		if got := w.Logs("talk", "-c", "main"); got != "talk\n" {
			t.Errorf("the log is %q, want the served host name and no process of the server", got)
		}
	})
	w.Run(t, "fail the pod when one of them fails, each with its own exit code", func(t *testing.T, w *local.World) {
		pod := w.UntilPhase("uneven", corev1.PodFailed)
		for name, code := range map[string]int32{"main": 0, "other": 3} {
			if end := local.Container(pod, name).State.Terminated; end == nil || end.ExitCode != code {
				t.Errorf("%s ended as %+v, want exit code %d", name, end, code)
			}
		}
	})
	w.Run(t, "are counted by kubectl get", func(t *testing.T, w *local.World) {
		w.UntilPhase("stay", corev1.PodRunning)
		w.Await("2/2     Running", "get", "pod", "stay")
	})
}

func TestInitContainers(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	ordered := local.Pod("ordered", `echo main >> /scratch/order; cat /scratch/order`)
	ordered.Spec.InitContainers = []corev1.Container{
		script("first", `sleep 0.3; echo first >> /scratch/order`),
		script("second", `echo second >> /scratch/order`),
	}
	broken := local.Pod("broken", `echo never`)
	broken.Spec.InitContainers = []corev1.Container{script("fails", `echo no luck; exit 7`), script("later", `true`)}
	patient := local.Pod("patient", `cat /scratch/tries`)
	patient.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	patient.Spec.InitContainers = []corev1.Container{script("retries", `echo try >> /scratch/tries; [ $(wc -l < /scratch/tries) = 2 ]`)}
	w.Create(withScratch(ordered), broken, withScratch(patient))

	w.Run(t, "run one after the other, before all else", func(t *testing.T, w *local.World) {
		w.UntilPhase("ordered", corev1.PodSucceeded)
		if got := w.Logs("ordered"); got != "first\nsecond\nmain\n" {
			t.Errorf("the order was %q", got)
		}
	})
	w.Run(t, "that fail let nothing after them run", func(t *testing.T, w *local.World) {
		pod := w.UntilPhase("broken", corev1.PodFailed)
		if end := local.Container(pod, "fails").State.Terminated; end == nil || end.ExitCode != 7 {
			t.Errorf("the init container ended as %+v", end)
		}
		for _, name := range []string{"later", "main"} {
			if waiting := local.Container(pod, name).State.Waiting; waiting == nil || waiting.Reason != "PodInitializing" {
				t.Errorf("%s is %+v", name, local.Container(pod, name).State)
			}
		}
		w.Await("Init:Error", "get", "pod", "broken")
		if got := w.Logs("broken", "-c", "fails"); got != "no luck\n" {
			t.Errorf("its log is %q", got)
		}
	})
	w.Run(t, "that fail are tried again where the pod is restarted", func(t *testing.T, w *local.World) {
		pod := w.UntilPhase("patient", corev1.PodSucceeded)
		if got := w.Logs("patient", "-c", "main"); got != "try\ntry\n" {
			t.Errorf("the tries were %q", got)
		}
		if n := local.Container(pod, "retries").RestartCount; n != 1 {
			t.Errorf("it was restarted %d times", n)
		}
	})
}

func TestNativeSidecars(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	sidecar := func(name, text string) corev1.Container {
		c := script(name, text)
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		return c
	}
	farewell := func(name string) corev1.Container {
		return sidecar(name, `trap 'echo `+name+` >> /scratch/ends; exit 0' TERM; echo ready > /scratch/`+name+`; while :; do sleep 0.1; done`)
	}
	serves := local.Pod("serves", `cat /scratch/one /scratch/two; touch /scratch/main`)
	probed := farewell("one")
	probed.Command[2] = `sleep 1; ` + probed.Command[2]
	probed.StartupProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/scratch/one"}}}, PeriodSeconds: 1, FailureThreshold: 60,
	}
	serves.Spec.InitContainers = []corev1.Container{probed, farewell("two"), script("between", `cat /scratch/one && until [ -e /scratch/two ]; do sleep 0.1; done`)}
	dies := local.Pod("dies", `until [ "$(wc -l < /scratch/lives)" -gt 1 ]; do sleep 0.1; done`)
	dies.Spec.InitContainers = []corev1.Container{sidecar("mortal", `echo life >> /scratch/lives; [ $(wc -l < /scratch/lives) = 1 ] && exit 9; sleep 1000`)}
	folder := t.TempDir() // the order of their ends shows after them all
	w.Create(withFolder(serves, folder), withScratch(dies))

	w.Run(t, "run before and beside the others, and end with the last of them, in reverse order", func(t *testing.T, w *local.World) {
		pod := w.UntilPhase("serves", corev1.PodSucceeded)
		if got := read(t, folder+"/ends"); got != "two\none\n" {
			t.Errorf("they ended in the order %q", got)
		}
		for _, name := range []string{"one", "two"} {
			if end := local.Container(pod, name).State.Terminated; end == nil || end.ExitCode != 0 {
				t.Errorf("%s ended as %+v", name, end)
			}
		}
	})
	w.Run(t, "are restarted when they end, also where the pod is not", func(t *testing.T, w *local.World) {
		pod := w.UntilPhase("dies", corev1.PodSucceeded)
		if mortal := local.Container(pod, "mortal"); mortal.RestartCount != 1 || mortal.LastTerminationState.Terminated.ExitCode != 9 {
			t.Errorf("the sidecar was %+v", mortal)
		}
	})
}
