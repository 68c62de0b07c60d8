package cli_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/recorder"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// recorderName is what the test binary is called when it is to be a recorder in a process of its own, which can be killed.
const recorderName = "trainyard-test-recorder"

// recordAlone records the jobs of a cluster until the process is killed. The logs are those of the cluster's first node.
func recordAlone(kubeconfig, dataDir, store string) error {
	ctrl.SetLogger(klog.Background())
	ctx := context.Background()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	options, err := controller.Cache("")
	if err != nil {
		return err
	}
	if options.Scheme, err = controller.Scheme(); err != nil {
		return err
	}
	caches, err := cache.New(config, options)
	if err != nil {
		return err
	}
	r, err := recorder.New(record.Open(store), recorder.Sources{LogDir: func(string) string { return filepath.Join(dataDir, "kubelet", "logs") }})
	if err != nil {
		return err
	}
	if err := r.Watch(ctx, caches); err != nil {
		return err
	}
	go func() { _ = caches.Start(ctx) }()
	return r.Start(ctx)
}

// archive is a store with a recorder that can be killed.
type archive struct {
	desk
	store *record.Store
	cmd   *exec.Cmd
}

func (a *archive) start() {
	a.Helper()
	log, err := os.OpenFile(filepath.Join(a.store.Dir(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		a.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the process has its own copy
	a.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{recorderName, local.Shared(a.TB).Kubeconfig(), local.DataDir(a.TB), a.store.Dir()}, Env: os.Environ(), Stdout: log, Stderr: log,
	}
	if err := a.cmd.Start(); err != nil {
		a.Fatal(err)
	}
}

func (a *archive) kill() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// lines are what was recorded of each job of the namespace: numbers of lines, and -1 for a gap.
func (a *archive) lines() (byJob map[string][]int, total int) {
	a.Helper()
	byJob = map[string][]int{}
	all, err := a.store.Summaries()
	if err != nil {
		a.Fatal(err)
	}
	for _, s := range all {
		if s.Namespace != a.Namespace {
			continue
		}
		logs, err := a.store.Logs(s.Namespace, s.UID)
		if err != nil {
			a.Fatal(err)
		}
		for _, l := range logs {
			err := a.store.Lines(s.Namespace, s.UID, l, 0, func(line record.Line) bool {
				n, err := strconv.Atoi(strings.TrimPrefix(string(line.Text), "line "))
				if line.Gap || err != nil {
					n = -1
				}
				byJob[s.Name] = append(byJob[s.Name], n)
				return true
			})
			if err != nil {
				a.Fatal(err)
			}
		}
		total += len(byJob[s.Name])
	}
	return byJob, total
}

// reaches waits until a number of lines is recorded.
func (a *archive) reaches(want int) {
	a.Helper()
	a.Eventually(fmt.Sprintf("%d lines are recorded", want), func() error {
		if _, total := a.lines(); total < want {
			return fmt.Errorf("%d are", total)
		}
		return nil
	})
}

// TestEveryLineSurvivesAKilledRecorder kills the recorder at random moments while jobs write. Every line is recorded once, or a gap stands for it.
func TestEveryLineSurvivesAKilledRecorder(t *testing.T) {
	t.Parallel()
	const lines = 10_000
	jobs, kills := 3, 3
	if os.Getenv("TRAINYARD_PROVE") != "" {
		jobs, kills = 20, 50
	}
	random := rand.New(rand.NewSource(1))
	a := &archive{desk: newDesk(t), store: record.Open(t.TempDir())}
	stage := stage(local.Folder(t))
	chunk := lines / (kills + 1)
	// Each job writes a part of its lines after each cue, so that all of them write while the recorder is started and killed.
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do [ $((i %% %d)) != 0 ] || until [ -e %s/$((i / %[2]d)) ]; do sleep 0.1; done; echo line $i; i=$((i+1)); done", lines, chunk, string(stage))
	for i := range jobs {
		file := filepath.Join(t.TempDir(), "job.yaml")
		write(t, file, job(fmt.Sprint("j", i), 1, script))
		a.expect(a.types("submit", "-f", file), 0)
	}
	a.start()
	defer func() { a.kill() }()
	for k := range kills {
		_, before := a.lines()
		stage.give(t, strconv.Itoa(k))
		a.reaches(before + 1 + random.Intn(jobs*chunk/2))
		a.kill()
		a.start()
	}
	stage.give(t, strconv.Itoa(kills))
	stage.give(t, strconv.Itoa(kills+1)) // of the rest, if the parts are not equal
	a.Eventually("all jobs are recorded to their end", func() error {
		all, err := a.store.Summaries()
		complete := 0
		for _, s := range all {
			if s.Namespace == a.Namespace && s.Complete {
				complete++
			}
		}
		if err == nil && complete < jobs {
			err = fmt.Errorf("%d of %d are", complete, jobs)
		}
		return err
	})
	byJob, _ := a.lines()
	gaps := 0
	for name, got := range byJob {
		next := 0
		for _, n := range got {
			switch {
			case n < 0:
				gaps++
			case n == next:
				next++
			case n > next && gaps > 0:
				next = n + 1
			default:
				t.Fatalf("%s: line %d comes where line %d should", name, n, next)
			}
		}
		if next != lines && gaps == 0 {
			t.Errorf("%s: %d of %d lines are recorded", name, next, lines)
		}
	}
	t.Logf("%d jobs wrote %d lines each while the recorder was killed %d times: %d gaps", len(byJob), lines, kills, gaps)
	if len(byJob) != jobs || gaps > 0 { // the files are still there, so nothing may be missing
		t.Errorf("%d jobs have logs, and there are %d gaps", len(byJob), gaps)
	}
}
