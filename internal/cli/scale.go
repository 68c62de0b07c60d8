package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/yard"
)

func scaleCommand() *cobra.Command {
	var t target
	var role string
	cmd := &cobra.Command{
		Use:   "scale JOB N",
		Short: "Change the number of a job's replicas",
		Long: `Change the number of a job's replicas. Replicas of an elastic job come and go at the top end; a job of a fixed size is
started anew as another attempt, which is not charged to its retries.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("a job and a number are needed: use `%s JOB N`", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseInt(args[1], 10, 32)
			if err != nil || n < 0 {
				return usageError{fmt.Errorf("%s is no number of replicas", args[1])}
			}
			y, j, err := t.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			patch, err := scaling(j, role, n)
			if err != nil {
				return err
			}
			if err := y.Patch(cmd.Context(), j.Object, client.RawPatch(types.MergePatchType, patch)); err != nil {
				return t.explain(err)
			}
			out := &printer{Writer: cmd.OutOrStdout()}
			out.printf("%s is scaled to %d.\n", j.Job.Name, n)
			return out.err
		},
	}
	addTarget(cmd, &t)
	cmd.Flags().StringVar(&role, "role", "", "the role to scale (default worker; of a TrainJob the step that trains)")
	return cmd
}

// scaling is the edit that sets a role's replicas, whatever letter case the manifest writes the role in.
func scaling(j *yard.Job, role string, n int64) ([]byte, error) {
	if j.Kind.Name() == trainer.TrainJobKind && (role == "" || strings.EqualFold(role, j.Leader.Role)) {
		role = j.Leader.Role
	} else if role == "" {
		role = "worker"
	}
	if e := j.Job.Elastic; e != nil && strings.EqualFold(role, e.Role) && (n < int64(e.Min) || n > int64(e.Max)) {
		return nil, usageError{fmt.Errorf("%s can have %d to %d replicas of %s", j.Job.Name, e.Min, e.Max, e.Role)}
	}
	if role == j.Leader.Role && j.Kind.Name() == trainer.TrainJobKind {
		return fmt.Appendf(nil, `{"spec":{"trainer":{"numNodes":%d}}}`, n), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(j.Object)
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"pytorchReplicaSpecs", "tfReplicaSpecs"} {
		roles, _, _ := unstructured.NestedMap(content, "spec", field)
		for name := range roles {
			if strings.EqualFold(name, role) {
				return json.Marshal(map[string]any{"spec": map[string]any{field: map[string]any{name: map[string]any{"replicas": n}}}})
			}
		}
	}
	var names []string
	for _, r := range j.Job.Roles {
		names = append(names, strings.ToLower(r.Name))
	}
	return nil, usageError{fmt.Errorf("%s has no role %s: it has %s", j.Job.Name, role, strings.Join(names, ", "))}
}
