package yard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/manifest"
)

// BadInput says that a person asked for something that a job cannot have.
type BadInput struct{ Err error }

func (b BadInput) Error() string { return b.Err.Error() }

// Unwrap is the error itself.
func (b BadInput) Unwrap() error { return b.Err }

// ErrOver says that a job can no longer be changed.
var ErrOver = errors.New("there is nothing to")

// Editable refuses to edit a job that has ended or is being deleted.
func (j *Job) Editable(verb string) error {
	switch {
	case j.Job.Deleting:
		return fmt.Errorf("job %s is being deleted: %w %s", j.Job.Name, ErrOver, verb)
	case j.Status.Finished():
		return fmt.Errorf("job %s has ended: %w %s", j.Job.Name, ErrOver, verb)
	}
	return nil
}

// Suspend stops a job's pods and keeps the job, or lets it run again. It reports whether this changed the job.
func (y *Yard) Suspend(ctx context.Context, j *Job, suspend bool) (changed bool, _ error) {
	verb := "suspend"
	if !suspend {
		verb = "resume"
	}
	if err := j.Editable(verb); err != nil {
		return false, err
	}
	if err := y.AskKueue(ctx, j); err != nil {
		return false, err
	}
	if j.Kueue != nil {
		return y.suspendInKueue(ctx, j, suspend)
	}
	if j.Job.Policy.Suspend == suspend {
		return false, nil
	}
	was := j.Object.DeepCopyObject().(client.Object)
	j.Kind.Suspend(j.Object, suspend)
	return true, y.Patch(ctx, j.Object, client.MergeFrom(was))
}

// Scale sets the number of replicas of a role; an empty one is the role that trains.
func (y *Yard) Scale(ctx context.Context, j *Job, role string, n int32) error {
	if err := j.Editable("scale"); err != nil {
		return err
	}
	was := j.Object.DeepCopyObject().(client.Object)
	name, ok := j.Kind.Resize(j.Object, role, n)
	if !ok {
		return BadInput{Err: fmt.Errorf("%s has no role %s to scale: it has %s", j.Job.Name, cmp.Or(role, "worker"), strings.Join(j.Scalable(), ", "))}
	}
	if e := j.Job.Elastic; e != nil && strings.EqualFold(name, e.Role) && (n < e.Min || n > e.Max) {
		return BadInput{Err: fmt.Errorf("%s can have %d to %d replicas of %s", j.Job.Name, e.Min, e.Max, e.Role)}
	}
	return y.Patch(ctx, j.Object, client.MergeFrom(was))
}

// Scalable lists the roles that can be scaled.
func (j *Job) Scalable() (names []string) {
	for _, r := range j.Job.Roles {
		if _, ok := j.Kind.Resize(j.Object.DeepCopyObject().(manifest.Object), r.Name, r.Replicas); ok {
			names = append(names, strings.ToLower(r.Name))
		}
	}
	return names
}
