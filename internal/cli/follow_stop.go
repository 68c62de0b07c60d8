package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/job"
)

// requestTimeout is how long a request may take that a person did not ask for.
const requestTimeout = 5 * time.Second

// interrupt handles a stop signal. It returns an error if the follower ends with it. A job is deleted only if a person asked for that:
// SIGTERM comes from a shutdown or a time limit, too.
func (f *follower) interrupt(ctx context.Context, s os.Signal) error {
	switch {
	case f.stopping && kills(s):
		f.killed = true
		f.kill()
		return outcome(exitInterrupted)
	case kills(s) && !f.leaves(s):
		f.stop(ctx)
		return nil
	}
	if !f.stopping {
		f.reportLeft()
	}
	f.endsNow = endsNow(s)
	return exitCode(s)
}

// leaves reports whether a signal of a person or of the machine does not delete the job.
func (f *follower) leaves(s os.Signal) bool {
	if s == syscall.SIGTERM {
		return f.keeps
	}
	return f.detaches
}

// reportLeft says how the job goes on without the follower.
func (f *follower) reportLeft() {
	if !f.own {
		f.report("detached", "%s keeps running: %s follows it again, %s stops it.", f.job.Job.Name, hint(f.yard, f.job, "attach"), hint(f.yard, f.job, "delete"))
		return
	}
	goesOn := "continues the job"
	if slices.ContainsFunc(f.job.Job.Roles, func(r job.Role) bool { return r.RestartPolicy == job.RestartNever }) {
		goesOn = "starts it again. The job then fails, because its restartPolicy is Never (--retries sets another)"
	}
	up := strings.Join(append([]string{"trainyard", "up"}, f.yard.TargetFlags...), " ")
	f.report("detached", "%s is not deleted: the local cluster stops with this run, and `%s` %s.", f.job.Job.Name, up, goesOn)
}

// stop stops the job gracefully: its pods get their grace period.
func (f *follower) stop(ctx context.Context) {
	f.stopping = true
	f.report("stopping", "stopping %s; Ctrl-C again kills it.", f.job.Job.Name)
	f.screen.setLive(f.live())
	f.deleteJob(ctx, requestTimeout)
}

// stops reports whether the job is being stopped.
func (f *follower) stops() bool { return f.stopping && !f.denied }

// deleteJob asks the API server to delete the job. If the server does not answer, the next tick asks again. If it refuses, the job
// goes on.
func (f *follower) deleteJob(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f.yard.Remove(ctx, f.job)
	f.deleting = err == nil
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && !apierrors.IsServerTimeout(err) && !apierrors.IsTooManyRequests(err) {
		f.denied = true
		f.report("error", "%s keeps running: %v.", f.job.Job.Name, err)
	}
}

// kill deletes the pods with a grace period of one second. With zero, kubelet would still grant the containers the grace period of the
// first deletion.
func (f *follower) kill() {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if err := f.killPods(ctx); err != nil {
		f.report("error", "killing %s: %v", f.job.Job.Name, err)
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
	gracePeriod := int64(1)
	var failed []error
	for i := range pods {
		failed = append(failed, client.IgnoreNotFound(f.yard.Delete(ctx, &pods[i], &client.DeleteOptions{GracePeriodSeconds: &gracePeriod})))
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

// clusterEnded reports whether the local cluster has ended.
func (f *follower) clusterEnded() bool {
	select {
	case <-f.clusterDone:
		return true
	default:
		return false
	}
}
