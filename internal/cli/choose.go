package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trainyard/trainyard/internal/kubeconfig"
)

// choice is the cluster of a verb whose flags name none, by one rule: the cluster of KUBECONFIG, else the local cluster while it runs,
// else the cluster of ~/.kube/config. A local cluster that does not run is chosen only if there is no other.
type choice struct {
	// kubeconfig is the local cluster's, empty if client-go's own rules find the cluster.
	kubeconfig string
	// notice says which cluster it is, empty if the person can expect no other.
	notice string
}

func chooseCluster() (choice, error) {
	dir, err := defaultDataDir()
	if err != nil {
		return choice{}, nil // without a home directory there is no local cluster
	}
	local := filepath.Join(dir, "kubeconfig")
	_, err = os.Stat(local)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return choice{}, err
	}
	started := err == nil
	running := started && clusterRuns(dir)
	named := configured()
	switch fromEnv := os.Getenv("KUBECONFIG") != ""; {
	case fromEnv && running && !kubeconfig.IsLocal(*named, ""):
		return choice{notice: fmt.Sprintf("The cluster is %s of KUBECONFIG. The local one is running, too: unset KUBECONFIG to use it.", contextOf(named))}, nil
	case fromEnv:
		return choice{}, nil
	case running && namesAnother(named, local):
		return choice{local, fmt.Sprintf("The cluster is the local one, because it is running. --context %s selects the one of ~/.kube/config.", named.CurrentContext)}, nil
	case running:
		return choice{kubeconfig: local}, nil
	case started && namesAnother(named, local):
		return choice{notice: fmt.Sprintf("The cluster is %s of ~/.kube/config. The local one is not running; --data-dir %s selects it.", contextOf(named), dir)}, nil
	case started:
		return choice{kubeconfig: local}, nil
	}
	return choice{}, nil
}

// namesAnother reports whether the current context of a configuration is of another cluster than the local one, whose kubeconfig is
// given. `up --kubeconfig` makes the local one current.
func namesAnother(config *clientcmdapi.Config, local string) bool {
	if !kubeconfig.IsLocal(*config, "") {
		return config.CurrentContext != ""
	}
	own, err := clientcmd.LoadFromFile(local)
	return err != nil || serverOf(own) != serverOf(config)
}

// serverOf is the server of the current context, empty if there is none.
func serverOf(config *clientcmdapi.Config) string {
	if context := config.Contexts[config.CurrentContext]; context != nil && config.Clusters[context.Cluster] != nil {
		return config.Clusters[context.Cluster].Server
	}
	return ""
}

// configured is what client-go's own rules find: the files of KUBECONFIG, else ~/.kube/config.
func configured() *clientcmdapi.Config {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return clientcmdapi.NewConfig() // whoever uses it reports the error
	}
	return config
}

func contextOf(config *clientcmdapi.Config) string {
	if config.CurrentContext == "" {
		return "no context"
	}
	return "context " + config.CurrentContext
}

// clusterOf is the kubeconfig of the local cluster of a data directory.
func clusterOf(dataDir string) (string, error) {
	file := filepath.Join(dataDir, "kubeconfig")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return "", usageError{fmt.Errorf("there is no local cluster in %s: `trainyard up --data-dir %[1]s` starts one", dataDir)}
	} else if err != nil {
		return "", usageError{err}
	}
	return file, nil
}
