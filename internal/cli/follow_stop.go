package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long the API server may take to answer while a person waits for something else.
const patience = 5 * time.Second

// interrupt stops the job gracefully: its pods get their time to end.
func (f *follower) interrupt(ctx context.Context) {
	f.stopping = true
	f.tell("stopping", "stopping %s; Ctrl-C again stops it at once.", f.job.Job.Name)
	f.screen.keep(f.live())
	f.remove(ctx, patience)
}

// leaving tells whether the job is on its way to be stopped.
func (f *follower) leaving() bool { return f.stopping && !f.denied }

// remove has the job deleted. Where the API server does not answer, it is asked again at the next tick; where it does not let this
// person, the job goes on.
func (f *follower) remove(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f.yard.Remove(ctx, f.job)
	f.deleting = err == nil
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && !apierrors.IsServerTimeout(err) && !apierrors.IsTooManyRequests(err) {
		f.denied = true
		f.tell("error", "%s goes on: %v.", f.job.Job.Name, err)
	}
}

// atOnce kills what still runs. A pod that is taken from a kubelet without a second to end in has its containers ended as patiently
// as was said at first.
func (f *follower) atOnce() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f.killPods(ctx); err != nil {
		f.tell("error", "killing %s: %v", f.job.Job.Name, err)
	}
}

// killPods returns when the job and its pods are gone, or says why they are not.
func (f *follower) killPods(ctx context.Context) error {
	if !f.deleting {
		if err := f.yard.Remove(ctx, f.job); err != nil {
			return err
		}
	}
	pods, err := f.yard.Pods(ctx, f.job)
	if err != nil {
		return err
	}
	soon := int64(1)
	var failed []error
	for i := range pods {
		failed = append(failed, client.IgnoreNotFound(f.yard.Delete(ctx, &pods[i], &client.DeleteOptions{GracePeriodSeconds: &soon})))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	left := len(pods)
	if wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		pods, err := f.yard.Pods(ctx, f.job)
		if err == nil {
			left = len(pods)
		}
		return err == nil && left == 0, nil
	}) != nil {
		return fmt.Errorf("%d of its pods have not ended", left)
	}
	return nil
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
