package yard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Remove asks the API server to delete a job after its children. Another job with the same name stays.
func (y *Yard) Remove(ctx context.Context, j *Job) error {
	uid := j.Job.UID
	err := y.Delete(ctx, j.Object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting job %s: %w", j.Job.Name, err)
	}
	return nil
}

// ErrHeld says that a deleted job still exists.
var ErrHeld = errors.New("is deleted, but still there")

// AwaitGone returns when a deleted job is gone with its children. If ctx ends first, the error says what holds the job.
func (y *Yard) AwaitGone(ctx context.Context, j *Job, contact func(answers bool)) error {
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, err := y.Follow(following, j, contact)
	if err != nil {
		return err
	}
	for {
		select {
		case j = <-changes:
			if j.Gone {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("job %s %w: %s", j.Job.Name, ErrHeld, holders(j.Object.GetFinalizers()))
		}
	}
}

// holders says what a deleted object waits for.
func holders(finalizers []string) string {
	others := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == metav1.FinalizerDeleteDependents })
	if len(others) == 0 {
		return "its pods have not ended"
	}
	return "its finalizers hold it, " + strings.Join(others, ", ")
}
