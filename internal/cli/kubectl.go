package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// kubectlCommand is kubectl itself, so that a bare machine needs nothing else. Without KUBECONFIG or --kubeconfig it speaks to the
// local cluster, where one has been started. It is made only when it is asked for, as it is as large as all the rest.
func kubectlCommand(args []string) *cobra.Command {
	cmd := &cobra.Command{RunE: func(*cobra.Command, []string) error {
		return usageError{errors.New("kubectl's name comes first: use `trainyard kubectl …`")}
	}}
	if len(args) > 0 && args[0] == "kubectl" {
		cmd = realKubectl(args)
	}
	cmd.Use = "kubectl"
	cmd.Short = "Use kubectl on the local cluster, or on the cluster of KUBECONFIG"
	return cmd
}

func realKubectl(args []string) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50)
	cmd := kubectl.NewDefaultKubectlCommandWithArgs(kubectl.KubectlOptions{
		Arguments:     args,
		ConfigFlags:   flags,
		IOStreams:     genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		PluginHandler: kubectl.NewDefaultPluginHandler([]string{"kubectl"}),
	})
	before := cmd.PersistentPreRunE
	cmd.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		switch {
		case useLocalCluster(flags):
			sayInstead(errNotRunning, 1, "was refused", "connection refused")
		case knowsNoCluster(flags):
			flags.WrapConfigFn = leadNowhere
			sayInstead(errNoCluster, exitUsage, errNoCluster.Error())
		}
		return before(c, args)
	}
	return cmd
}

// useLocalCluster lets a command speak to the local cluster, where one has been started and no other is named.
func useLocalCluster(flags *genericclioptions.ConfigFlags) bool {
	file, err := localKubeconfig()
	if err != nil || os.Getenv("KUBECONFIG") != "" || *flags.KubeConfig != "" || *flags.Context != "" || *flags.APIServer != "" {
		return false
	}
	*flags.KubeConfig = file
	return true
}

// knowsNoCluster tells whether nothing names a cluster.
func knowsNoCluster(flags *genericclioptions.ConfigFlags) bool {
	config, err := flags.ToRawKubeConfigLoader().RawConfig()
	return err == nil && len(config.Clusters) == 0 && *flags.APIServer == "" && os.Getenv("KUBERNETES_MASTER") == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == ""
}

// leadNowhere answers every request in place of whoever may listen where kubectl looks for a cluster if it knows none. What
// needs no cluster makes no request.
func leadNowhere(config *rest.Config) *rest.Config {
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return nowhere{} })
	return config
}

type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNoCluster }

// sayInstead puts what to do in place of kubectl's words on a request that reached nobody, which have one of the signs.
func sayInstead(words error, exit int, signs ...string) {
	utilruntime.ErrorHandlers = nil // which would say so, too, several times
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		if slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(message, sign) }) {
			message, code = "trainyard: "+words.Error(), exit
		}
		fmt.Fprintln(os.Stderr, strings.TrimSuffix(message, "\n"))
		os.Exit(code)
	})
}
