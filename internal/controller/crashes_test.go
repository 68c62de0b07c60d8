package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// operatorName is what the test binary is called when it is to be an operator of its own.
const operatorName = "trainyard-test-operator"

// A job that fails once is charged once, at whichever of its requests the operator is killed. Each moment between two
// requests leaves the cluster in another state; together they are all the states a crash can leave behind.
func TestRetriesAreCountedOnceWhereverTheOperatorDies(t *testing.T) {
	t.Parallel()
	for _, life := range []struct {
		sentence string
		writes   int
		job      func(leader, worker string) client.Object
	}{
		{"a gang restarts as one", 13, func(leader, worker string) client.Object {
			return pytorch(roles{"Master": running(1, leader), "Worker": running(1, worker)})
		}},
		{"a replica restarts alone", 10, func(leader, worker string) client.Object {
			tf := tensorflow(roles{"Chief": running(1, leader), "Worker": running(1, worker)})
			tf.Spec.TFReplicaSpecs["Worker"].RestartPolicy = kubeflowv1.RestartPolicyExitCode
			return tf
		}},
	} {
		for n := 1; n <= life.writes; n++ {
			t.Run(fmt.Sprintf("%s, killed before request %d", life.sentence, n), func(t *testing.T) {
				t.Parallel()
				runs := filepath.Join(t.TempDir(), "runs")
				leader := fmt.Sprintf(`until test $(cat %s | wc -l) = 2; do sleep 0.2; done; sleep 3`, runs)
				worker := fmt.Sprintf(`echo run >> %[1]s; test $(wc -l < %[1]s) = 1 && exit 137; sleep 600`, runs)
				w := withoutOperator(t)
				deaths := w.operateOutside(n)
				s := w.submit(life.job(leader, worker)).becomes(kubeflowv1.JobSucceeded)
				w.Eventually("the operator was killed", func() error { // the last requests follow the end
					if deaths() != 1 {
						return fmt.Errorf("it was killed %d times", deaths())
					}
					return nil
				})
				if n := count(t, runs); s.Retries != 1 || s.Disruptions != 0 || n != 2 {
					t.Errorf("the worker ran %d times, and the status is\n%s", n, describe(s))
				}
			})
		}
	}
}

// An elastic job that is scaled up while a worker fails starts each worker as often as it should, and is charged once, at whichever of
// its requests the operator is killed.
func TestScalingIsDoneOnceWhereverTheOperatorDies(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 10; n++ {
		t.Run(fmt.Sprintf("killed before request %d", n), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			runs := filepath.Join(dir, "runs")
			script := fmt.Sprintf(`cd %s; case $HOSTNAME in
				*-0) until test $(cat runs 2>/dev/null | wc -l) -ge 3; do sleep 0.2; done; touch done;;
				*-1) echo run >> runs; mkdir failed 2>/dev/null && exit 137;;
				*-2) echo run >> runs;;
				esac; until test -f done; do sleep 0.2; done`, dir)
			w := withoutOperator(t)
			deaths := w.operateOutside(n)
			j := w.submit(pytorch(roles{"Worker": running(2, script)}, func(pj *kubeflowv1.PyTorchJob) {
				pj.Spec.PyTorchReplicaSpecs["Worker"].RestartPolicy = kubeflowv1.RestartPolicyExitCode
				pj.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{MinReplicas: new(int32(1)), MaxReplicas: new(int32(3))}
			}))
			w.Kubectl("scale", "pytorchjob", j.name, "--replicas=3")
			s := j.becomes(kubeflowv1.JobSucceeded)
			w.Eventually("the operator was killed", func() error {
				if deaths() != 1 {
					return fmt.Errorf("it was killed %d times", deaths())
				}
				return nil
			})
			if n := count(t, runs); s.Retries != 1 || s.Disruptions != 0 || s.Attempt != 0 || n != 3 {
				t.Errorf("workers 1 and 2 ran %d times, and the status is\n%s", n, describe(s))
			}
		})
	}
}

// count is the number of lines in a file.
func count(t *testing.T, file string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// operateOutside runs the operator as a process, and starts it again when it has died, as a Deployment does. The first is
// killed by SIGKILL at its nth request that changes something. It returns the number of deaths so far.
func (w *world) operateOutside(n int) (deaths func() int32) {
	ctx, cancel := context.WithCancel(context.Background())
	var died atomic.Int32
	over := make(chan struct{})
	go func() {
		defer close(over)
		for at := n; ctx.Err() == nil; at = 0 {
			cmd := exec.CommandContext(ctx, "/proc/self/exe")
			cmd.Args, cmd.Env = []string{operatorName, w.Namespace, fmt.Sprint(at)}, w.Command().Env
			if _ = cmd.Run(); ctx.Err() == nil {
				died.Add(1)
			}
		}
	}()
	w.stop = func() { cancel(); <-over }
	return died.Load
}

// operateUntilDeath is the operator as a process of its own.
func operateUntilDeath(namespace, dieAt string) int {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var last int32
	_, _ = fmt.Sscan(dieAt, &last)
	var writes atomic.Int32
	cfg.WrapTransport = transport.Wrappers(cfg.WrapTransport, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/events") && writes.Add(1) == last {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {} // the signal may take a moment
			}
			return next.RoundTrip(r)
		})
	})
	mgr, err := newOperator(cfg, namespace, prometheus.NewRegistry())
	if err == nil {
		err = mgr.Start(ctrl.SetupSignalHandler())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
