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
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// render is `trainyard render`: what a manifest becomes, without a cluster.
type render struct {
	file, output, replica string
}

func renderCommand() *cobra.Command {
	var r render
	cmd := &cobra.Command{
		Use:   "render -f job.yaml",
		Short: "Show the pods, Services and environment that a manifest becomes",
		Long: `Show the pods, Services and environment that a manifest becomes, as the operator makes them in the first attempt.
No cluster is needed.`,
		Example: `  trainyard render -f job.yaml
  trainyard render -f job.yaml -o env --replica worker-1`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	addFile(cmd, &r.file, "the manifest")
	cmd.Flags().StringVarP(&r.output, "output", "o", "yaml", "yaml, json, or env for the replicas' environment alone")
	cmd.Flags().StringVar(&r.replica, "replica", "", "this replica alone, as in worker-1")
	return cmd
}

func (r *render) run(cmd *cobra.Command) error {
	if err := choice("output", r.output, "yaml", "json", "env"); err != nil {
		return err
	}
	jobs, err := readJobs(cmd, r.file)
	if err != nil {
		return err
	}
	var children []runtime.Object
	for _, j := range jobs {
		if err := shown(j.Job, "rendered"); err != nil {
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

// printObjects prints objects as YAML or JSON, without what only a cluster fills in.
func printObjects(out *printer, objects []runtime.Object, format string) error {
	return printEach(out, objects, format, func(content map[string]any) { delete(content, "status") })
}

// printWhole prints objects as they are.
func printWhole(out *printer, objects []runtime.Object, format string) error {
	return printEach(out, objects, format, func(map[string]any) {})
}

func printEach(out *printer, objects []runtime.Object, format string, change func(map[string]any)) error {
	plain := []any{}
	for _, obj := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return err
		}
		change(content)
		plain = append(plain, content)
	}
	if format == "json" {
		text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": plain}, "", "  ")
		out.printf("%s\n", text)
		return err
	}
	for _, content := range plain {
		text, err := yaml.Marshal(content)
		if err != nil {
			return err
		}
		out.printf("---\n%s", text)
	}
	return nil
}

// children are what is made for a job, in the order in which it is made.
func (r *render) children(m *manifest.Manifest) []runtime.Object {
	var made []runtime.Object
	add := func(obj runtime.Object, version, kind string) {
		obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
		made = append(made, obj)
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
		if r.replica == "" || r.replica == shortName(replica) {
			add(m.Pod(replica, 0), "v1", "Pod")
		}
	}
	return made
}

// none says that no job has the replica.
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

func noSuchReplica(j job.Job, name string) error {
	return usageError{fmt.Errorf("%s has no replica %s: it has %s", j.Name, name, replicaList(j))}
}

func replicaList(j job.Job) string {
	var names []string
	for _, replica := range replicasOf(j) {
		names = append(names, shortName(replica))
	}
	return shortList(names, 8)
}

// replicasOf are the replicas a job starts with, in the order of its roles.
func replicasOf(j job.Job) []job.Replica {
	var all []job.Replica
	for _, role := range j.Roles {
		for i := range j.Size(role) {
			all = append(all, job.Replica{Role: role.Name, Index: i})
		}
	}
	return all
}

// shortName is a replica as a person types it: worker-1.
func shortName(r job.Replica) string { return fmt.Sprintf("%s-%d", strings.ToLower(r.Role), r.Index) }

// shortList names the first of many.
func shortList(names []string, limit int) string {
	if len(names) > limit {
		return strings.Join(names[:limit-1], ", ") + fmt.Sprintf(" and %d more", len(names)-limit+1)
	}
	return strings.Join(names, ", ")
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
		return "(given when it starts)"
	}
	return "(given when it starts, from " + string(source) + ")"
}
