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

// kubectlCommand is kubectl itself, so that a bare machine needs nothing else. It uses the same cluster as other verbs. It is built only if it is called, because it is as large as everything else.
func kubectlCommand(args []string) *cobra.Command {
	cmd := &cobra.Command{RunE: func(*cobra.Command, []string) error {
		return usageError{errors.New("kubectl must be the first argument: use `trainyard kubectl …`")}
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
	dataDir := cmd.PersistentFlags().String("data-dir", "", "The local cluster's directory (default ~/.local/share/trainyard)")
	before := cmd.PersistentPreRunE
	cmd.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		local, err := useLocalCluster(c, flags, *dataDir)
		if err != nil {
			return err
		}
		switch {
		case local:
			replaceFatalMessage(errNotRunning, 1, "was refused", "connection refused")
		case noClusterConfigured(flags):
			flags.WrapConfigFn = rejectRequests
			replaceFatalMessage(errNoCluster, exitUsage, errNoCluster.Error())
		}
		return before(c, args)
	}
	return cmd
}

// useLocalCluster points kubectl to the local cluster, if --data-dir or the rule of chooseCluster says so. It reports whether it did.
func useLocalCluster(cmd *cobra.Command, flags *genericclioptions.ConfigFlags, dataDir string) (local bool, err error) {
	named := *flags.KubeConfig != "" || *flags.Context != "" || *flags.APIServer != ""
	switch {
	case named && dataDir != "":
		return false, errTwoClusters
	case named:
		return false, nil
	case dataDir != "":
		*flags.KubeConfig, err = clusterOf(dataDir)
		return true, err
	}
	chosen, err := chooseCluster()
	if err != nil {
		return false, err
	}
	if chosen.notice != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), chosen.notice)
	}
	*flags.KubeConfig = chosen.kubeconfig
	return chosen.kubeconfig != "", nil
}

// noClusterConfigured reports whether nothing names a cluster.
func noClusterConfigured(flags *genericclioptions.ConfigFlags) bool {
	config, err := flags.ToRawKubeConfigLoader().RawConfig()
	return err == nil && len(config.Clusters) == 0 && *flags.APIServer == "" && os.Getenv("KUBERNETES_MASTER") == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == ""
}

// rejectRequests fails every request. Without a configured cluster kubectl would connect to localhost:8080, where anything may listen.
// Commands that need no cluster make no request.
func rejectRequests(config *rest.Config) *rest.Config {
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return rejectingTransport{} })
	return config
}

type rejectingTransport struct{}

func (rejectingTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNoCluster }

// replaceFatalMessage replaces kubectl's message if it contains one of the signs of a cluster that cannot be reached.
func replaceFatalMessage(words error, exit int, signs ...string) {
	utilruntime.ErrorHandlers = nil // they would print the same several times
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		if slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(message, sign) }) {
			message, code = "trainyard: "+words.Error(), exit
		}
		fmt.Fprintln(os.Stderr, strings.TrimSuffix(message, "\n"))
		os.Exit(code)
	})
}
