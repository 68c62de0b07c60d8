package yard

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The statuses are as Kueue 0.19.2 writes them.
func TestWhatKueueSays(t *testing.T) {
	for _, row := range []struct{ sentence, workload, waits string }{
		{"Kueue has not seen it", `spec: {queueName: team}`, "waits for Kueue: Kueue has not looked at it yet"},
		{"the quota is used up", `
spec: {queueName: team, active: true}
status:
  conditions:
  - {type: QuotaReserved, status: "False", reason: Pending, message: "couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor default, 1 more needed"}
  - {type: Admitted, status: "False", reason: NoReservation, message: The workload has no reservation}`,
			"waits for Kueue: couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor default, 1 more needed"},
		{"the queue is missing", `
status: {conditions: [{type: QuotaReserved, status: "False", reason: Inadmissible, message: "LocalQueue team doesn't exist"}]}`,
			"waits for Kueue: LocalQueue team doesn't exist"},
		{"an admission check is pending", `
status:
  conditions: [{type: QuotaReserved, status: "True", reason: QuotaReserved, message: Quota reserved in ClusterQueue all}]
  admissionChecks: [{name: nodes, state: Pending, message: "Waiting for the ProvisioningRequest."}, {name: other, state: Ready}]`,
			"waits for Kueue: the admission check nodes is Pending: Waiting for the ProvisioningRequest"},
		{"it is admitted", `
status: {conditions: [{type: QuotaReserved, status: "True"}, {type: Admitted, status: "True"}]}`, "waits for Kueue"},
	} {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(row.workload), &obj.Object); err != nil {
			t.Fatal(err)
		}
		obj.SetKind("Workload")
		w := newWorkload(obj)
		if got := w.Waits(); got != row.waits || !w.Active {
			t.Errorf("%s: %q (active: %t), want %q", row.sentence, got, w.Active, row.waits)
		}
	}
	w := Workload{Queue: "team", Position: 2, Says: "no room."}
	if got, want := w.Waits(), "waits for Kueue: it is number 2 in the queue team; no room"; got != want {
		t.Errorf("in a queue: %q, want %q", got, want)
	}
	inactive := &unstructured.Unstructured{Object: map[string]any{"kind": "Workload", "spec": map[string]any{"active": false}}}
	if newWorkload(inactive).Active {
		t.Error("a Workload that is not active is taken as active")
	}
}
