package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/yard"
)

func submitCommand() *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:     "submit [-f job.yaml | flags -- command …]",
		Aliases: []string{"apply"},
		Short:   "Submit a job and return",
		Long: `Submit a job, with the other objects of its file, and return. A finished job with the same name is deleted first. The
flags and the command are those of run. ` + "`trainyard attach`" + ` follows the job, ` + "`trainyard run`" + ` submits and follows it.`,
		Example: `  trainyard submit --nodes 2 -- python train.py
  trainyard submit -f job.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return r.submitOnly(cmd, args) },
	}
	addFile(cmd, &r.file, "the manifest")
	addTarget(cmd, &r.target)
	cmd.Flags().AddFlagSet(r.flags())
	cmd.Flags().SetNormalizeFunc(otherNames)
	return cmd
}

func (r *running) submitOnly(cmd *cobra.Command, command []string) error {
	objects, kind, err := r.objects(cmd, command)
	if err != nil {
		return err
	}
	y, err := r.open()
	if err != nil {
		return err
	}
	if err := r.checkCommand(command, r.local); err != nil {
		return err
	}
	r.screen = newScreen(cmd.OutOrStdout(), cmd.ErrOrStderr())
	return r.submitTo(cmd.Context(), cmd, y, kind, objects)
}

// submitTo submits the objects and says how to follow the job.
func (r *running) submitTo(ctx context.Context, cmd *cobra.Command, y *yard.Yard, kind kinds.Adapter, objects []*unstructured.Unstructured) error {
	j, err := r.submit(ctx, y, kind, objects)
	if err != nil {
		return r.explain(err)
	}
	out := &printer{Writer: cmd.OutOrStdout()}
	out.printf("%s %s is submitted. Follow it with %s.\n", j.Kind.Name(), j.Job.Name, hint(y, j, "attach"))
	return out.err
}

// runDetached submits the job and returns. The local cluster is started in the background if it does not run.
func (r *running) runDetached(ctx context.Context, cmd *cobra.Command, kind kinds.Adapter, objects []*unstructured.Unstructured) error {
	if err := r.checkFlags(); err != nil {
		return err
	}
	open := r.open
	if !r.named() {
		open = func() (*yard.Yard, error) { return r.openInBackground(ctx) }
	}
	y, err := open()
	if err != nil {
		return err
	}
	return r.submitTo(ctx, cmd, y, kind, objects)
}

// localTTL is how long the local cluster keeps a finished job that was made from a command: else its disk fills up.
const localTTL = 7 * 24 * time.Hour

// submit creates the objects on the cluster. A finished job with the same name is deleted first.
func (r *running) submit(ctx context.Context, y *yard.Yard, kind kinds.Adapter, objects []*unstructured.Unstructured) (*yard.Job, error) {
	job := objects[len(objects)-1]
	bundle, prefix, err := r.bringCode(job)
	if err != nil {
		return nil, err
	}
	if r.local {
		if r.file == "" && !r.ttl.isSet() {
			if err := unstructured.SetNestedField(job.Object, int64(localTTL/time.Second), "spec", "runPolicy", "ttlSecondsAfterFinished"); err != nil {
				return nil, fmt.Errorf("setting how long the finished job is kept: %w", err)
			}
		}
		r.reportUnusedGPUs(ctx, y)
	}
	for _, obj := range objects {
		if namespaced, err := y.IsObjectNamespaced(obj); obj.GetNamespace() == "" && (namespaced || err != nil) {
			obj.SetNamespace(y.Namespace)
		}
	}
	y.Namespace = job.GetNamespace()
	for _, obj := range objects[:len(objects)-1] {
		if err := y.Apply(ctx, obj); err != nil {
			return nil, usageIfInvalid(err)
		}
	}
	if err := r.checkPriority(ctx, y); err != nil {
		return nil, err
	}
	submitted, err := createJob(ctx, y, kind, job)
	if apierrors.IsAlreadyExists(err) {
		old, removeErr := y.RemoveFinished(ctx, kind, job.GetName())
		if errors.Is(removeErr, yard.ErrNotFinished) {
			return nil, fmt.Errorf("%w: follow it with %s, or delete it with %s", removeErr, hint(y, old, "attach"), hint(y, old, "delete"))
		}
		if removeErr != nil {
			return nil, removeErr
		}
		if r.screen != nil && r.output != "json" {
			r.screen.say("» the finished job %s was deleted first.", job.GetName())
		}
		submitted, err = createJob(ctx, y, kind, job)
	}
	switch {
	case apierrors.IsInvalid(err):
		return submitted, usageIfInvalid(err)
	case err != nil:
		return nil, fmt.Errorf("submitting the job: %w", err)
	case bundle == nil:
		return submitted, nil
	}
	if err := sendCode(ctx, y, submitted, bundle, prefix); err != nil {
		return nil, err
	}
	return submitted, nil
}

// checkPriority refuses a PriorityClass that does not exist: the API server would accept the job, and none of its pods. People who may
// not read the classes find out later.
func (r *running) checkPriority(ctx context.Context, y *yard.Yard) error {
	if r.priority == "" {
		return nil
	}
	if _, err := y.Core.SchedulingV1().PriorityClasses().Get(ctx, r.priority, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return usageError{fmt.Errorf("--priority %s: there is no such PriorityClass; `kubectl get priorityclasses` lists them", r.priority)}
	}
	return nil
}

// createJob submits a job. If ctx ends during the request, it waits a little for the answer: a job that was created must be deleted.
func createJob(ctx context.Context, y *yard.Yard, kind kinds.Adapter, job *unstructured.Unstructured) (*yard.Job, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(requestTimeout, cancel) })()
	return y.Submit(longer, kind, job.DeepCopy())
}

// usageIfInvalid makes it a usage error that the API server does not accept a manifest.
func usageIfInvalid(err error) error {
	if apierrors.IsInvalid(err) {
		return usageError{err}
	}
	return err
}
