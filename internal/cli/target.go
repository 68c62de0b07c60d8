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
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/yard"
)

// target is the cluster and namespace that a verb is about: the one that flags or KUBECONFIG name, else the local cluster
// where one has been started, else the one of ~/.kube/config.
type target struct {
	kubeconfig, context, namespace string
	// local says that it is a local cluster, home the namespace that a person means who names none.
	local bool
	home  string
	// remote leaves the local cluster out.
	remote bool
}

func addTarget(cmd *cobra.Command, t *target) {
	addCluster(cmd, t, "the kubeconfig of the cluster (default: KUBECONFIG, else the local cluster's, else ~/.kube/config)")
	addNamespace(cmd, t)
	if strings.Contains(cmd.Use, "JOB") {
		cmd.ValidArgsFunction = t.complete
	}
}

// complete offers the names of jobs to a shell.
func (t *target) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	y, err := t.open()
	if len(args) > 0 || err != nil {
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

func addNamespace(cmd *cobra.Command, t *target) {
	cmd.Flags().StringVarP(&t.namespace, "namespace", "n", "", "the namespace (default: the context's, else default)")
}

// named tells whether a person chose a cluster by a flag.
func (t *target) named() bool { return t.kubeconfig != "" || t.context != "" }

// config is access to the cluster; it settles the namespace.
func (t *target) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	if !t.remote && !t.named() && os.Getenv("KUBECONFIG") == "" {
		if file, err := localKubeconfig(); err == nil {
			rules.ExplicitPath = file
		}
	}
	return t.load(rules)
}

func (t *target) load(rules *clientcmd.ClientConfigLoadingRules) (*rest.Config, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: t.context})
	config, err := loader.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			if t.remote {
				return nil, usageError{errors.New("no cluster is known: --kubeconfig and --context name one")}
			}
			if file := os.Getenv("KUBECONFIG"); file != "" && t.kubeconfig == "" {
				return nil, usageError{fmt.Errorf("KUBECONFIG names %s, and there is no cluster in it", file)}
			}
			return nil, usageError{errNoCluster}
		}
		return nil, usageError{fmt.Errorf("reading the kubeconfig: %w", err)}
	}
	if t.home, _, err = loader.Namespace(); err != nil {
		return nil, usageError{fmt.Errorf("reading the kubeconfig: %w", err)}
	}
	t.namespace = cmp.Or(t.namespace, t.home)
	raw, err := loader.RawConfig()
	t.local = err == nil && cluster.IsLocal(raw, t.context)
	return config, nil
}

// open is the target's yard.
func (t *target) open() (*yard.Yard, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	return t.yard(config)
}

// yard is the target's by access to its cluster, with what brings a person's next command to the same.
func (t *target) yard(config *rest.Config) (*yard.Yard, error) {
	y, err := yard.Open(config, t.namespace)
	if err != nil {
		return nil, t.explain(err)
	}
	y.Home = t.home
	if t.kubeconfig != "" {
		y.Reach = append(y.Reach, "--kubeconfig", t.kubeconfig)
	}
	if t.context != "" {
		y.Reach = append(y.Reach, "--context", t.context)
	}
	return y, nil
}

// reach is what a person adds to a command that is about a yard's job.
func reach(y *yard.Yard, j *yard.Job) []string {
	if j.Job.Namespace == y.Home {
		return y.Reach
	}
	return slices.Concat(y.Reach, []string{"-n", j.Job.Namespace})
}

// hint is a command for a person to type.
func hint(y *yard.Yard, j *yard.Job, verb string, flags ...string) string {
	return story.Story{Job: j.Job, Reach: reach(y, j)}.Command(verb, flags...)
}

// errNoCluster says that there is neither a kubeconfig nor a local cluster.
var errNoCluster = errors.New("no cluster is known: `trainyard up` starts one on this machine, --kubeconfig and --context name another")

// errNotRunning says that the local cluster has been started before and does not answer now.
var errNotRunning = errors.New("the local cluster is not running: `trainyard up` starts it")

// explain says what to do about an answer of the cluster that is not about the job.
func (t *target) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case utilnet.IsConnectionRefused(err) && t.local:
		return errNotRunning
	case utilnet.IsConnectionRefused(err) || utilnet.IsTimeout(err):
		return fmt.Errorf("the cluster does not answer: %w", err)
	case meta.IsNoMatchError(err) || strings.Contains(err.Error(), "could not find the requested resource"):
		return errors.New("the cluster knows no training jobs: `trainyard install` brings the operator")
	case missingNamespace(err) != "":
		return usageError{fmt.Errorf("there is no namespace %s: `kubectl create namespace %[1]s` makes one", missingNamespace(err))}
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not let you in: %w", err)
	}
	return err
}

// missingNamespace is the namespace that was not found, where it was one.
func missingNamespace(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil || status.Status().Details.Kind != "namespaces" {
		return ""
	}
	return status.Status().Details.Name
}

// contactTo prints that a cluster does not answer, and that it does again.
func contactTo(w io.Writer) func(answers bool) {
	return func(answers bool) { fmt.Fprintf(w, "trainyard: %s\n", contactWords(answers)) }
}

func contactWords(answers bool) string {
	if answers {
		return "the cluster answers again"
	}
	return "the cluster does not answer; this goes on when it does"
}

// find is the job that the first argument names.
func (t *target) find(ctx context.Context, name string) (*yard.Yard, *yard.Job, error) {
	y, err := t.open()
	if err != nil {
		return nil, nil, err
	}
	j, err := y.Find(ctx, name)
	if errors.Is(err, yard.ErrNotFound) {
		return nil, nil, fmt.Errorf("%w: `trainyard get` lists those there are", err)
	}
	return y, j, t.explain(err)
}
