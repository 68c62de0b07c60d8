package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// Whichever of the two processes is killed, the other ends with it and all pods do, and the next start continues.
func TestClusterThatWasKilledContinues(t *testing.T) {
	for _, c := range []struct {
		name   string
		victim func(*local.Up) int
		sweeps bool // the other process cleans up after it
	}{
		{"the process that a person started", (*local.Up).Pid, false},
		{"the process that is the cluster", func(u *local.Up) int { return local.Below(u.Pid())[0].Pid }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			up := local.StartUp(t, dir).Ready()
			w := local.At(t, up.Kubeconfig())
			w.Create(limited(startingOver("never", corev1.RestartPolicyNever), "", "64Mi"), startingOver("on-failure", corev1.RestartPolicyOnFailure),
				startingOver("always", corev1.RestartPolicyAlways), local.Pod("done", "true"))
			w.UntilPhase("done", corev1.PodSucceeded)
			for _, name := range []string{"never", "on-failure", "always"} {
				w.Await("life 1", "logs", name)
			}
			all := local.Below(up.Pid())
			if len(all) < 7 { // the cluster, and for each pod a supervisor, its command and what that left behind
				t.Fatalf("only %v run", all)
			}
			kubeconfig := read(t, up.Kubeconfig())

			if err := syscall.Kill(c.victim(up), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			up.Wait()
			if groups := groupsNamed(cluster.CgroupName(dir)); c.sweeps && len(groups) > 0 {
				t.Errorf("control groups are left: %v", groups)
			}
			again := local.StartUp(t, dir).Ready() // at once
			if orphans := alive(all); len(orphans) > 0 {
				t.Errorf("these go on: %v", orphans)
			}
			if server(read(t, again.Kubeconfig())) != server(kubeconfig) {
				t.Errorf("the API server's address was %s and is %s", server(kubeconfig), server(read(t, again.Kubeconfig())))
			}
			w.UntilPhase("never", corev1.PodFailed)
			if end := w.Get("never").Status.ContainerStatuses[0]; end.RestartCount != 0 || end.State.Terminated == nil || end.State.Terminated.ExitCode != 137 {
				t.Errorf("the pod that must not be restarted is %+v", end)
			}
			for _, name := range []string{"on-failure", "always"} {
				w.Until(name, "restarted", func(p *corev1.Pod) bool {
					return p.Status.ContainerStatuses[0].RestartCount == 1 && p.Status.ContainerStatuses[0].State.Running != nil
				})
				w.Await("life 2", "logs", name)
				if got := w.Logs(name, "--previous"); got != "life 1\n" {
					t.Errorf("the log of %s before was %q", name, got)
				}
			}
			if done := w.Get("done"); done.Status.Phase != corev1.PodSucceeded || done.Status.ContainerStatuses[0].RestartCount != 0 {
				t.Errorf("the pod that had succeeded is %s", done.Status.Phase)
			}
		})
	}
}

// startingOver is a pod that counts its lives in a volume, leaves a daemon behind and lasts.
func startingOver(name string, policy corev1.RestartPolicy) *corev1.Pod {
	pod := local.Pod(name, `echo x >> /lives/all; echo life $(wc -l < /lives/all); setsid sleep 600 >/dev/null 2>&1 & exec sleep 600`)
	pod.Spec.RestartPolicy = policy
	pod.Spec.TerminationGracePeriodSeconds = new(int64(0))
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "lives", MountPath: "/lives"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "lives", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	return pod
}

// A cluster that is killed at any moment, while it starts or works, leaves no process and has all that it accepted.
func TestClusterSurvivesAnyMoment(t *testing.T) {
	t.Parallel()
	const kills = 4
	dir := t.TempDir()
	accepted := map[string]bool{}
	for round := range kills {
		moment := rand.N(6 * time.Second)
		t.Logf("round %d: killed after %v", round, moment)
		up := local.StartUp(t, dir)
		ctx, cancel := context.WithTimeout(context.Background(), moment)
		done := make(chan struct{})
		go func() {
			defer close(done)
			createPods(ctx, up, round, accepted)
		}()
		<-ctx.Done()
		cancel()
		all := local.Below(up.Pid())
		victim := up.Pid()
		if round%2 == 1 && len(all) > 0 {
			victim = all[0].Pid
		}
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		up.Wait()
		<-done
		err := wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, local.Timeout, true,
			func(context.Context) (bool, error) { return len(alive(all)) == 0, nil })
		if err != nil {
			t.Errorf("round %d: these go on: %v", round, alive(all))
		}
	}
	w := local.At(t, local.StartUp(t, dir).Ready().Kubeconfig())
	for name := range accepted {
		pod, err := w.Client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("pod %s was accepted: %v", name, err)
		} else if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
			t.Errorf("pod %s is not as it was", name)
		}
	}
	w.Create(local.Pod("still-works", "true"))
	w.UntilPhase("still-works", corev1.PodSucceeded)
}

// createPods creates pods as soon as the cluster takes them, until ctx ends, and notes which were accepted.
func createPods(ctx context.Context, up *local.Up, round int, accepted map[string]bool) {
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("pod-%d-%d", round, i)
		cmd := local.CLI("kubectl", "--kubeconfig="+up.Kubeconfig(), "run", name, "--image=none", "--command", "--", "sleep", "600")
		if cmd.Run() == nil {
			accepted[name] = true
		}
	}
}

func TestClusterThatStopsLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := cluster.Start(context.Background(), cluster.Options{DataDir: dir, GraceLimit: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w := local.On(t, c)
	limited := startingOver("limited", corev1.RestartPolicyAlways)
	limited.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	stubborn := local.Pod("stubborn", `trap "" TERM; echo life 1; while :; do sleep 1; done`)
	polite := local.Pod("polite", `trap "echo bye; exit 3" TERM; echo life 1; while :; do sleep 0.1; done`)
	w.Create(limited, stubborn, polite)
	for _, name := range []string{"limited", "stubborn", "polite"} {
		w.Await("life 1", "logs", name)
	}
	all := append(local.Below(c.Pid()), local.ProcessAt(c.Pid()))
	interfaces := interfaceNames(t)

	ctx, cancel := context.WithTimeout(context.Background(), local.Timeout)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		t.Errorf("stopping: %v", err)
	}
	if left := alive(all); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if now := interfaceNames(t); now != interfaces || strings.Contains(now, "trainyard") || strings.Contains(now, "veth") {
		t.Errorf("the machine's network interfaces were %s and are %s", interfaces, now)
	}
	if mounts := read(t, "/proc/self/mountinfo"); strings.Contains(mounts, dir) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	if groups := groupsNamed(cluster.CgroupName(dir)); len(groups) > 0 {
		t.Errorf("control groups are left: %v", groups)
	}
	if sockets, _ := filepath.Glob(filepath.Join(dir, "etcd", "*.sock")); len(sockets) > 1 {
		t.Errorf("sockets are left: %v", sockets)
	}

	t.Run("and the next start reports how the pods ended", func(t *testing.T) {
		again, err := cluster.Start(context.Background(), cluster.Options{DataDir: dir, GraceLimit: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Stop(context.Background()) //nolint:errcheck // the test has all it wants
		for name, code := range map[string]int32{"stubborn": 137, "polite": 3} {
			w.UntilPhase(name, corev1.PodFailed)
			if end := w.Get(name).Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != code {
				t.Errorf("%s ended with %+v, not with code %d", name, end, code)
			}
		}
		if got := w.Logs("polite"); got != "life 1\nbye\n" {
			t.Errorf("the log of the polite pod is %q", got)
		}
		w.Await("life 2", "logs", "limited")
	})
}

func TestSecondStartOnARunningDataDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	up := local.StartUp(t, dir).Ready()
	began := time.Now()
	_, err := cluster.Start(context.Background(), cluster.Options{DataDir: dir})
	if !errors.Is(err, cluster.ErrRunning) {
		t.Fatalf("a second start: %v", err)
	}
	want := fmt.Sprintf("a local cluster is already running: process %d holds %s; use that cluster by its kubeconfig, or name another data directory", up.Pid(), dir)
	if err.Error() != want {
		t.Errorf("it says %q", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v to say so", took)
	}
	w := local.At(t, up.Kubeconfig())
	w.Create(local.Pod("works", "true"))
	w.UntilPhase("works", corev1.PodSucceeded)
}

func TestOnlyItsOwnerReadsWhatTheClusterWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	up := local.StartUp(t, filepath.Join(dir, "data")).Ready()
	w := local.At(t, up.Kubeconfig())
	w.Create(idle("runs"))
	ready(w, "runs")
	info, err := os.Stat(up.Kubeconfig())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig has mode %v (%v)", info.Mode(), err)
	}
	if info, err := os.Stat(up.DataDir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory has mode %v (%v)", info.Mode(), err)
	}
}

// server is the line of a kubeconfig that says where the API server is.
func server(kubeconfig string) string {
	for line := range strings.Lines(kubeconfig) {
		if strings.Contains(line, "server:") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// alive lists those of the processes that still run.
func alive(all []local.Process) []local.Process {
	var left []local.Process
	for _, p := range all {
		if p.Alive() {
			left = append(left, p)
		}
	}
	return left
}

func interfaceNames(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

// groupsNamed finds the control groups of a name.
func groupsNamed(name string) []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == name {
			found = append(found, path)
		}
		return nil
	})
	return found
}
