package yard

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Workload is Kueue's object for a job in one of its queues. Kueue, and nobody else, suspends and resumes the job by it: it undoes what others
// write into the job.
type Workload struct {
	object *unstructured.Unstructured
	// Queue is the local queue, Position the place in it from 1 on, 0 if that is not known.
	Queue    string
	Position int
	// Active says that Kueue may admit the job. If not, somebody has suspended it in Kueue.
	Active bool
	// Says is why Kueue has not admitted the job, in its own words.
	Says string
}

// labelJobUID of a Workload is the UID of its job.
const labelJobUID = "kueue.x-k8s.io/job-uid"

// AskKueue gives the jobs that are in a queue of Kueue their Workloads. A cluster without Kueue has none, and a person may have no right to
// see them.
func (y *Yard) AskKueue(ctx context.Context, jobs ...*Job) error {
	byNamespace := map[string]map[types.UID]*Job{}
	for _, j := range jobs {
		if j.Job.Queue == "" || j.Gone || j.Recorded != nil || j.Status.Finished() {
			continue
		}
		if byNamespace[j.Job.Namespace] == nil {
			byNamespace[j.Job.Namespace] = map[types.UID]*Job{}
		}
		byNamespace[j.Job.Namespace][j.Job.UID] = j
	}
	for namespace, queued := range byNamespace {
		list, err := y.workloads(ctx, namespace)
		if err != nil {
			return fmt.Errorf("asking Kueue about the jobs in namespace %s: %w", namespace, err)
		}
		for i := range list {
			if j := queued[types.UID(list[i].GetLabels()[labelJobUID])]; j != nil {
				j.Kueue = newWorkload(&list[i])
			}
		}
		y.askPositions(ctx, namespace, queued)
	}
	return nil
}

// workloads are Kueue's objects in a namespace.
func (y *Yard) workloads(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	mapping, err := y.RESTMapper().RESTMapping(schema.GroupKind{Group: "kueue.x-k8s.io", Kind: "Workload"})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind("WorkloadList"))
	if err := y.List(ctx, list, client.InNamespace(namespace)); err != nil && !isUnavailable(err) {
		return nil, err
	}
	return list.Items, nil
}

// newWorkload reads what matters of a Workload. Of its conditions, QuotaReserved says what is missing until the quota suffices. Then
// admission checks may remain.
func newWorkload(obj *unstructured.Unstructured) *Workload {
	var w struct {
		Spec struct {
			QueueName string
			Active    *bool
		}
		Status struct {
			Conditions      []metav1.Condition
			AdmissionChecks []struct{ Name, State, Message string }
		}
	}
	if text, err := obj.MarshalJSON(); err == nil {
		_ = json.Unmarshal(text, &w) // what cannot be read is left out
	}
	out := &Workload{object: obj, Queue: w.Spec.QueueName, Active: w.Spec.Active == nil || *w.Spec.Active}
	reserved := meta.FindStatusCondition(w.Status.Conditions, "QuotaReserved")
	switch {
	case reserved == nil:
		out.Says = "Kueue has not looked at it yet"
	case reserved.Status != metav1.ConditionTrue:
		out.Says = reserved.Message
	case !meta.IsStatusConditionTrue(w.Status.Conditions, "Admitted"):
		for _, check := range w.Status.AdmissionChecks {
			if check.State != "Ready" {
				out.Says = strings.TrimSuffix(fmt.Sprintf("the admission check %s is %s: %s", check.Name, check.State, check.Message), ": ")
			}
		}
	}
	return out
}

// askPositions asks Kueue's own API for the places of Workloads in their queues. Clusters without that API, and people without the right to
// use it, learn the rest.
func (y *Yard) askPositions(ctx context.Context, namespace string, queued map[types.UID]*Job) {
	positions := map[string]map[string]int{} // by queue and Workload
	for _, j := range queued {
		w := j.Kueue
		if w == nil || !w.Active || !j.Job.Policy.Suspend {
			continue
		}
		if positions[w.Queue] == nil {
			positions[w.Queue] = y.positions(ctx, namespace, w.Queue)
		}
		w.Position = positions[w.Queue][w.object.GetName()]
	}
}

func (y *Yard) positions(ctx context.Context, namespace, queue string) map[string]int {
	positions := map[string]int{}
	for _, version := range []string{"v1beta2", "v1beta1"} {
		text, err := y.Core.Discovery().RESTClient().Get().MaxRetries(0).
			AbsPath("/apis/visibility.kueue.x-k8s.io", version, "namespaces", namespace, "localqueues", queue, "pendingworkloads").DoRaw(ctx)
		var pending struct {
			Items []struct {
				Metadata             metav1.ObjectMeta
				PositionInLocalQueue int
			}
		}
		if err != nil || json.Unmarshal(text, &pending) != nil {
			continue
		}
		for _, item := range pending.Items {
			positions[item.Metadata.Name] = item.PositionInLocalQueue + 1
		}
		break
	}
	return positions
}

// Waits says what a job waits for that Kueue has not admitted.
func (w *Workload) Waits() string {
	var parts []string
	if w.Position > 0 {
		parts = append(parts, fmt.Sprintf("it is number %d in the queue %s", w.Position, w.Queue))
	}
	if w.Says != "" {
		parts = append(parts, strings.TrimRight(w.Says, ". \n"))
	}
	if len(parts) == 0 {
		return "waits for Kueue"
	}
	return "waits for Kueue: " + strings.Join(parts, "; ")
}

// suspendInKueue suspends or resumes a job that is in a queue of Kueue, by its Workload.
func (y *Yard) suspendInKueue(ctx context.Context, j *Job, suspend bool) (changed bool, _ error) {
	if j.Kueue.Active == suspend {
		return true, y.activate(ctx, j.Kueue, !suspend)
	}
	if !suspend && j.Job.Policy.Suspend {
		return false, fmt.Errorf("job %s %s; Kueue starts it, and `resume` cannot", j.Job.Name, j.Kueue.Waits())
	}
	return false, nil
}

// activate lets Kueue admit the job of a Workload, or not. Kueue evicts a job that it may no longer admit.
func (y *Yard) activate(ctx context.Context, w *Workload, active bool) error {
	patch := fmt.Sprintf(`{"spec":{"active":%t}}`, active)
	err := y.Patch(ctx, w.object, client.RawPatch(types.MergePatchType, []byte(patch)))
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; Kueue decides when the job runs, so you need the right to patch its workload", err)
	}
	if err != nil {
		return fmt.Errorf("editing the workload %s of Kueue: %w", w.object.GetName(), err)
	}
	return nil
}
