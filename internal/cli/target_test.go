package cli

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// If the local cluster has been started, all verbs use it except install.
func TestInstallIsNotForTheLocalCluster(t *testing.T) {
	hideClusters(t)
	const here, there = "https://127.0.0.1:1", "https://127.0.0.1:2"
	writeKubeconfig(t, filepath.Join(os.Getenv("TRAINYARD_DATA_DIR"), "kubeconfig"), here)
	for remote, want := range map[bool]string{false: here, true: ""} {
		if got := host(target{remote: remote}); got != want {
			t.Errorf("without ~/.kube/config, remote %t: it uses %q, want %q", remote, got, want)
		}
	}
	writeKubeconfig(t, clientcmd.RecommendedHomeFile, there)
	for remote, want := range map[bool]string{false: here, true: there} {
		if got := host(target{remote: remote}); got != want {
			t.Errorf("with ~/.kube/config, remote %t: it uses %q, want %q", remote, got, want)
		}
	}
}

// host is the cluster of a target, empty if there is none.
func host(t target) string {
	config, err := t.config()
	if err != nil {
		return ""
	}
	return config.Host
}

func writeKubeconfig(t *testing.T, file, server string) {
	t.Helper()
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
}
