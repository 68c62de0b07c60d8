package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	var bad yard.BadInput
	err = y.Scale(cmd.Context(), j, role, int32(n))
	switch {
	case apierrors.IsInvalid(err) && n == 0:
		return usageError{fmt.Errorf("%s needs at least one replica: use 1 or more, or %s to stop its pods", j.Job.Name, hint(y, j, "suspend"))}
	case apierrors.IsInvalid(err), errors.As(err, &bad):
		return usageError{err}
	case err != nil:
		return t.explain(err)
	}
	out := &printer{Writer: cmd.OutOrStdout()}
	out.printf("%s is scaled to %d.\n", j.Job.Name, n)
	return out.err
}
