//go:build prove

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// cacheWait is how long Kueue's manager waits for its caches before it ends: controller-runtime's default.
const cacheWait = 2 * time.Minute

const kueueNamespace = "--namespace=kueue-system"

// installKueue installs Kueue as its project ships it, but for the program, which is built here.
func (q queue) installKueue() {
	q.Helper()
	if v, err := q.Client.Discovery().ServerVersion(); err != nil || strings.HasPrefix(v.GitVersion, "v0.0.0") {
		q.Fatalf("Kubernetes has the version %v (%v), and Kueue ends without one: use the linker flags of the Makefile", v, err)
	}
	source, dir := local.Source(q, "foreign", "sigs.k8s.io/kueue"), q.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(source, "config"))); err != nil {
		q.Fatal(err)
	}
	write(q, filepath.Join(dir, "kustomization.yaml"), fmt.Sprintf(`
resources: [config/default]
patches:
  - target: {kind: Deployment, name: kueue-controller-manager}
    patch: |
      - {op: replace, path: /spec/template/spec/containers/0/command, value: [%q]}
`, local.Build(q, source, "cmd/kueue")))
	q.Kubectl("apply", "--namespace=", "--server-side", "-k", dir) // they are of two namespaces
	q.Cleanup(func() {
		if q.Failed() {
			q.Logf("Kueue's manager:\n%s", q.Try("", kueueNamespace, "logs", "deployment/kueue-controller-manager", "--tail=100").Stdout)
		}
	})
	q.managerIsReady()
}

// configureKueue changes the manager's configuration by pairs of an old text and a new one, and starts the manager again.
func (q queue) configureKueue(changes ...string) {
	q.Helper()
	const name, file = "kueue-manager-config", "controller_manager_config.yaml"
	shipped, err := q.Client.CoreV1().ConfigMaps("kueue-system").Get(q.Context(), name, metav1.GetOptions{})
	if err != nil {
		q.Fatal(err)
	}
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(shipped.Data[file], changes[i]) {
			q.Fatalf("Kueue's configuration has no %q:\n%s", changes[i], shipped.Data[file])
		}
	}
	shipped.Data[file] = strings.NewReplacer(changes...).Replace(shipped.Data[file])
	if _, err := q.Client.CoreV1().ConfigMaps("kueue-system").Update(q.Context(), shipped, metav1.UpdateOptions{}); err != nil {
		q.Fatal(err)
	}
	q.inKueue("rollout", "restart", "deployment/kueue-controller-manager")
	q.managerIsReady()
}

func (q queue) managerIsReady() {
	q.Helper()
	q.inKueue("rollout", "status", "deployment/kueue-controller-manager", "--timeout="+local.Timeout.String())
}

// inKueue runs kubectl in Kueue's namespace.
func (q queue) inKueue(args ...string) {
	q.Helper()
	q.Kubectl(append([]string{kueueNamespace}, args...)...)
}

// managerKeepsRunning waits until Kueue's manager has run for longer than it waits for its caches. Beside TrainJobs, one of them is of JobSets.
func (q queue) managerKeepsRunning() {
	q.Helper()
	q.Eventually("Kueue's manager keeps running", func() error {
		status, err := q.managerStatus()
		if err != nil {
			return err
		}
		if status.RestartCount > 0 || status.State.Running == nil {
			q.Fatalf("Kueue's manager has ended: %+v", status)
		}
		if ran := time.Since(status.State.Running.StartedAt.Time); ran < cacheWait+30*time.Second {
			return fmt.Errorf("it has run for %s", ran)
		}
		return nil
	})
}

func (q queue) managerStatus() (corev1.ContainerStatus, error) {
	pods, err := q.Client.CoreV1().Pods("kueue-system").List(q.Context(), metav1.ListOptions{})
	if err != nil {
		return corev1.ContainerStatus{}, err
	}
	if len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 {
		return corev1.ContainerStatus{}, fmt.Errorf("it has %d pods", len(pods.Items))
	}
	return pods.Items[0].Status.ContainerStatuses[0], nil
}

// applyWhenServed applies a manifest once Kueue's webhooks answer.
func (q queue) applyWhenServed(manifest string) {
	q.Helper()
	q.Eventually("the manifest is accepted", func() error {
		if o := q.Try(manifest, "apply", "-f", "-"); o.Code != 0 {
			return fmt.Errorf("%s", o.Stderr)
		}
		return nil
	})
}
