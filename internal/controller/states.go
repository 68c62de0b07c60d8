package controller

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/metrics"
)

// states lists all jobs in the cache by their newest condition. What cannot be listed is left out: a number that is
// missing is noticed, an error at each scrape is only noise. A standby lists none, so that a sum over all operators counts each job once.
func states(mgr ctrl.Manager, kinds []kinds.Kind, now func() time.Time) metrics.States {
	return metrics.States{Now: now, List: func() []metrics.State {
		select {
		case <-mgr.Elected():
		default:
			return nil
		}
		var all []metrics.State
		for _, kind := range kinds {
			list, err := listOf(kind.New(), kind.GroupVersion().WithKind(kind.Name()), mgr.GetScheme())
			if err != nil || mgr.GetCache().List(context.Background(), list, client.UnsafeDisableDeepCopy) != nil {
				continue
			}
			_ = meta.EachListItem(list, func(item runtime.Object) error {
				all = append(all, stateOf(kind, item.(manifest.Object)))
				return nil
			})
		}
		return all
	}}
}

func stateOf(kind kinds.Kind, obj manifest.Object) metrics.State {
	s := metrics.State{Namespace: obj.GetNamespace(), Framework: kind.Framework(), State: "New"}
	conditions := kind.Conditions(obj)
	if len(conditions) > 0 {
		s.State = string(conditions[len(conditions)-1].Type)
	}
	if slices.Contains([]string{"New", string(job.Created), string(job.Restarting)}, s.State) {
		s.Waiting = obj.GetCreationTimestamp().Time
		for _, c := range conditions { // a job that was suspended waits since it was resumed
			if c.LastTransitionTime.After(s.Waiting) {
				s.Waiting = c.LastTransitionTime.Time
			}
		}
	}
	return s
}
