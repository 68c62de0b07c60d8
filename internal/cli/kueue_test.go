package cli_test

import (
	"fmt"
	"strings"
	"testing"
)

// Kueue would undo what a person writes into a job of its queues: the verbs ask it instead. Kueue itself does not run here. Its object exists, with
// a definition of the test.
func TestKueueDecidesWhenAJobRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Apply(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workloads.kueue.x-k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: kueue.x-k8s.io
  scope: Namespaced
  names: {kind: Workload, plural: workloads}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)
	queued := strings.NewReplacer("{name: demo}", "{name: demo, labels: {kueue.x-k8s.io/queue-name: team}}", "backoffLimit: 1", "suspend: true").Replace(job("demo", 1, "true"))
	d.Apply(queued)
	d.expect(d.types("wait", "demo", "--for=suspended"), 0)
	d.expect(d.types("get"), 0, `Kueue has not admitted the job to the queue team`)
	workload := fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: demo, labels: {kueue.x-k8s.io/job-uid: %s}}
spec: {queueName: team}
status: {conditions: [{type: QuotaReserved, status: "False", message: insufficient unused quota for cpu in flavor default}]}
`, d.Kubectl("get", "pytorchjob", "demo", "-o", "jsonpath={.metadata.uid}"))
	d.Eventually("the Workload is created", func() error {
		if o := d.Try(workload, "apply", "-f", "-"); o.Code != 0 {
			return fmt.Errorf("%s", o.Stderr)
		}
		return nil
	})
	const waits = "waits for Kueue: insufficient unused quota for cpu in flavor default"
	d.expect(d.types("why", "demo"), 0, `^demo has been suspended for \d+s and `+waits+`\. Kueue starts it\.$`)
	d.expect(d.types("get", "-o", "wide"), 0, waits)
	d.refuses(d.types("resume", "demo"), 1, waits+"; Kueue starts it, and `resume` cannot")
	active := func(want string) {
		t.Helper()
		if got := d.Kubectl("get", "workloads.kueue.x-k8s.io", "demo", "-o", "jsonpath={.spec.active}"); got != want {
			t.Errorf("the Workload is active: %q, want %q", got, want)
		}
	}
	d.expect(d.types("suspend", "demo"), 0, `^demo is suspended, and Kueue does not admit it\.$`)
	active("false")
	d.expect(d.types("suspend", "demo"), 0, `^demo is suspended already\.$`)
	d.expect(d.types("why", "demo"), 0, "`trainyard resume demo .*` starts it again")
	d.expect(d.types("resume", "demo"), 0, `^demo is resumed: Kueue starts it when the queue team has room\.$`)
	active("true")

	somebody := d.person(t, "reader", `- {apiGroups: [kubeflow.org], resources: ["*"], verbs: [get, list, patch]}
- {apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [get, list]}`)
	d.refuses(finish(d, somebody("suspend", "demo")), 1, "Kueue decides when the job runs, so you need the right to patch its workload")
	if suspended := d.Kubectl("get", "pytorchjob", "demo", "-o", "jsonpath={.spec.runPolicy.suspend}"); suspended != "true" {
		t.Errorf("the job itself was edited: suspend is %q", suspended)
	}
}
