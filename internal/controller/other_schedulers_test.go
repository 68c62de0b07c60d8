//go:build prove

package controller_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// Coscheduling and Volcano, built from their modules, place gangs that fit one at a time, as kube-scheduler does in
// TestTwoGangsThatFitOneAtATime. A gang that does not fit says why, and a member that comes back alone gets a place.
func TestOtherSchedulers(t *testing.T) {
	for _, row := range []struct {
		name, module string
		definitions  string // below the module
		arguments    func(t *testing.T, source, kubeconfig string) []string
		prepare      func(*world)
	}{
		{manifest.GangCoscheduling, "sigs.k8s.io/scheduler-plugins", "manifests/coscheduling/crd.yaml", coschedulingArguments, func(*world) {}},
		{manifest.GangVolcano, "volcano.sh/volcano", "config/crd/volcano/bases", volcanoArguments, (*world).openQueue},
	} {
		t.Run(row.name, func(t *testing.T) {
			program, source := local.Tool(t, "schedulers", row.module+"/cmd/scheduler"), local.Source(t, "schedulers", row.module)
			w := worldOn(t, local.Start(t, cluster.Options{}))
			w.Kubectl("apply", "--server-side", "-f", filepath.Join(source, row.definitions))
			run(t, program, row.arguments(t, source, w.Kubeconfig())...)
			row.prepare(w)
			w.operateWith(func(o *controller.Options) { o.GangScheduler = row.name })
			w.twoGangs(w.places(4), 5)
			w.tooLarge()
			w.oneReturns()
		})
	}
}

// coschedulingArguments are those of a second scheduler, configured as its documentation says.
func coschedulingArguments(t *testing.T, _, kubeconfig string) []string {
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	config := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s}
profiles:
- schedulerName: %s
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
  pluginConfig: [{name: Coscheduling, args: {permitWaitingTimeSeconds: 10}}]
`, kubeconfig, manifest.GangCoscheduling)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// Coscheduling does not look again at a gang that did not fit when pods have ended, but after this time: five minutes if nobody says it.
	return []string{"--config=" + file, "--secure-port=0", "--pod-max-in-unschedulable-pods-duration=5s"}
}

// volcanoArguments are those of Volcano's scheduler with the configuration that its chart ships.
func volcanoArguments(_ *testing.T, source, kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, "--scheduler-conf=" + filepath.Join(source, "installer/helm/chart/volcano/config/volcano-scheduler.conf"),
		"--leader-elect=false", "--cache-dumper=false",
	}
}

// openQueue does what Volcano's controller would do: it opens the queue that the scheduler has created.
func (w *world) openQueue() {
	w.Helper()
	w.Eventually("Volcano's queue is open", func() error {
		o := w.Try("", "patch", "queues.scheduling.volcano.sh", "default", "--subresource=status", "--type=merge", "-p", `{"status":{"state":"Open"}}`)
		if o.Code != 0 {
			return errors.New(o.Stderr)
		}
		return nil
	})
}

// run runs a program until the test ends. Its output is shown if the test has failed.
func run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	var output lockedText
	cmd := exec.Command(program, arguments...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", program, output.last(5000))
		}
	})
}

// lockedText collects what two streams write.
type lockedText struct {
	sync.Mutex
	text []byte
}

var _ io.Writer = &lockedText{}

func (l *lockedText) Write(more []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	l.text = append(l.text, more...)
	return len(more), nil
}

func (l *lockedText) last(n int) string {
	l.Lock()
	defer l.Unlock()
	return string(l.text[max(0, len(l.text)-n):])
}

// tooLarge submits a gang for which there will never be room: no pod of it gets a place, and its message quotes the scheduler.
func (w *world) tooLarge() {
	w.Helper()
	j := w.submit(gang(5, "true", asGang("large", w.places(4), "")))
	s := j.until("says why it waits", func(s kubeflowv1.JobStatus) bool { return strings.Contains(s.Message, "places: ") })
	if !strings.HasPrefix(s.Message, "waits for 6 of 6 places: ") {
		w.Errorf("the message is %q", s.Message)
	}
	w.t.Logf("a gang that is too large: %s", s.Message)
}
