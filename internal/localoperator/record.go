package localoperator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/recorder"
)

// recordJobs records all jobs with the caches of the operator. What containers wrote last is recorded when they have ended. If the records
// cannot be read, jobs run without them.
func recordJobs(ctx context.Context, mgr ctrl.Manager, inside cluster.Inside) error {
	usage := func() map[types.NamespacedName]recorder.Use {
		uses := map[types.NamespacedName]recorder.Use{}
		for pod, use := range inside.Usage() {
			uses[pod] = recorder.Use(use)
		}
		return uses
	}
	r, err := recorder.New(record.Of(inside.DataDir), recorder.Sources{LogDir: inside.LogDir, Usage: usage})
	if err != nil {
		klog.ErrorS(err, "Jobs are not recorded")
		return nil
	}
	if err := r.Watch(ctx, mgr.GetCache()); err != nil {
		return fmt.Errorf("starting to record jobs: %w", err)
	}
	inside.OnStop(r.Drain)
	return mgr.Add(r)
}
