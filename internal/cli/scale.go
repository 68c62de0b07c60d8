package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/yard"
)

func scaleCommand() *cobra.Command {
	var t target
	var role string
	cmd := &cobra.Command{
		Use:   "scale JOB N",
		Short: "Change the number of a job's replicas",
		Long: `Change the number of a job's replicas. An elastic job adds or removes the replicas with the highest indexes. A job of a
fixed size starts again as another attempt, which is not charged as a retry.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("a job and a number are needed: use `%s JOB N`", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return scale(cmd, &t, args[0], role, args[1]) },
	}
	addTarget(cmd, &t)
	cmd.Flags().StringVar(&role, "role", "", "the role to scale (default: worker; for a TrainJob the training step)")
	return cmd
}

func scale(cmd *cobra.Command, t *target, name, role, number string) error {
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 0 {
		return usageError{fmt.Errorf("%s is not a number of replicas", number)}
	}
	y, j, err := t.find(cmd.Context(), name)
	if err != nil {
		return err
	}
	if err := checkEditable(j, "scale"); err != nil {
		return err
	}
	was := j.Object.DeepCopyObject().(client.Object)
	if err := resize(j, role, int32(n)); err != nil {
		return err
	}
	err = y.Patch(cmd.Context(), j.Object, client.MergeFrom(was))
	switch {
	case apierrors.IsInvalid(err) && n == 0:
		return usageError{fmt.Errorf("%s needs at least one replica: use 1 or more, or %s to stop its pods", j.Job.Name, hint(y, j, "suspend"))}
	case apierrors.IsInvalid(err):
		return usageError{err}
	case err != nil:
		return t.explain(err)
	}
	out := &printer{Writer: cmd.OutOrStdout()}
	out.printf("%s is scaled to %d.\n", j.Job.Name, n)
	return out.err
}

// resize sets the number of replicas of a role.
func resize(j *yard.Job, role string, n int32) error {
	name, ok := j.Kind.Resize(j.Object, role, n)
	if !ok {
		return usageError{fmt.Errorf("%s has no role %s to scale: %s", j.Job.Name, cmp.Or(role, "worker"), scalable(j))}
	}
	if e := j.Job.Elastic; e != nil && strings.EqualFold(name, e.Role) && (n < e.Min || n > e.Max) {
		return usageError{fmt.Errorf("%s can have %d to %d replicas of %s", j.Job.Name, e.Min, e.Max, e.Role)}
	}
	return nil
}

// scalable lists the roles that can be scaled.
func scalable(j *yard.Job) string {
	var names []string
	for _, r := range j.Job.Roles {
		if _, ok := j.Kind.Resize(j.Object.DeepCopyObject().(manifest.Object), r.Name, r.Replicas); ok {
			names = append(names, strings.ToLower(r.Name))
		}
	}
	return "it has " + strings.Join(names, ", ")
}
