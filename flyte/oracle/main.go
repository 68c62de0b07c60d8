// Command oracle lets Flyte 1.16.8's own plugins make jobs from the tasks in ../testdata/flyte1, and writes them beside the tasks. The
// tests compare our jobs with these. It is a module of its own, because Flyte's dependencies are not ours: cd flyte/oracle && go run .
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery"
	plugincore "github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/core"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/flytek8s"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/flytek8s/config"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/io"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/k8s"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/utils"
	_ "github.com/flyteorg/flyte/flyteplugins/go/tasks/plugins/k8s/kfoperators/mpi"        // registers its plugin
	_ "github.com/flyteorg/flyte/flyteplugins/go/tasks/plugins/k8s/kfoperators/pytorch"    // registers its plugin
	_ "github.com/flyteorg/flyte/flyteplugins/go/tasks/plugins/k8s/kfoperators/tensorflow" // registers its plugin
	"github.com/flyteorg/flyte/flytestdlib/storage"
	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The execution of every task.
const name, namespace, serviceAccount = "f1-n0-0", "research", "default"

var labels = map[string]string{"execution-id": "f1"}

func main() {
	files, err := filepath.Glob("../testdata/flyte1/*.task.json")
	for _, file := range files {
		if err == nil {
			err = write(file)
		}
	}
	if err != nil || len(files) == 0 {
		fmt.Fprintln(os.Stderr, len(files), "tasks:", err)
		os.Exit(1)
	}
}

func write(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	task := &core.TaskTemplate{}
	if err := protojson.Unmarshal(text, task); err != nil {
		return err
	}
	job, err := pluginFor(task.GetType()).BuildResource(context.Background(), execution{task: task})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	// As Flyte's manager of plugins does it, without owner and finalizer.
	metadata, defaults := task.GetMetadata().GetMetadata(), config.GetK8sPluginConfig()
	job.SetName(name)
	job.SetNamespace(namespace)
	job.SetLabels(utils.UnionMaps(defaults.DefaultLabels, job.GetLabels(), metadata.GetLabels(), labels))
	job.SetAnnotations(utils.UnionMaps(defaults.DefaultAnnotations, job.GetAnnotations(), metadata.GetAnnotations()))
	out, err := yaml.Marshal(job)
	if err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(file, ".task.json")+".job.yaml", out, 0o644)
}

func pluginFor(taskType string) k8s.Plugin {
	for _, entry := range pluginmachinery.PluginRegistry().GetK8sPlugins() {
		if entry.ID == taskType {
			return entry.Plugin
		}
	}
	return nil
}

// execution is what the plugins ask about an execution. Everything else is nil.
type execution struct {
	plugincore.TaskExecutionContext
	task *core.TaskTemplate
}

func (e execution) TaskReader() plugincore.TaskReader { return reader{task: e.task} }
func (e execution) TaskExecutionMetadata() plugincore.TaskExecutionMetadata {
	return metadata{task: e.task}
}
func (execution) InputReader() io.InputReader   { return paths{} }
func (execution) OutputWriter() io.OutputWriter { return paths{} }

type reader struct {
	plugincore.TaskReader
	task *core.TaskTemplate
}

func (r reader) Read(context.Context) (*core.TaskTemplate, error) { return r.task, nil }

type metadata struct {
	plugincore.TaskExecutionMetadata
	task *core.TaskTemplate
}

func (metadata) GetTaskExecutionID() plugincore.TaskExecutionID     { return id{} }
func (metadata) GetNamespace() string                               { return namespace }
func (metadata) GetLabels() map[string]string                       { return labels }
func (metadata) GetAnnotations() map[string]string                  { return nil }
func (metadata) GetK8sServiceAccount() string                       { return serviceAccount }
func (metadata) GetSecurityContext() core.SecurityContext           { return core.SecurityContext{} }
func (metadata) IsInterruptible() bool                              { return false }
func (metadata) GetPlatformResources() *corev1.ResourceRequirements { return nil }
func (metadata) GetEnvironmentVariables() map[string]string         { return nil }
func (metadata) GetConsoleURL() string                              { return "" }
func (m metadata) GetOverrides() plugincore.TaskOverrides           { return overrides{task: m.task} }

// overrides are the resources of a task's container, which Flyte's compiler copies to the node of the workflow.
type overrides struct{ task *core.TaskTemplate }

func (o overrides) GetResources() *corev1.ResourceRequirements {
	resources, err := flytek8s.ToK8sResourceRequirements(o.task.GetContainer().GetResources())
	if err != nil {
		return &corev1.ResourceRequirements{}
	}
	return resources
}
func (overrides) GetExtendedResources() *core.ExtendedResources { return nil }
func (overrides) GetContainerImage() string                     { return "" }
func (overrides) GetPodTemplate() *core.K8SPod                  { return nil }
func (overrides) GetConfig() *corev1.ConfigMap                  { return nil }

type id struct{ plugincore.TaskExecutionID }

func (id) GetGeneratedName() string                      { return name }
func (id) GetID() core.TaskExecutionIdentifier           { return core.TaskExecutionIdentifier{} }
func (id) GetUniqueNodeID() string                       { return "n0" }
func (id) GetGeneratedNameWith(_, _ int) (string, error) { return name, nil }

// paths keep the placeholders of command lines.
type paths struct{ io.OutputWriter }

func (paths) GetInputPrefixPath() storage.DataReference           { return "{{.inputPrefix}}" }
func (paths) GetInputPath() storage.DataReference                 { return "{{.input}}" }
func (paths) Get(context.Context) (*core.LiteralMap, error)       { return nil, nil }
func (paths) GetOutputPrefixPath() storage.DataReference          { return "{{.outputPrefix}}" }
func (paths) GetRawOutputPrefix() storage.DataReference           { return "{{.rawOutputDataPrefix}}" }
func (paths) GetCheckpointPrefix() storage.DataReference          { return "{{.checkpointOutputPrefix}}" }
func (paths) GetPreviousCheckpointsPrefix() storage.DataReference { return "{{.prevCheckpointPrefix}}" }
