package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/kubeconfig"
	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/yard"
)

// target is the cluster and namespace of a verb: the cluster that flags name, else that of chooseCluster.
type target struct {
	kubeconfig, context, dataDir, namespace string
	// local says that it is a local cluster, defaultNamespace is the namespace without -n.
	local            bool
	defaultNamespace string
	// notice prints, once, which cluster was chosen. It is nil for verbs that print this themselves.
	notice func(string)
	// remote excludes the local cluster.
	remote bool
}

func addTarget(cmd *cobra.Command, t *target) {
	addCluster(cmd, t, "the kubeconfig of the cluster (default: KUBECONFIG, else the local cluster while it runs, else ~/.kube/config)")
	addDataDir(cmd, &t.dataDir)
	addNamespace(cmd, t)
	var once sync.Once
	t.notice = func(line string) { once.Do(func() { fmt.Fprintln(cmd.ErrOrStderr(), line) }) }
	if strings.Contains(cmd.Use, "JOB") {
		cmd.ValidArgsFunction = t.complete
	}
}

// complete completes the names of jobs in a shell.
func (t *target) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	t.notice = nil
	y, err := t.open()
	if len(args) > 0 && !strings.Contains(cmd.Use, "JOB…") || err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	jobs, _ := y.Jobs(ctx, y.Namespace)
	var names []cobra.Completion
	for _, j := range jobs {
		names = append(names, cobra.CompletionWithDesc(j.Job.Name, j.Kind.Name()+", "+strings.ToLower(storyOf(j, time.Now()).State())))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func addCluster(cmd *cobra.Command, t *target, kubeconfig string) {
	cmd.Flags().StringVar(&t.kubeconfig, "kubeconfig", "", kubeconfig)
	cmd.Flags().StringVar(&t.context, "context", "", "the context of the kubeconfig")
}

func addDataDir(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "data-dir", "", "the local cluster's directory (default ~/.local/share/trainyard)")
	_ = cmd.MarkFlagDirname("data-dir") // fails only for a flag that is not there
}

func addNamespace(cmd *cobra.Command, t *target) {
	cmd.Flags().StringVarP(&t.namespace, "namespace", "n", "", "the namespace (default: the context's, else default)")
}

// named reports whether a flag names the cluster.
func (t *target) named() bool { return t.kubeconfig != "" || t.context != "" }

// config is the access to the cluster. It also sets the namespace.
func (t *target) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	if err := t.checkFlags(); err != nil {
		return nil, err
	}
	switch {
	case t.dataDir != "":
		file, err := clusterOf(t.dataDir)
		if err != nil {
			return nil, err
		}
		rules.ExplicitPath = file
	case !t.remote && !t.named():
		chosen, err := chooseCluster()
		if err != nil {
			return nil, err
		}
		rules.ExplicitPath = chosen.kubeconfig
		if chosen.notice != "" && t.notice != nil {
			t.notice(chosen.notice)
		}
	}
	return t.load(rules)
}

// checkFlags refuses flags that name two clusters.
func (t *target) checkFlags() error {
	if t.dataDir != "" && t.named() {
		return errTwoClusters
	}
	return nil
}

var errTwoClusters = usageError{errors.New("--data-dir names the local cluster: leave out --kubeconfig and --context")}

func (t *target) load(rules *clientcmd.ClientConfigLoadingRules) (*rest.Config, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: t.context})
	config, err := loader.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			if t.remote {
				return nil, usageError{errors.New("no cluster is configured: name one with --kubeconfig or --context")}
			}
			if file := os.Getenv("KUBECONFIG"); file != "" && t.kubeconfig == "" {
				return nil, usageError{fmt.Errorf("KUBECONFIG is %s, which has no cluster in it", file)}
			}
			return nil, usageError{errNoCluster}
		}
		return nil, usageError{fmt.Errorf("reading the kubeconfig: %w", err)}
	}
	if t.defaultNamespace, _, err = loader.Namespace(); err != nil {
		return nil, usageError{fmt.Errorf("reading the kubeconfig: %w", err)}
	}
	t.namespace = cmp.Or(t.namespace, t.defaultNamespace)
	raw, err := loader.RawConfig()
	t.local = err == nil && kubeconfig.IsLocal(raw, t.context)
	return config, nil
}

// open connects to the target.
func (t *target) open() (*yard.Yard, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	return t.yard(config)
}

// yard connects to the target by the access to its cluster.
func (t *target) yard(config *rest.Config) (*yard.Yard, error) {
	y, err := yard.Open(config, t.namespace)
	if err != nil {
		return nil, t.explain(err)
	}
	y.DefaultNamespace = t.defaultNamespace
	if t.kubeconfig != "" {
		y.TargetFlags = append(y.TargetFlags, "--kubeconfig", t.kubeconfig)
	}
	if t.dataDir != "" {
		y.TargetFlags = append(y.TargetFlags, "--data-dir", t.dataDir)
	}
	if t.context != "" {
		y.TargetFlags = append(y.TargetFlags, "--context", t.context)
	}
	return y, nil
}

// targetFlags are the flags of a command about a job: those for its cluster and namespace.
func targetFlags(y *yard.Yard, j *yard.Job) []string {
	if j.Job.Namespace == y.DefaultNamespace {
		return y.TargetFlags
	}
	return slices.Concat(y.TargetFlags, []string{"-n", j.Job.Namespace})
}

// hint is a command that a person can type.
func hint(y *yard.Yard, j *yard.Job, verb string, flags ...string) string {
	return story.Story{Job: j.Job, TargetFlags: targetFlags(y, j)}.Command(verb, flags...)
}

// errNoCluster says that there is neither a kubeconfig nor a local cluster.
var errNoCluster = errors.New("no cluster is configured: `trainyard up` starts one on this machine, --kubeconfig and --context name another")

// errNotRunning says that the local cluster was started before and does not answer now.
var errNotRunning = errors.New("the local cluster is not running: `trainyard up` starts it")

// explain says what to do about an error of the cluster that is not about the job.
func (t *target) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case utilnet.IsConnectionRefused(err) && t.local:
		return errNotRunning
	case utilnet.IsConnectionRefused(err) || utilnet.IsTimeout(err):
		return fmt.Errorf("the cluster does not answer: %w", err)
	case meta.IsNoMatchError(err) || strings.Contains(err.Error(), "could not find the requested resource"):
		return errors.New("the cluster has no training jobs: `trainyard install` installs the operator")
	case missingNamespace(err) != "":
		return usageError{fmt.Errorf("there is no namespace %s: `kubectl create namespace %[1]s` creates it", missingNamespace(err))}
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not accept your credentials: %w", err)
	}
	return err
}

// missingNamespace is the namespace that was not found, empty if the error is another.
func missingNamespace(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil || status.Status().Details.Kind != "namespaces" {
		return ""
	}
	return status.Status().Details.Name
}

// contactTo prints that the cluster stops answering, and that it answers again.
func contactTo(w io.Writer) func(answers bool) {
	return func(answers bool) { fmt.Fprintf(w, "trainyard: %s\n", contactWords(answers)) }
}

func contactWords(answers bool) string {
	if answers {
		return "the cluster answers again"
	}
	return "the cluster does not answer: waiting for it"
}

// find is the job with a name.
func (t *target) find(ctx context.Context, name string) (*yard.Yard, *yard.Job, error) {
	y, err := t.open()
	if err != nil {
		return nil, nil, err
	}
	j, err := y.Find(ctx, name)
	if errors.Is(err, yard.ErrNotFound) {
		return nil, nil, fmt.Errorf("%w: `trainyard get` lists the jobs", err)
	}
	return y, j, t.explain(err)
}
