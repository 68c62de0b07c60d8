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
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/yard"
)

func submitCommand() *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:   "submit -f job.yaml",
		Short: "Submit a job and leave it to the cluster",
		Long: `Submit a job, with the other objects of its file, and leave it to the cluster. A finished job of the same name makes
room for it. ` + "`trainyard run`" + ` also follows it.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.submitOnly(cmd) },
	}
	addFile(cmd, &r.file, "the manifest")
	addTarget(cmd, &r.target)
	return cmd
}

func (r *running) submitOnly(cmd *cobra.Command) error {
	objects, kind, err := objectsOf(cmd, r.file)
	if err != nil {
		return err
	}
	y, err := r.open()
	if err != nil {
		return err
	}
	j, err := r.submit(cmd.Context(), y, kind, objects)
	if err != nil {
		return r.explain(err)
	}
	out := &printer{Writer: cmd.OutOrStdout()}
	out.printf("%s %s is submitted. Follow it with %s.\n", j.Kind.Name(), j.Job.Name, storyOf(j, time.Now()).Command("logs", "-f"))
	return out.err
}

// submit gives the objects to the cluster. A finished job of the same name makes room.
func (r *running) submit(ctx context.Context, y *yard.Yard, kind kinds.Kind, objects []*unstructured.Unstructured) (*yard.Job, error) {
	job := objects[len(objects)-1]
	if r.local {
		if err := localize(job); err != nil {
			return nil, err
		}
	}
	for _, obj := range objects {
		if namespaced, err := y.IsObjectNamespaced(obj); obj.GetNamespace() == "" && (namespaced || err != nil) {
			obj.SetNamespace(y.Namespace)
		}
	}
	y.Namespace = job.GetNamespace()
	for _, obj := range objects[:len(objects)-1] {
		if err := y.Apply(ctx, obj); err != nil {
			return nil, err
		}
	}
	submitted, err := y.Submit(ctx, kind, job.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		if err := makeRoom(ctx, y, job.GetName()); err != nil {
			return nil, err
		}
		if r.screen != nil && r.output != "json" {
			r.screen.say("» the finished job %s made room.", job.GetName())
		}
		submitted, err = y.Submit(ctx, kind, job.DeepCopy())
	}
	if err != nil && !apierrors.IsInvalid(err) {
		return nil, fmt.Errorf("submitting the job: %w", err)
	}
	return submitted, refusedJob(err)
}

// makeRoom deletes a finished job and waits until it is gone.
func makeRoom(ctx context.Context, y *yard.Yard, name string) error {
	old, err := y.Find(ctx, name)
	if errors.Is(err, yard.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !old.Status.Finished() {
		s := storyOf(old, time.Now())
		return fmt.Errorf("job %s exists and is not finished: follow it with %s, or delete it with %s", name, s.Command("logs", "-f"), s.Command("delete"))
	}
	uid := old.Job.UID
	if err := y.Delete(ctx, old.Object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the finished job %s: %w", name, err)
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := y.Find(ctx, name)
		return errors.Is(err, yard.ErrNotFound), nil
	})
}

// refusedJob is the API server's word on a manifest it does not accept, which is the person's mistake.
func refusedJob(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}
