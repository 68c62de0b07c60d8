package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestDeployment(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: none, command: [sh, -c, "echo version $VERSION; exec sleep 600"], env: [{name: VERSION, value: "1"}]}]
`)
	rolled := func() { w.Kubectl("rollout", "status", "deployment/web", "--timeout=100s") }
	rolled()
	t.Run("is scaled", func(t *testing.T) {
		w.Kubectl("scale", "deployment/web", "--replicas=3")
		w.Await("3/3", "get", "deployment", "web")
		w.Kubectl("scale", "deployment/web", "--replicas=1")
		w.Await("1/1", "get", "deployment", "web")
	})
	t.Run("rolls to a new version and back", func(t *testing.T) {
		w.Kubectl("set", "env", "deployment/web", "VERSION=2")
		rolled()
		w.Await("version 2", "logs", "deployment/web")
		w.Kubectl("rollout", "undo", "deployment/web")
		rolled()
		w.Await("version 1", "logs", "deployment/web")
	})
	t.Run("replaces a pod that was deleted", func(t *testing.T) {
		before := w.Kubectl("get", "pods", "-o", "name", "-l", "app=web")
		w.Kubectl("delete", "pods", "-l", "app=web", "--now")
		rolled()
		if after := w.Kubectl("get", "pods", "-o", "name", "-l", "app=web"); after == before || after == "" {
			t.Errorf("the pods are %s", after)
		}
	})
	t.Run("goes with its pods", func(t *testing.T) {
		w.Kubectl("delete", "deployment", "web")
		w.Eventually("no pod is left", func() error {
			if left := w.Kubectl("get", "pods", "-o", "name"); left != "" {
				return fmt.Errorf("there are %s", left)
			}
			return nil
		})
	})
}

func TestStatefulSet(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(`
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: none, command: [sh, -c, "hostname -f; exec sleep 600"]}]
`)
	w.Kubectl("rollout", "status", "statefulset/db", "--timeout=100s")
	for _, name := range []string{"db-0", "db-1"} {
		if got := w.Logs(name); !strings.HasPrefix(got, name+".db.") {
			t.Errorf("%s is called %s", name, got)
		}
	}
	before := w.Get("db-1").UID
	w.Kubectl("delete", "pod", "db-1", "--now")
	w.Eventually("db-1 comes again", func() error {
		if got := w.Try("", "get", "pod", "db-1", "-o", "jsonpath={.metadata.uid} {.status.phase}").Stdout; got == "" ||
			strings.Contains(got, string(before)) || !strings.HasSuffix(got, "Running") {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func TestJobs(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	job := func(name, spec, script string) string {
		return fmt.Sprintf(`
---
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  %s
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: none, command: [sh, -c, %q]}]
`, name, spec, script)
	}
	w.Apply(job("all", "completions: 4\n  parallelism: 2\n  completionMode: Indexed", "echo I am $JOB_COMPLETION_INDEX") +
		job("hopeless", "backoffLimit: 0", "exit 1") +
		job("late", "activeDeadlineSeconds: 1", "sleep 600") +
		job("brief", "ttlSecondsAfterFinished: 0", "true"))
	t.Run("run to their completions", func(t *testing.T) {
		w.Kubectl("wait", "--for=condition=Complete", "job/all", "--timeout=100s")
		if got := w.Kubectl("get", "job", "all", "-o", "jsonpath={.status.succeeded} {.status.completedIndexes}"); got != "4 0-3" {
			t.Errorf("it has completed %s", got)
		}
	})
	t.Run("fail at their backoff limit", func(t *testing.T) {
		w.Kubectl("wait", "--for=condition=Failed", "job/hopeless", "--timeout=100s")
		w.Await("BackoffLimitExceeded", "get", "job", "hopeless", "-o", "yaml")
	})
	t.Run("fail at their deadline", func(t *testing.T) {
		w.Kubectl("wait", "--for=condition=Failed", "job/late", "--timeout=100s")
		w.Await("DeadlineExceeded", "get", "job", "late", "-o", "yaml")
	})
	t.Run("go when their time to live is over", func(t *testing.T) {
		w.Kubectl("wait", "--for=delete", "job/brief", "--timeout=100s")
	})
	t.Run("are made by a CronJob", func(t *testing.T) {
		w.Kubectl("create", "cronjob", "nightly", "--image=none", "--schedule=0 3 * * *", "--", "echo", "good night")
		w.Kubectl("create", "job", "now", "--from=cronjob/nightly")
		w.Kubectl("wait", "--for=condition=Complete", "job/now", "--timeout=100s")
		if got := w.Kubectl("logs", "job/now"); got != "good night\n" {
			t.Errorf("it says %q", got)
		}
	})
}

func TestAutoscalerFollowsTheCPU(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	quiet := t.TempDir()
	w.Apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: busy}
spec:
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      terminationGracePeriodSeconds: 0
      volumes: [{name: quiet, hostPath: {path: %s}}]
      containers:
      - name: main
        image: none
        command: [sh, -c, "while [ ! -e /quiet/please ]; do :; done; exec sleep 600"]
        volumeMounts: [{name: quiet, mountPath: /quiet}]
        resources: {requests: {cpu: 50m}, limits: {cpu: 100m}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: busy}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  minReplicas: 1
  maxReplicas: 2
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
`, quiet))
	w.Await("2/2", "get", "deployment", "busy")
	if err := os.WriteFile(filepath.Join(quiet, "please"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w.Await("1/1", "get", "deployment", "busy")
	w.Await("SuccessfulRescale", "events", "--for", "hpa/busy")
}
