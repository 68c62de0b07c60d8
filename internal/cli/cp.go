package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kubectlcp "k8s.io/kubectl/pkg/cmd/cp"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// copying is `trainyard cp`: files from a replica to this machine, or the other way.
type copying struct{ replicaTarget }

func cpCommand() *cobra.Command {
	var c copying
	cmd := &cobra.Command{
		Use:   "cp JOB SOURCE DESTINATION",
		Short: "Copy files from a running replica, or into it",
		Long: `Copy a file or a directory from a running replica to this machine, or the other way. A path in a replica begins with the
replica's name and a colon; a job with one replica needs the colon only. The container must have tar.`,
		Example: `  trainyard cp demo worker-0:/tmp/model.pt model.pt
  trainyard cp demo config.json worker-1:/tmp/config.json
  trainyard cp demo :out out`,
		Args: c.checkArguments,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0], args[1], args[2]) },
	}
	addReplicaTarget(cmd, &c.replicaTarget)
	return cmd
}

// inReplica splits a path in a replica. A path that has a slash before its first colon is one of this machine.
func inReplica(path string) (replica, file string, is bool) {
	replica, file, is = strings.Cut(path, ":")
	return replica, file, is && !strings.ContainsAny(replica, `/\.`) && filepath.VolumeName(path) == ""
}

func (*copying) checkArguments(_ *cobra.Command, args []string) error {
	const usage = "as in `trainyard cp demo worker-0:/tmp/model.pt model.pt`"
	if len(args) != 3 {
		return usageError{errors.New("name a job, what to copy and where to, " + usage)}
	}
	_, from, source := inReplica(args[1])
	_, to, destination := inReplica(args[2])
	switch {
	case source == destination:
		return usageError{errors.New("one of the two paths must be in a replica, " + usage)}
	case source && from == "" || destination && to == "":
		return usageError{errors.New("the path in the replica is empty: put one after the colon, " + usage)}
	case source:
		return nil
	}
	if _, err := os.Stat(args[1]); err != nil {
		return usageError{err}
	}
	return nil
}

func (c *copying) run(cmd *cobra.Command, jobName, source, destination string) error {
	replica, file, download := inReplica(source)
	if !download {
		replica, file, _ = inReplica(destination)
	}
	r, err := c.reach(cmd.Context(), jobName, replica)
	if err != nil {
		return err
	}
	args := []string{r.pod.Name + ":" + file, destination}
	if !download {
		args = []string{source, r.pod.Name + ":" + file}
	}
	options := kubectlcp.NewCopyOptions(genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()})
	options.Container = r.container
	if err := options.Complete(cmdutil.NewFactory(podAccess{r}), cmd, args); err != nil {
		return err
	}
	if err := options.Run(); err != nil {
		return c.explain(fmt.Errorf("copying %s to %s: %w", source, destination, err))
	}
	return nil
}

// podAccess gives kubectl's code access to a replica's namespace, by the connection that is open already.
type podAccess struct{ *reached }

func (a podAccess) ToRESTConfig() (*rest.Config, error) { return a.config, nil }

func (a podAccess) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: a.pod.Namespace}})
}

// errNoDiscovery is the answer to requests that no verb of a replica makes.
var errNoDiscovery = errors.New("only pods are known here")

func (podAccess) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return nil, errNoDiscovery
}

func (podAccess) ToRESTMapper() (meta.RESTMapper, error) { return nil, errNoDiscovery }
