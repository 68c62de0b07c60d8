package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// ordinaryUser is a user of no name and no rights.
const ordinaryUser = 61234

// usersTests are the tests that pass as well where an ordinary user runs them, on a cluster of their own.
var usersTests = []string{
	"TestPodRunsToItsEnd",
	"TestPodIsTheUserWhoStartedTheCluster",
	"TestPodThatMustNotBeRoot",
	"TestPodHasAnAddressAndAHostNameOfItsOwn",
	"TestTwoPodsListenOnTheSamePort",
	"TestPodReachesTheMachinesNetwork",
	"TestHeadlessServiceNamesItsPods",
	"TestServiceSpreadsConnections",
	"TestServiceCarriesUDP",
	"TestPodUsesTheAPIByItsServiceAccount",
	"TestVolumes",
	"TestKubectlLogs",
	"TestKubectlExec",
	"TestKubectlCp",
	"TestKubectlPortForward",
	"TestClusterThatWasKilledContinues",
	"TestClusterThatStopsLeavesNothing",
	"TestSeveralNodes",
}

func TestOrdinaryUserHasTheSame(t *testing.T) {
	t.Parallel()
	dir := userDir(t)
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.parallel=4", "-test.run=^("+strings.Join(usersTests, "|")+")$")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	}
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
	for _, name := range usersTests {
		if !bytes.Contains(output, []byte("--- PASS: "+name+" ")) {
			t.Errorf("%s has not passed", name)
		}
	}
}

// userDir is a directory of the ordinary user.
func userDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Getuid() == 0 {
		if err := os.Chown(dir, ordinaryUser, ordinaryUser); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPodIsTheUserWhoStartedTheCluster(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	dir := t.TempDir()
	pod := local.Pod("writes", "id -u; id -g; echo written > /results/file")
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "results", MountPath: "/results"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "results", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}}}
	w.Create(pod)
	w.UntilPhase("writes", corev1.PodSucceeded)
	if got, want := w.Logs("writes"), fmt.Sprintf("%d\n%d\n", os.Getuid(), os.Getgid()); got != want {
		t.Errorf("the pod's user and group are %q, not %q", got, want)
	}
	info, err := os.Stat(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Getuid() {
		t.Errorf("what it writes belongs to user %d", owner)
	}
}

func TestPodThatMustNotBeRoot(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	pod := local.Pod("careful", "id -u")
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true)}
	w.Create(pod)
	w.UntilPhase("careful", corev1.PodSucceeded)
	if who := w.Logs("careful"); who == "0\n" {
		t.Error("it is root")
	}
}

// Where neither root's nor a user's namespaces can be had, one sentence says so and what to do.
func TestRefusalWhereNamespacesAreForbidden(t *testing.T) {
	t.Parallel()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close() //nolint:errcheck // only read
	dir := userDir(t)
	// In a user namespace of its own a process may forbid itself and its children all namespaces.
	cmd := exec.Command("/usr/bin/python3", "-c", `
import os, sys
for kind in "user", "mnt", "pid", "net":
    with open(f"/proc/sys/user/max_{kind}_namespaces", "w") as limit: limit.write("0")
os.execv("/proc/self/fd/3", sys.argv[1:])`, local.CLI().Args[0], "up", "--data-dir", dir)
	cmd.Dir, cmd.ExtraFiles = dir, []*os.File{self}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		Credential:  &syscall.Credential{NoSetGroups: true},
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: userID(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: userID(), Size: 1}},
	}
	output, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ends with %v", err)
	}
	if got := string(output); strings.Count(got, "\n") != 1 ||
		!strings.HasPrefix(got, "trainyard: this machine does not let you create namespaces: as root, `sysctl user.max_user_namespaces=15000` allows them (") {
		t.Errorf("it says:\n%s", got)
	}
}

func userID() int {
	if os.Getuid() == 0 {
		return ordinaryUser
	}
	return os.Getuid()
}
