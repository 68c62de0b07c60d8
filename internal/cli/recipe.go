package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

// recipe is a job that is built from flags and a command instead of a manifest.
type recipe struct {
	podRecipe
	name, image, nodes, nproc, clean, code string
	retries                                int32
	deadline, ttl                          durationFlag
	mpi                                    bool
}

// flags are the flags that describe the job.
func (r *recipe) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SetNormalizeFunc(otherNames)
	flags.StringVar(&r.name, "name", "", "the job's name (default: the script's name and a random suffix)")
	flags.StringVar(&r.nodes, "nodes", "1", "how many replicas; 1:4 for an elastic job of one to four")
	flags.StringVar(&r.nproc, "nproc", "", "training processes in each replica: a number, auto, cpu or gpu; a python command is started by torchrun, any other must call torchrun itself")
	flags.BoolVar(&r.mpi, "mpi", false, "start the processes by mpirun: --nodes Workers with --nproc processes each")
	flags.Int32Var(&r.retries, "retries", 0, "how many failures are retried")
	flags.Var(&r.deadline, "deadline", "how long the job may run, as in 2h (default: as long as it takes)")
	flags.StringVar(&r.clean, "clean", "running", "which pods are deleted at the end: none, running or all")
	flags.Var(&r.ttl, "ttl", "how long the finished job is kept, as in 1h (default: 7 days on the local cluster, for ever on another)")
	flags.StringVar(&r.image, "image", "", "the container image; the local cluster needs none")
	flags.StringVar(&r.code, "code", "", "the directory in which the command starts; it goes along to a cluster that is not local, unless it is none (default: this one, if the command names a file of it)")
	r.addFlags(flags)
	return flags
}

// otherNames accepts the names of flags that torchrun and SkyPilot have, with dashes or underscores.
func otherNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch strings.ReplaceAll(name, "_", "-") {
	case "nnodes", "num-nodes":
		name = "nodes"
	case "nproc-per-node":
		name = "nproc"
	case "max-restarts":
		name = "retries"
	}
	return pflag.NormalizedName(name)
}

// firstSet is the first of these flags that is set on a command line, empty if none is.
func (*recipe) firstSet(cmd *cobra.Command) (name string) {
	(&recipe{}).flags().VisitAll(func(f *pflag.Flag) {
		if name == "" && cmd.Flags().Changed(f.Name) {
			name = f.Name
		}
	})
	return name
}

// job is the manifest for the flags and the command.
func (r *recipe) job(command []string) (*unstructured.Unstructured, error) {
	if r.mpi {
		return r.mpiJob(command)
	}
	pj := &kubeflowv1.PyTorchJob{}
	pj.SetGroupVersionKind(kubeflowv1.GroupVersion.WithKind(kubeflowv1.PyTorchJobKind))
	if pj.Name = r.name; r.name == "" {
		pj.GenerateName = nameFor(command) + "-"
	}
	container := corev1.Container{Name: kubeflowv1.PyTorchContainer, Image: r.image, Command: command}
	if container.Image == "" {
		container.Image = "local"
	}
	worker := &kubeflowv1.ReplicaSpec{}
	if r.retries == 0 {
		worker.RestartPolicy = kubeflowv1.RestartPolicyNever // else kubelet restarts it before we see its failure
	}
	for _, step := range []func() error{
		func() error { return r.setNodes(pj, worker) },
		func() error { return r.setPolicy(&pj.Spec.RunPolicy.LifecyclePolicy) },
		func() error { return r.setProcesses(pj, &container) },
		func() error { return r.apply(&pj.ObjectMeta, &pj.Spec.RunPolicy, &worker.Template, &container) },
	} {
		if err := step(); err != nil {
			return nil, usageError{err}
		}
	}
	worker.Template.Spec.Containers = []corev1.Container{container}
	pj.Spec.PyTorchReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{kubeflowv1.PyTorchWorker: worker}
	return withoutStatus(pj)
}

// withoutStatus is a job as a person would write it.
func withoutStatus(job runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, fmt.Errorf("building the manifest: %w", err)
	}
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}, nil
}

// setNodes parses 2 or 1:4. An elastic job starts with the maximum.
func (r *recipe) setNodes(pj *kubeflowv1.PyTorchJob, worker *kubeflowv1.ReplicaSpec) error {
	low, high, elastic := strings.Cut(r.nodes, ":")
	n, err := strconv.ParseInt(low, 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("--nodes %s: use 1 or more, or a range as in 1:4", r.nodes)
	}
	worker.Replicas = new(int32(n))
	if !elastic {
		if n == 1 && r.retries > 0 {
			// If kubelet restarted the container in its pod, the log would be gone when the retries are used up.
			set(&pj.Annotations, kubeflowv1.AnnotationRestartScope, string(job.ScopeJob))
		}
		return nil
	}
	most, err := strconv.ParseInt(high, 10, 32)
	if err != nil || most < n {
		return fmt.Errorf("--nodes %s: the second number must not be smaller than the first, as in 1:4", r.nodes)
	}
	worker.Replicas = new(int32(most))
	pj.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{MinReplicas: new(int32(n)), MaxReplicas: new(int32(most))}
	return nil
}

func (r *recipe) setPolicy(p *kubeflowv1.LifecyclePolicy) error {
	clean := map[string]kubeflowv1.CleanPodPolicy{
		"none": kubeflowv1.CleanPodPolicyNone, "running": kubeflowv1.CleanPodPolicyRunning, "all": kubeflowv1.CleanPodPolicyAll,
	}
	policy, ok := clean[strings.ToLower(r.clean)]
	switch {
	case !ok:
		return fmt.Errorf("--clean %s: use none, running or all", r.clean)
	case r.retries < 0:
		return fmt.Errorf("--retries %d: use 0 or more", r.retries)
	case r.gpus < 0:
		return fmt.Errorf("--gpus %d: use 0 or more", r.gpus)
	}
	p.CleanPodPolicy, p.BackoffLimit = &policy, &r.retries
	if err := r.deadline.check("deadline", time.Second, math.MaxInt64); err != nil {
		return err
	}
	if err := r.ttl.check("ttl", 0, math.MaxInt32*time.Second); err != nil {
		return err
	}
	if r.deadline.isSet() {
		p.ActiveDeadlineSeconds = new(int64(r.deadline.length / time.Second))
	}
	if r.ttl.isSet() {
		p.TTLSecondsAfterFinished = new(int32(r.ttl.length / time.Second))
	}
	return nil
}

// setProcesses makes torchrun start the training if it has several processes per replica, or is elastic.
func (r *recipe) setProcesses(pj *kubeflowv1.PyTorchJob, c *corev1.Container) error {
	if r.nproc != "" {
		if n, err := strconv.Atoi(r.nproc); (err != nil || n < 1) && r.nproc != "auto" && r.nproc != "cpu" && r.nproc != "gpu" {
			return fmt.Errorf("--nproc %s: use 1 or more, auto, cpu or gpu", r.nproc)
		}
		pj.Spec.NprocPerNode = &r.nproc
	} else if pj.Spec.ElasticPolicy != nil {
		pj.Spec.NprocPerNode = new("1")
	}
	if pj.Spec.NprocPerNode == nil || !isSingleProcess(c.Command) {
		return nil
	}
	c.Command = underTorchrun(c.Command)
	// Torch 1.13 under Python 3.11 (Debian 12) cannot parse its own defaults of these two. Values for the tenth process only have the
	// same effect in every torch.
	c.Env = append(c.Env, corev1.EnvVar{Name: "PET_REDIRECTS", Value: "9:1"}, corev1.EnvVar{Name: "PET_TEE", Value: "9:1"})
	return nil
}

// isSingleProcess reports whether a command is one training process, which torchrun must multiply. A command that is not Python's may
// call torchrun itself, and stays as it is.
func isSingleProcess(command []string) bool {
	python := strings.HasPrefix(filepath.Base(command[0]), "python")
	torchrun := len(command) > 1 && filepath.Base(command[1]) == "torchrun"
	return python && !torchrun && !strings.Contains(strings.Join(command, " "), "torch.distributed")
}

// underTorchrun makes torchrun start a Python command. Torchrun runs a script with the same Python. A command with options for Python
// (-O, -X dev, -m module, -c code) is passed whole, because torchrun would take the options for its own.
func underTorchrun(command []string) []string {
	torchrun, training := []string{command[0], "-m", "torch.distributed.run"}, command[1:]
	if len(training) == 0 || strings.HasPrefix(training[0], "-") {
		torchrun, training = append(torchrun, "--no_python"), command // torch before 2.0 has no --no-python
	}
	return append(torchrun, training...)
}

// checkProgram refuses a program that does not exist on this machine, before a local cluster is started for it.
func (r *recipe) checkProgram(program string) error {
	ownPath := slices.ContainsFunc(r.env, func(pair string) bool { return strings.HasPrefix(pair, "PATH=") })
	if _, err := exec.LookPath(program); err == nil || ownPath {
		return nil
	}
	advice := "it must be in your PATH, or be an executable file that you name with its directory"
	switch _, err := exec.LookPath("python3"); {
	case err != nil:
	case program == "python":
		advice = "did you mean python3?"
	case strings.HasSuffix(program, ".py"):
		advice = "did you mean `python3 " + program + "`?"
	}
	return usageError{fmt.Errorf("there is no program %s: %s", program, advice)}
}

// checkScript refuses a script of Python that does not exist in the directory in which the command starts. An absolute path may be one
// of a volume.
func (r *recipe) checkScript(command []string) error {
	if len(command) < 2 || !strings.HasPrefix(filepath.Base(command[0]), "python") || !strings.HasSuffix(command[1], ".py") || filepath.IsAbs(command[1]) {
		return nil
	}
	script := command[1]
	if r.code != noCode {
		script = filepath.Join(r.code, script)
	}
	if _, err := os.Stat(script); errors.Is(err, fs.ErrNotExist) {
		return usageError{fmt.Errorf("there is no script %s: name it as it is found from this directory", script)}
	}
	return nil
}

var notInAName = regexp.MustCompile(`[^a-z0-9]+`)

// nameFor is the name of the script, or else of the program, shortened to a valid job name.
func nameFor(command []string) string {
	name := filepath.Base(command[0])
	for _, word := range command[1:] {
		if strings.HasSuffix(word, ".py") {
			name = strings.TrimSuffix(filepath.Base(word), ".py")
			break
		}
	}
	name = strings.Trim(notInAName.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if name == "" || name[0] < 'a' {
		name = "job-" + name
	}
	return strings.TrimRight(name[:min(len(name), 30)], "-")
}
