//go:build linux

package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
)

// localize makes the containers of a job run in this directory, with this shell's programs. Otherwise they would get those of the
// shell that started the cluster.
func localize(obj *unstructured.Unstructured) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	if obj.GetKind() == trainer.TrainJobKind {
		return localizeSteps(obj, dir)
	}
	if kind, ok := kinds.Of(obj.GroupVersionKind()).(kubeflow.Kind); ok {
		return localizeRoles(obj, kind.Layout.ReplicaSpecs, dir)
	}
	return nil
}

// localizeRoles gives the containers of every role this shell's programs and directory.
func localizeRoles(obj *unstructured.Unstructured, field, dir string) error {
	roles, _, _ := unstructured.NestedMap(obj.Object, "spec", field)
	for role := range roles {
		at := []string{"spec", field, role, "template", "spec", "containers"}
		containers, _, _ := unstructured.NestedSlice(obj.Object, at...)
		for i := range containers {
			if c, ok := containers[i].(map[string]any); ok {
				localizeContainer(c, dir, !ignoresArgs(obj, role))
			}
		}
		if len(containers) > 0 {
			if err := unstructured.SetNestedSlice(obj.Object, containers, at...); err != nil {
				return fmt.Errorf("setting the working directory: %w", err)
			}
		}
	}
	return nil
}

// ignoresArgs reports whether the operator ignores the args of a role without a command: a Worker of an MPIJob serves the Launcher.
func ignoresArgs(obj *unstructured.Unstructured, role string) bool {
	return obj.GetKind() == kubeflowv1.MPIJobKind && strings.EqualFold(role, string(kubeflowv1.MPIWorker))
}

func localizeContainer(container map[string]any, dir string, argsAreCommand bool) {
	if container["workingDir"] == nil {
		container["workingDir"] = dir
	}
	// Flyte passes a whole command line as args, for images without an entry point. Args that begin with a flag need an entry point.
	if args, _ := container["args"].([]any); argsAreCommand && len(args) > 0 && container["command"] == nil && !strings.HasPrefix(fmt.Sprint(args[0]), "-") {
		container["command"] = args
		delete(container, "args")
	}
	container["env"] = withShell(container["env"])
}

// localizeSteps gives a TrainJob this shell's programs and directory. Its containers come from the runtime, and the job can only set
// their environment. The local cluster starts a container in the directory of its variable PWD.
func localizeSteps(obj *unstructured.Unstructured, dir string) error {
	for _, at := range [][]string{{"spec", "trainer"}, {"spec", "initializer", "dataset"}, {"spec", "initializer", "model"}} {
		step, found, _ := unstructured.NestedMap(obj.Object, at...)
		switch {
		case !found && at[1] != "trainer":
			continue
		case step == nil:
			step = map[string]any{}
		}
		step["env"] = with(withShell(step["env"]), "PWD", dir)
		if err := unstructured.SetNestedMap(obj.Object, step, at...); err != nil {
			return fmt.Errorf("setting the environment: %w", err)
		}
	}
	return nil
}

// withShell adds what containers inherit of this shell, unless they set it. So a command has the same environment in a cluster that
// `run` starts and in one that it joins.
func withShell(variables any) []any {
	env, _ := variables.([]any)
	for _, variable := range cluster.FromShell(os.Environ()) {
		name, value, _ := strings.Cut(variable, "=")
		env = with(env, name, strings.ReplaceAll(value, "$(", "$$("))
	}
	return env
}

// with adds a variable, unless it is set already.
func with(env []any, name, value string) []any {
	isSet := slices.ContainsFunc(env, func(e any) bool {
		pair, _ := e.(map[string]any)
		return pair["name"] == name
	})
	if isSet {
		return env
	}
	return append(env, map[string]any{"name": name, "value": value})
}
