package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/yard"
)

func deleteCommand() *cobra.Command {
	var t target
	var now bool
	cmd := &cobra.Command{
		Use:   "delete JOB",
		Short: "Delete a job with its pods, and wait until they are gone",
		Args:  oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			y, j, err := t.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := remove(cmd.Context(), y, j, !now); err != nil {
				return t.explain(err)
			}
			out := &printer{Writer: cmd.OutOrStdout()}
			out.printf("%s is deleted.\n", j.Job.Name)
			return out.err
		},
	}
	addTarget(cmd, &t)
	cmd.Flags().BoolVar(&now, "no-wait", false, "do not wait until the pods are gone")
	return cmd
}

// remove deletes a job and its children.
func remove(ctx context.Context, y *yard.Yard, j *yard.Job, await bool) error {
	uid := j.Job.UID
	err := y.Delete(ctx, j.Object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if client.IgnoreNotFound(err) != nil || !await {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		now, err := y.Find(ctx, j.Job.Name)
		return errors.Is(err, yard.ErrNotFound) || err == nil && now.Job.UID != uid, nil
	})
}
