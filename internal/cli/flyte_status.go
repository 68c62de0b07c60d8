package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/flyte"
	"github.com/trainyard/trainyard/internal/yard"
)

// flyteStatus is `trainyard flyte status`: the phase that each Flyte reads from a job, and why.
type flyteStatus struct {
	target
	file string
}

func flyteStatusCommand() *cobra.Command {
	var s flyteStatus
	cmd := &cobra.Command{
		Use:   "status JOB | -f FILE",
		Short: "Show the phase that Flyte 1 and Flyte 2 read from a job, and why",
		Long: `Show the phase that Flyte 1 and Flyte 2 read from a job, and why.

The job is on a cluster, named JOB, pytorchjob/JOB, tfjob/JOB or mpijob/JOB, or in a file that "kubectl get -o yaml"
wrote, alone or in a list with its pods. Of a job that is not there, it shows what Flyte reads when somebody else has deleted a job.`,
		Args: func(_ *cobra.Command, args []string) error {
			if (s.file == "") == (len(args) == 0) || len(args) > 1 {
				return usageError{errors.New("name one job, or a file with -f")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			job, pods, err := s.read(cmd, args)
			switch {
			case errors.Is(err, yard.ErrNotFound):
				fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: %v; this is what Flyte reads if it created that job\n", err)
			case err != nil:
				return err
			}
			for _, dialect := range []flyte.Dialect{flyte.Flyte1, flyte.Flyte2} {
				printReading(cmd.OutOrStdout(), dialect, flyte.ReadPhase(job, pods, time.Now(), dialect))
			}
			return nil
		},
	}
	addFile(cmd, &s.file, "a dumped job")
	addTarget(cmd, &s.target)
	return cmd
}

func printReading(out io.Writer, dialect flyte.Dialect, r flyte.Reading) {
	fmt.Fprintf(out, "Flyte %s: %s\n", strings.TrimPrefix(string(dialect), "v"), r.Phase)
	for _, line := range []struct{ name, text string }{{"code", r.Code}, {"message", r.Message}, {"why", r.Why}} {
		if line.text != "" {
			fmt.Fprintf(out, "  %-8s %s\n", line.name+":", line.text)
		}
	}
}

func (s *flyteStatus) read(cmd *cobra.Command, args []string) (flyte.Manifest, []corev1.Pod, error) {
	if s.file != "" {
		data, err := readInput(cmd, s.file, "dump")
		if err != nil {
			return nil, nil, err
		}
		job, pods, err := readDump(data)
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("reading %s: %w", s.file, err)}
		}
		if job.GetCreationTimestamp().Time.IsZero() {
			return nil, nil, usageError{errors.New("the job was never on a cluster: dump one with `kubectl get -o yaml`")}
		}
		return job, pods, nil
	}
	return s.live(cmd.Context(), args[0])
}

// live reads a job and its pods from the cluster.
func (s *flyteStatus) live(ctx context.Context, name string) (flyte.Manifest, []corev1.Pod, error) {
	y, j, err := s.find(ctx, name)
	if err != nil { // that there is no such job is something Flyte reads, too
		return nil, nil, err
	}
	if flyteJob(j.Kind.Name()) == nil {
		return nil, nil, usageError{fmt.Errorf("%s is a %s, which Flyte does not read: name a PyTorchJob, a TFJob or an MPIJob", j.Job.Name, j.Kind.Name())}
	}
	var pods corev1.PodList
	if err := y.List(ctx, &pods, client.InNamespace(y.Namespace), client.MatchingLabels{naming.LabelJobName: j.Job.Name}); err != nil {
		return nil, nil, s.explain(fmt.Errorf("reading the pods of job %s: %w", j.Job.Name, err))
	}
	return j.Object, pods.Items, nil
}

// readDump reads what kubectl printed: a job, or a list that has one.
func readDump(data []byte) (flyte.Manifest, []corev1.Pod, error) {
	var content map[string]any
	if err := yaml.Unmarshal(data, &content); err != nil {
		return nil, nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	if !object.IsList() {
		return fromObjects([]unstructured.Unstructured{*object})
	}
	list, err := object.ToList()
	if err != nil {
		return nil, nil, err
	}
	return fromObjects(list.Items)
}

// flyteJob is an empty job of a kind that Flyte's plugins create, or nothing.
func flyteJob(kind string) flyte.Manifest {
	switch kind {
	case kubeflowv1.PyTorchJobKind:
		return &kubeflowv1.PyTorchJob{}
	case kubeflowv1.TFJobKind:
		return &kubeflowv1.TFJob{}
	case kubeflowv1.MPIJobKind:
		return &kubeflowv1.MPIJob{}
	}
	return nil
}

// fromObjects finds the job and the pods among objects.
func fromObjects(objects []unstructured.Unstructured) (job flyte.Manifest, pods []corev1.Pod, err error) {
	for _, object := range objects {
		var pod corev1.Pod
		if found := flyteJob(object.GetKind()); found != nil {
			job, err = found, decodeObject(object, found)
		} else if object.GetKind() == "Pod" {
			err = decodeObject(object, &pod)
			pods = append(pods, pod)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if job == nil {
		return nil, nil, errors.New("there is no PyTorchJob, no TFJob and no MPIJob in it")
	}
	return job, pods, nil
}

func decodeObject(object unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
