package cli

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// interrupt stops the job gracefully: its pods get their time to end.
func (f *follower) interrupt(ctx context.Context) {
	f.stopping = true
	f.tell("stopping", "stopping %s; Ctrl-C again stops it at once.", f.job.Job.Name)
	f.screen.keep(f.live())
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	uid := f.job.Job.UID
	err := f.yard.Delete(ctx, f.job.Object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if client.IgnoreNotFound(err) != nil {
		f.tell("error", "stopping %s: %v", f.job.Job.Name, err)
	}
}

// dead tells whether the local cluster has ended.
func (f *follower) dead() bool {
	select {
	case <-f.died:
		return true
	default:
		return false
	}
}

// patience is how long the API server may take to answer while a person waits for something else.
const patience = 5 * time.Second

// atOnce kills what still runs. A pod that is taken from a kubelet without a second to end in has its containers ended as patiently
// as was said at first.
func (f *follower) atOnce() {
	if !f.stop {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	soon := int64(1)
	pods, err := f.yard.Pods(ctx, f.job)
	for i := range pods {
		err = client.IgnoreNotFound(f.yard.Delete(ctx, &pods[i], &client.DeleteOptions{GracePeriodSeconds: &soon}))
	}
	if err != nil {
		f.tell("error", "killing %s: %v", f.job.Job.Name, err)
		return
	}
	_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		left, err := f.yard.Pods(ctx, f.job)
		return err == nil && len(left) == 0, nil
	})
}
