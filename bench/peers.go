package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// contenders are the limit, ours, and the peers, in the order in which they take turns, as far as they are asked for.
func contenders(ctx context.Context, bin, only string) ([]contender, error) {
	ours := ownOperator(bin)
	dir, err := moduleDir(ctx, "bench/peers/trainingoperator", "github.com/kubeflow/training-operator")
	if err != nil {
		return nil, err
	}
	shipped := process{
		label: "Training Operator as shipped", userAgent: "trainingoperator", binary: filepath.Join(bin, "trainingoperator"), jobs: pytorchJobs, slow: true,
		definitions: []string{filepath.Join(dir, "manifests/base/crds/kubeflow.org_pytorchjobs.yaml")},
	}
	tuned := shipped
	tuned.label, tuned.slow = "Training Operator tuned", false
	tuned.args = []string{"--kube-api-qps=1000", "--kube-api-burst=1000", "--controller-threads=10"}
	asked := func(c contender) bool {
		return slices.ContainsFunc(strings.Split(only, ","), func(start string) bool { return strings.HasPrefix(c.name(), start) })
	}
	theirs, err := trainers(ctx, bin)
	if err != nil {
		return nil, err
	}
	// Trainer does not replace a pod that failed unless a runtime says so: what restarts cost is compared by PyTorchJobs.
	ourTrainJobs := ours
	ourTrainJobs.label, ourTrainJobs.jobs, ourTrainJobs.fails = "our TrainJobs", trainJobs, true
	all := append([]contender{limit{}, ours, tuned, shipped, ourTrainJobs}, theirs...)
	return slices.DeleteFunc(all, func(c contender) bool { return !asked(c) }), nil
}

func ownOperator(bin string) process {
	return process{label: "ours", userAgent: "trainyard-operator", binary: filepath.Join(bin, "trainyard-operator"), jobs: pytorchJobs, args: []string{"--metrics-bind-address=0"}}
}

// moduleDir is where the files of a module are that the module in a folder requires.
func moduleDir(ctx context.Context, folder, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = folder
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}
