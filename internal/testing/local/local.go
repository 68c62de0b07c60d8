// Package local gives tests a real cluster: one for all tests of a package, and a namespace for each.
//
// A package's TestMain calls Main; a test calls New. What a test does to the cluster it does as a person would, by kubectl,
// which is this same test binary run again, or by client-go.
package local

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/cli"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/mpiagent"
)

// cliName is what the test binary is called when it is to be the command line.
const cliName = "trainyard-test"

// Timeout is how long a test waits for what must happen. It is generous: the machines are slow and shared.
const Timeout = 4 * time.Minute

// Main runs a package's tests and stops the cluster that they used.
func Main(m *testing.M, addons ...cluster.Addon) {
	mpiagent.Main()
	cluster.Main(addons...)
	if os.Args[0] == cliName {
		os.Exit(cli.Run(append([]string{"trainyard"}, os.Args[1:]...)))
	}
	if dir := os.Getenv(bareServer); dir != "" {
		serveBare(dir)
	}
	hasOperator = slices.ContainsFunc(addons, func(a cluster.Addon) bool { return a.Name == cli.OperatorAddon })
	_ = flag.Set("test.parallel", "8") // tests of a cluster wait more than they compute; the command line may say otherwise
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// hasOperator says that the operator runs in the clusters of this test binary.
var hasOperator bool

// shared is the cluster of this test binary, started by the first test that asks for it.
var shared struct {
	sync.Mutex
	cluster *cluster.Cluster
	dir     string
}

// Shared is the cluster of this test binary.
func Shared(t testing.TB) *cluster.Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster != nil {
		return shared.cluster
	}
	dir, err := os.MkdirTemp("", "trainyard-test-")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Start(context.Background(), cluster.Options{DataDir: dir, AuditLog: filepath.Join(dir, "audit.log"), GraceLimit: time.Second})
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "cluster.log"))
		t.Fatalf("starting the local cluster: %v\n%s", err, tail(string(log), 30))
	}
	shared.cluster, shared.dir = c, dir
	return c
}

// Start starts a cluster for one test. It is stopped when the test ends.
func Start(t testing.TB, options cluster.Options) *cluster.Cluster {
	t.Helper()
	if options.DataDir == "" {
		options.DataDir = t.TempDir()
	}
	options.GraceLimit = time.Second
	c, err := cluster.Start(context.Background(), options)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(options.DataDir, "cluster.log"))
		t.Fatalf("starting the local cluster: %v\n%s", err, tail(string(log), 30))
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Errorf("stopping the local cluster: %v", err)
		}
	})
	return c
}

// DataDir is the shared cluster's folder.
func DataDir(t testing.TB) string {
	Shared(t)
	return shared.dir
}

// Folder is one for pods to write into. It goes with the shared cluster, and not with the test: a container that is restarted while
// a test ends would make it again.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(DataDir(t), "folder-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// AuditLog is the file in which the shared cluster's API server notes each request.
func AuditLog(t testing.TB) string { return filepath.Join(DataDir(t), "audit.log") }

func stopShared() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := shared.cluster.Stop(ctx)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(shared.dir, "cluster.log"))
		err = fmt.Errorf("stopping the local cluster: %w\n%s", err, tail(string(log), 30))
	}
	if removeErr := os.RemoveAll(shared.dir); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}

// World is a namespace of a cluster that belongs to one test.
type World struct {
	testing.TB
	Namespace string
	Config    *rest.Config
	Client    kubernetes.Interface

	kubeconfig string
}

// New makes a namespace for a test on the shared cluster. It goes when the test ends.
func New(t testing.TB) *World {
	t.Helper()
	return On(t, Shared(t))
}

// On makes a namespace for a test on a given cluster.
func On(t testing.TB, c *cluster.Cluster) *World {
	t.Helper()
	return At(t, c.Kubeconfig())
}

// At makes a namespace for a test on the cluster that a kubeconfig leads to.
func At(t testing.TB, kubeconfig string) *World {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	w := &World{TB: t, Config: config, kubeconfig: kubeconfig}
	w.Client = kubernetes.NewForConfigOrDie(w.Config)
	ctx := context.Background()
	ns, err := w.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespaceName(t)}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	w.Namespace = ns.Name
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the namespace at the end:\n%s", w.describe())
			w.pause()
		}
		now := int64(0)
		_ = w.Client.CoreV1().Pods(w.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
		_ = w.Client.CoreV1().Namespaces().Delete(ctx, w.Namespace, metav1.DeleteOptions{})
	})
	w.Eventually("the default service account", func() error {
		_, err := w.Client.CoreV1().ServiceAccounts(w.Namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return w
}

// pauseVariable names the variable that says how long a failed test waits before its namespace is deleted.
const pauseVariable = "TRAINYARD_TEST_PAUSE"

// pause lets a person look inside the cluster of a failed test.
func (w *World) pause() {
	d, err := time.ParseDuration(os.Getenv(pauseVariable))
	if err != nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s has failed and waits %s. Its cluster's log is %s. To look inside:\nexport KUBECONFIG=%s\ntrainyard kubectl --namespace %s get all\n",
		w.Name(), d, filepath.Join(filepath.Dir(w.kubeconfig), "cluster.log"), w.kubeconfig, w.Namespace)
	time.Sleep(d)
}

var notOfNames = regexp.MustCompile(`[^a-z0-9]+`)

// namespaceName begins a namespace's name with the test's.
func namespaceName(t testing.TB) string {
	name := notOfNames.ReplaceAllString(strings.ToLower(t.Name()), "-")
	return name[:min(len(name), 40)] + "-"
}

// Kubeconfig is the file that leads to the cluster.
func (w *World) Kubeconfig() string { return w.kubeconfig }

// Eventually waits until check returns no error. A check that takes long, as one that runs kubectl does, is repeated less often: many
// tests wait at the same time, and their checks must not take the machine from what they wait for.
func (w *World) Eventually(what string, check func() error) {
	w.Helper()
	for deadline := time.Now().Add(Timeout); ; {
		began := time.Now()
		err := check()
		if err == nil {
			return
		}
		if began.After(deadline) {
			w.Fatalf("%s: %v", what, err)
		}
		time.Sleep(min(max(2*time.Since(began), 100*time.Millisecond), time.Second))
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
