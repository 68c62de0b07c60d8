package cli_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/record/s3"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// archiveName is what the test binary is called when it is to be trainyard-recorder.
const archiveName = "trainyard-test-archive"

// bucket is a real server of S3's protocol, which can refuse everything.
type bucket struct {
	*httptest.Server
	refuses atomic.Bool
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("records"); err != nil {
		t.Fatal(err)
	}
	b, handler := &bucket{}, gofakes3.New(backend).Server()
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.refuses.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(b.Close)
	t.Cleanup(b.CloseClientConnections)
	return b
}

func (b *bucket) address() string { return "s3://records/cluster?region=us-east-1&endpoint=" + b.URL }

// store reads the bucket with an empty disk.
func (b *bucket) store(t *testing.T) *record.Store {
	t.Helper()
	store, err := s3.OpenStore(b.address(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// runsArchive starts trainyard-recorder as a process.
func runsArchive(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: append([]string{archiveName}, args...), Stdout: t.Output(), Stderr: t.Output(), Env: os.Environ(),
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd
}

// asRecorder is a kubeconfig with the rights that the chart gives the recorder, and no others.
func (w team) asRecorder(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../charts/trainyard/templates/recorder-rights.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("\nrules:\n"))
	text, _, _ = bytes.Cut(text, []byte("\n---"))
	var rules []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict(text, &rules); err != nil || len(rules) < 4 {
		t.Fatalf("the chart's rights are %v, %v", rules, err)
	}
	config, err := clientcmd.LoadFromFile(w.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: w.person("recorder", true, append(rules, may("", "namespaces", "get"))...)}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTheRecorderOfACluster lets trainyard-recorder follow logs by the API server and keep them in S3. It is killed and loses its disk while jobs write, and S3 fails
// for a while. Every line is in the bucket once, also those of a container that is restarted in its pod and of a pod that is deleted.
func TestTheRecorderOfACluster(t *testing.T) {
	t.Parallel()
	const lines, kills = 1000, 2
	bucket := newBucket(t)
	a := &archive{desk: newDesk(t), store: bucket.store(t)}
	random := rand.New(rand.NewSource(1))
	stage := stage(local.Folder(t))
	chunk := lines / (kills + 1)
	count := fmt.Sprintf("i=0; while [ $i -lt %d ]; do [ $((i %% %d)) != 0 ] || until [ -e %s/$((i / %[2]d)) ]; do sleep 0.1; done; echo line $i; i=$((i+1)); done", lines, chunk, string(stage))
	file := filepath.Join(t.TempDir(), "job.yaml")
	for name, script := range map[string]string{
		"plain":     count,
		"restarted": "mkdir " + string(stage) + "/fallen 2> /dev/null && { echo line 0; exit 1; }; " + count,
		"deleted":   count + "; sleep 600",
	} {
		write(t, file, job(name, 1, script))
		a.expect(a.types("submit", "-f", file), 0)
	}
	kubeconfig := team{World: a.World}.asRecorder(t)
	var dir string
	start := func() {
		if dir == "" || random.Intn(2) == 0 {
			dir = t.TempDir() // as on another node
		}
		a.cmd = runsArchive(t, "--kubeconfig="+kubeconfig, "--namespace="+a.Namespace, "--store="+bucket.address(), "--dir="+dir, "--health-probe-bind-address=0")
	}
	local := func() *archive {
		store, err := s3.OpenStore(bucket.address(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return &archive{desk: a.desk, store: store}
	}
	start()
	for k := range kills {
		stage.give(t, strconv.Itoa(k))
		local().reaches(k*3*chunk + 1 + random.Intn(2*chunk))
		a.kill()
		start()
	}
	stage.give(t, strconv.Itoa(kills))
	stage.give(t, strconv.Itoa(kills+1))
	local().reaches(3*lines + 1)
	bucket.refuses.Store(true)
	a.expect(a.types("delete", "deleted"), 0)
	a.Eventually("the deletion is recorded while the bucket does not answer", func() error {
		all, err := record.Open(dir).Summaries()
		for _, s := range all {
			if s.Name == "deleted" && s.Complete {
				return nil
			}
		}
		return fmt.Errorf("%+v, %w", all, err)
	})
	bucket.refuses.Store(false)
	a.Eventually("all jobs are in the bucket to their end", func() error {
		all, err := a.store.Summaries()
		complete := 0
		for _, s := range all {
			if s.Complete {
				complete++
			}
		}
		if err == nil && complete < 3 {
			err = fmt.Errorf("%d of 3 are: %+v", complete, all)
		}
		return err
	})
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("the recorder that is stopped ends with %v", err)
	}
	byJob, _ := a.lines()
	for name, got := range byJob {
		if name == "restarted" && len(got) > 0 && got[0] == 0 {
			got = got[1:] // of its first run
		}
		if n := len(got); name == "deleted" && n > lines && got[n-1] < 0 {
			got = got[:n-1] // kubelet may have removed the log before it was known to be at its end
		}
		for i, n := range got {
			if n != i {
				t.Fatalf("%s: line %d is where line %d should be (-1 is a gap)", name, n, i)
			}
		}
		if len(got) != lines {
			t.Errorf("%s: %d of %d lines are recorded", name, len(got), lines)
		}
	}
	if len(byJob) != 3 {
		t.Errorf("%d jobs have logs", len(byJob))
	}
	if all, err := a.store.Summaries(); err != nil || all[0].NamespaceUID == "" {
		t.Errorf("the namespace is not recorded: %+v, %v", all, err)
	}
}
