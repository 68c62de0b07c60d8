package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/yard"
)

const (
	// ActionTimeout is how long the cluster may take. A job that runs again is deleted first, which takes its pods' grace period.
	ActionTimeout = 2 * time.Minute
	// recordTimeout is how long an action waits until its new job is in the record. The page shows nothing before that.
	recordTimeout = 10 * time.Second
)

// done is the answer to an action: a sentence, and the job to look at now, if it is another.
type done struct {
	Said string    `json:"said"`
	UID  types.UID `json:"uid,omitempty"`
}

// action changes a job of the cluster. The job is the recorded one if the cluster no longer has it.
type action func(ctx context.Context, y *yard.Yard, j *yard.Job, r *http.Request) (done, error)

// errGone says that a job cannot be changed because it is deleted.
var errGone = errors.New("is deleted: only its record is left")

// act answers a request to change a job. It is finished even if the browser does not wait: half of an action would lose a job.
func (j *jobs) act(do action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found, ok := j.find(w, r)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), ActionTimeout)
		defer cancel()
		y, present, err := j.present(ctx, found)
		var result done
		if err == nil {
			result, err = do(ctx, y, present, r)
		}
		if err != nil {
			http.Error(w, sentence(err), codeOf(err))
			return
		}
		answer(w, result)
	}
}

// errStopped says that there is no cluster to change.
var errStopped = errors.New("the local cluster is not running: `trainyard up` starts it")

// open connects to the cluster with the rights of the person of a request.
func (j *jobs) open(ctx context.Context) (*yard.Yard, error) {
	if c := callerOf(ctx); c != nil {
		return j.cluster.Open(c.token)
	}
	return j.cluster.Open("")
}

// present is a recorded job as the cluster has it now, or the recorded one if another job has its name or none has.
func (j *jobs) present(ctx context.Context, found *yard.Job) (*yard.Yard, *yard.Job, error) {
	if !j.cluster.Running() {
		return nil, nil, errStopped
	}
	y, err := j.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	y.Namespace = found.Job.Namespace
	now, err := y.Find(ctx, strings.ToLower(found.Kind.Name())+"/"+found.Job.Name)
	if errors.Is(err, yard.ErrNotFound) || err == nil && now.Job.UID != found.Job.UID {
		return y, found, nil
	}
	return y, now, err
}

// suspend suspends or resumes a job.
func suspend(yes bool) action {
	return func(ctx context.Context, y *yard.Yard, j *yard.Job, _ *http.Request) (done, error) {
		word := "suspended"
		if !yes {
			word = "resumed"
		}
		if j.Recorded != nil {
			return done{}, fmt.Errorf("job %s %w", j.Job.Name, errGone)
		}
		_, err := y.Suspend(ctx, j, yes)
		return done{Said: fmt.Sprintf("%s is %s.", j.Job.Name, word)}, err
	}
}

// scale changes the number of replicas of a role.
func scale(ctx context.Context, y *yard.Yard, j *yard.Job, r *http.Request) (done, error) {
	text := r.URL.Query().Get("replicas")
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return done{}, yard.BadInput{Err: fmt.Errorf("%q is not a number of replicas: use 1 or more, or suspend the job", text)}
	}
	if j.Recorded != nil {
		return done{}, fmt.Errorf("job %s %w", j.Job.Name, errGone)
	}
	return done{Said: fmt.Sprintf("%s is scaled to %d.", j.Job.Name, n)}, y.Scale(ctx, j, r.URL.Query().Get("role"), int32(n))
}

// remove deletes a job with its pods. It does not wait for them.
func remove(ctx context.Context, y *yard.Yard, j *yard.Job, _ *http.Request) (done, error) {
	if j.Recorded != nil {
		return done{}, fmt.Errorf("job %s %w", j.Job.Name, errGone)
	}
	return done{Said: fmt.Sprintf("%s is being deleted.", j.Job.Name)}, y.Remove(ctx, j)
}

// again submits a job once more.
func (j *jobs) again(ctx context.Context, y *yard.Yard, old *yard.Job, _ *http.Request) (done, error) {
	fresh, err := y.Again(ctx, old)
	if err != nil {
		return done{}, err
	}
	j.awaitRecord(ctx, fresh.Job.UID)
	return done{Said: fmt.Sprintf("%s runs again.", fresh.Job.Name), UID: fresh.Job.UID}, nil
}

// awaitRecord returns when a job is in the record, or after recordTimeout.
func (j *jobs) awaitRecord(ctx context.Context, uid types.UID) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	tick := time.NewTicker(lookInterval / 5)
	defer tick.Stop()
	for {
		all, err := j.yard.Past.Summaries()
		if err != nil || indexOf(all, uid) >= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// codeOf is the status of an answer that reports an error.
func codeOf(err error) int {
	var bad yard.BadInput
	switch {
	case errors.As(err, &bad), apierrors.IsInvalid(err):
		return http.StatusUnprocessableEntity
	case errors.Is(err, yard.ErrNotFinished), errors.Is(err, yard.ErrOver), errors.Is(err, errGone), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return http.StatusConflict
	case apierrors.IsForbidden(err):
		return http.StatusForbidden
	case apierrors.IsUnauthorized(err):
		return http.StatusUnauthorized
	case errors.Is(err, errStopped), utilnet.IsConnectionRefused(err):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// sentence is an error as a page shows it.
func sentence(err error) string {
	if utilnet.IsConnectionRefused(err) {
		err = errStopped
	}
	first, size := utf8.DecodeRuneInString(err.Error())
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(err.Error()[size:], ".") + "."
}

// role is a role that can be scaled.
type role struct {
	Name     string `json:"name"`
	Replicas int32  `json:"replicas"`
}

// choices are what can be done to a job as it was recorded: the actions, and the roles that can be scaled.
func (j *jobs) choices(found *yard.Job, s record.Summary) (actions []string, roles []role) {
	actions, roles = []string{}, []role{}
	switch {
	case !j.cluster.Running():
		return actions, roles
	case !s.Deleted.IsZero():
		return append(actions, "again"), roles
	case found.Job.Deleting:
		return actions, roles
	case found.Status.Finished():
		return append(actions, "again", "delete"), roles
	case found.Job.Policy.Suspend:
		actions = append(actions, "resume")
	default:
		actions = append(actions, "suspend")
	}
	for _, name := range found.Scalable() {
		for _, r := range found.Job.Roles {
			if strings.EqualFold(name, r.Name) {
				roles = append(roles, role{name, found.Job.Size(r)})
			}
		}
	}
	if len(roles) > 0 {
		actions = append(actions, "scale")
	}
	return append(actions, "delete"), roles
}
