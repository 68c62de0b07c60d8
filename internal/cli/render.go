package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trainyard/trainyard/internal/manifest"
)

// render is `trainyard render`: the objects that the operator creates for a manifest, without a cluster.
type render struct {
	file, output, replica string
}

func renderCommand() *cobra.Command {
	var r render
	cmd := &cobra.Command{
		Use:   "render -f job.yaml",
		Short: "Show the pods, Services and environment of a manifest",
		Long: `Show the pods, Services and environment that the operator creates for a manifest in the first attempt. No cluster is
needed.`,
		Example: `  trainyard render -f job.yaml
  trainyard render -f job.yaml -o env --replica worker-1`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	addFile(cmd, &r.file, "the manifest")
	cmd.Flags().StringVarP(&r.output, "output", "o", "yaml", "yaml, json, or env for the replicas' environment only")
	cmd.Flags().StringVar(&r.replica, "replica", "", "only this replica, as in worker-1")
	return cmd
}

func (r *render) run(cmd *cobra.Command) error {
	if err := checkChoice("output", r.output, "yaml", "json", "env"); err != nil {
		return err
	}
	jobs, err := readJobs(cmd, r.file)
	if err != nil {
		return err
	}
	var children []runtime.Object
	for _, j := range jobs {
		if err := checkOffline(j.Job, "rendered"); err != nil {
			return err
		}
		if j.Job.UID == "" {
			j.Job.UID = "<the job's UID>"
		}
		children = append(children, r.children(j.Manifest)...)
	}
	if len(children) == 0 {
		return r.none(jobs)
	}
	out := &printer{Writer: cmd.OutOrStdout()}
	if r.output == "env" {
		printEnvironment(out, children)
		return out.err
	}
	if err := printObjects(out, children, r.output); err != nil {
		return err
	}
	return out.err
}

// children are the objects of a job, in the order of their creation.
func (r *render) children(m *manifest.Manifest) []runtime.Object {
	var created []runtime.Object
	add := func(obj runtime.Object, version, kind string) {
		obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
		created = append(created, obj)
	}
	if r.replica == "" {
		for _, kind := range slices.Backward(manifest.ChildKinds) {
			for _, child := range m.Job.Children {
				if child.ChildKind == kind.ChildKind {
					add(child.Object, kind.GroupVersion.String(), kind.Kind)
				}
			}
		}
	}
	for _, replica := range replicasOf(m.Job) {
		if r.replica == "" || isCalled(m.Job, replica, r.replica) {
			add(m.Pod(replica, 0), "v1", "Pod")
		}
	}
	return created
}

// none is the error that no job has the replica.
func (r *render) none(jobs []jobOfFile) error {
	if len(jobs) == 1 {
		return noSuchReplica(jobs[0].Job, r.replica)
	}
	var have []string
	for _, j := range jobs {
		have = append(have, j.Job.Name+" has "+replicaList(j.Job))
	}
	return usageError{fmt.Errorf("no job of %s has a replica %s: %s", r.file, r.replica, strings.Join(have, "; "))}
}

func printEnvironment(out *printer, children []runtime.Object) {
	first := true
	for _, child := range children {
		pod, ok := child.(*corev1.Pod)
		if !ok {
			continue
		}
		for _, c := range pod.Spec.Containers {
			if !first {
				out.printf("\n")
			}
			first = false
			out.printf("# pod %s, container %s\n", pod.Name, c.Name)
			for _, e := range c.Env {
				out.printf("%s=%s\n", e.Name, environmentValue(e))
			}
		}
	}
}

func environmentValue(e corev1.EnvVar) string {
	if e.ValueFrom == nil {
		return e.Value
	}
	source, err := json.Marshal(e.ValueFrom)
	if err != nil {
		return "(set at the start)"
	}
	return "(set at the start, from " + string(source) + ")"
}
