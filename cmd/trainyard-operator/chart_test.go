//go:build prove

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// TestTheChartOnACluster lets Helm itself install, upgrade and uninstall the chart on a cluster with a node. Two operators run there as
// pods, under the ServiceAccount and with the rights that the chart gives them. A job trains all the time.
func TestTheChartOnACluster(t *testing.T) {
	r := newRelease(t)
	r.helm("install", "--set=replicas=2")
	r.startJob("long", "until test -f "+r.folder+"/finish; do sleep 0.1; done")
	r.awaitState("long", kubeflowv1.JobRunning)
	trains := r.Get("long-master-0").UID
	r.onlyTheLeaderCountsJobs()

	before := r.fleet.leader()
	r.Kubectl("exec", podOf(before), "--", "sh", "-c", "kill -9 -1") // all processes of the container but its first, which ends with them
	r.fleet.within(5*time.Second, "a killed leader is replaced", before)
	r.startJob("after-kill", "true")
	r.awaitState("after-kill", kubeflowv1.JobSucceeded)
	r.awaitOperators(2)

	before = r.fleet.leader()
	r.Kubectl("delete", "pod", podOf(before), "--wait=false")
	r.fleet.within(3*time.Second, "a leader that stops in order is replaced", before) // the lease of a killed one lasts that long
	r.awaitOperators(2)

	r.upgradeDefinitions()
	r.helm("upgrade", "--set=replicas=2,controllerThreads=4")
	r.startJob("after-upgrade", "true")
	r.awaitState("after-upgrade", kubeflowv1.JobSucceeded)

	r.helm("uninstall")
	r.awaitOperators(0)
	if pod := r.Get("long-master-0"); pod.UID != trains || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
		t.Errorf("the pod of a running job did not stay: it is %s, of UID %s, was %s", pod.Status.Phase, pod.UID, trains)
	}
	if job := r.job("long"); job.Status.Restarts != 0 {
		t.Errorf("the job that trained all the time was restarted %d times", job.Status.Restarts)
	}
}

// release is the chart on a cluster of its own.
type release struct {
	*local.World
	fleet                     fleet
	helmProgram, postRenderer string
	folder, chart             string // that all users can read
}

func newRelease(t *testing.T) *release {
	t.Helper()
	folder, err := os.MkdirTemp("", "trainyard-chart-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // the operator runs as another user, and reads its program there
		t.Fatal(err)
	}
	operator := filepath.Join(folder, "trainyard-operator")
	output(t, "go", "build", "-o", operator, ".")
	r := &release{
		World: local.On(t, local.Start(t, cluster.Options{})), folder: folder,
		helmProgram: output(t, "go", "-C", "../../internal/testing/helm", "tool", "-n", "helm"),
	}
	r.fleet = fleet{T: t, config: r.Config, namespace: r.Namespace}
	scheme, err := controller.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if r.fleet.client, err = client.New(r.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	r.writePostRenderer(operator)
	r.copyChart()
	return r
}

// copyChart copies the chart without the versions of Kubernetes that it is for: the API server of a test binary has none.
func (r *release) copyChart() {
	r.Helper()
	r.chart = filepath.Join(r.folder, "chart")
	if err := os.CopyFS(r.chart, os.DirFS("../../charts/trainyard")); err != nil {
		r.Fatal(err)
	}
	file := filepath.Join(r.chart, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		r.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^kubeVersion: .*\n`).ReplaceAll(text, nil)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		r.Fatal(err)
	}
}

// writePostRenderer writes the program through which Helm sends its manifests. A local pod has no image: the operator that was just built
// becomes its command. And its readiness is looked at more often, so that the test waits less.
func (r *release) writePostRenderer(operator string) {
	r.Helper()
	r.postRenderer = filepath.Join(r.folder, "post-renderer")
	script := fmt.Sprintf(`#!/bin/sh
exec sed -e 's|^\( *\)image: trainyard-operator:.*|&\n\1command: [%s]|' -e 's|^\( *\)readinessProbe:|&\n\1  periodSeconds: 1|'
`, operator)
	if err := os.WriteFile(r.postRenderer, []byte(script), 0o755); err != nil { //nolint:gosec // Helm runs it
		r.Fatal(err)
	}
}

// output runs a program, which must succeed, and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// helm lets Helm do something to the release and waits until its pods are ready, or gone.
func (r *release) helm(verb string, args ...string) {
	r.Helper()
	all := []string{verb, "trainyard"}
	if verb != "uninstall" {
		all = append(all, r.chart, "--post-renderer="+r.postRenderer)
	}
	cmd := exec.CommandContext(r.Context(), r.helmProgram, append(append(all, "--namespace="+r.Namespace, "--wait", "--timeout="+local.Timeout.String()), args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.Kubeconfig(), "HELM_CACHE_HOME="+r.folder, "HELM_CONFIG_HOME="+r.folder, "HELM_DATA_HOME="+r.folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("helm %s: %v\n%s\n%s", verb, err, out, r.operatorLogs())
	}
}

func (r *release) operatorLogs() string {
	return r.Try("", "logs", "-l", operatorLabel, "--prefix", "--tail=20").Stdout
}

const operatorLabel = "app.kubernetes.io/name=trainyard-operator"

// operators are the operator's pods that are ready.
func (r *release) operators() []string {
	r.Helper()
	var pods corev1.PodList
	if err := r.fleet.client.List(r.Context(), &pods, client.InNamespace(r.Namespace), client.MatchingLabels{"app.kubernetes.io/name": "trainyard-operator"}); err != nil {
		r.Fatal(err)
	}
	var names []string
	for _, pod := range pods.Items {
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if ready && pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

func (r *release) awaitOperators(n int) {
	r.Helper()
	r.Eventually(fmt.Sprintf("%d operators are ready", n), func() error {
		if names := r.operators(); len(names) != n {
			return fmt.Errorf("they are %q\n%s", names, r.operatorLogs())
		}
		return nil
	})
}

// podOf is the pod of the operator that a lease names: its host and a UUID.
func podOf(holder string) string {
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}

// onlyTheLeaderCountsJobs checks that a sum over all operators counts each job once.
func (r *release) onlyTheLeaderCountsJobs() {
	r.Helper()
	line := fmt.Sprintf(`trainyard_jobs{framework="pytorch",job_namespace=%q,state="Running"} 1`, r.Namespace)
	r.Eventually("the leader counts the job, and the standby has other metrics", func() error {
		leader, metrics := podOf(r.fleet.leader()), map[string]string{}
		for _, pod := range r.operators() {
			metrics[pod] = r.Kubectl("get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/metrics", r.Namespace, pod))
			if strings.Contains(metrics[pod], "trainyard_jobs{") && pod != leader {
				r.Fatalf("%s counts jobs, though the leader is %s", pod, leader)
			}
		}
		if len(metrics) != 2 || !strings.Contains(metrics[leader], line) {
			return fmt.Errorf("the metrics of the leader %s are\n%s", leader, metrics[leader])
		}
		return nil
	})
}

// upgradeDefinitions checks that both documented ways replace the definition of an older version. Helm never does.
func (r *release) upgradeDefinitions() {
	r.Helper()
	const definition, field = "pytorchjobs.kubeflow.org", "openAPIV3Schema/properties/status/properties/avoidNodes"
	for what, upgrade := range map[string]func() local.Outcome{
		"kubectl apply": func() local.Outcome {
			return r.Try("", "apply", "--server-side", "--force-conflicts", "-f", r.chart+"/crds")
		},
		"trainyard install": func() local.Outcome {
			cmd := local.CLI("install", "--crds-only", "--kubeconfig="+r.Kubeconfig())
			out, _ := cmd.CombinedOutput()
			return local.Outcome{Stderr: string(out), Code: cmd.ProcessState.ExitCode()}
		},
	} {
		r.Kubectl("patch", "crd", definition, "--type=json", "-p", fmt.Sprintf(`[{"op": "remove", "path": %q}]`, "/spec/versions/0/schema/"+field))
		if o := upgrade(); o.Code != 0 {
			r.Fatalf("%s: %s", what, o.Stderr)
		}
		path := "jsonpath={.spec.versions[0].schema." + strings.ReplaceAll(field, "/", ".") + ".type}"
		if found := r.Kubectl("get", "crd", definition, "-o", path); found != "array" {
			r.Errorf("%s has not brought the field back: it is %q", what, found)
		}
	}
}

func (r *release) startJob(name, script string) {
	r.Helper()
	r.Apply(fmt.Sprintf(`
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: %s}
spec:
  pytorchReplicaSpecs:
    Master:
      template:
        spec:
          containers: [{name: pytorch, image: none, command: [sh, -c, %q]}]
`, name, script))
}

func (r *release) job(name string) *kubeflowv1.PyTorchJob {
	r.Helper()
	job := &kubeflowv1.PyTorchJob{}
	if err := r.fleet.client.Get(r.Context(), client.ObjectKey{Namespace: r.Namespace, Name: name}, job); err != nil {
		r.Fatal(err)
	}
	return job
}

func (r *release) awaitState(name string, want kubeflowv1.JobConditionType) {
	r.Helper()
	r.Eventually(fmt.Sprintf("job %s is %s", name, want), func() error {
		conditions := r.job(name).Status.Conditions
		if n := len(conditions); n == 0 || conditions[n-1].Type != want {
			return fmt.Errorf("its conditions are %+v\n%s", conditions, r.operatorLogs())
		}
		return nil
	})
}
