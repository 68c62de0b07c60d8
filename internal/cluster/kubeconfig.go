package cluster

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// localMark is in the kubeconfig of a cluster that runs its pods on this machine, also where the file is copied.
const localMark = "trainyard.dev/local-cluster"

// encodeKubeconfig writes access to a cluster the way clients read it.
func encodeKubeconfig(config *rest.Config) ([]byte, error) {
	const name = "trainyard"
	mark := map[string]runtime.Object{localMark: &runtime.Unknown{Raw: []byte("{}"), ContentType: runtime.ContentTypeJSON}}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData, Extensions: mark}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}

// IsLocal reports whether a context of a kubeconfig, or its current one, is of a local cluster.
func IsLocal(config clientcmdapi.Config, context string) bool {
	if context == "" {
		context = config.CurrentContext
	}
	chosen := config.Contexts[context]
	if chosen == nil || config.Clusters[chosen.Cluster] == nil {
		return false
	}
	_, local := config.Clusters[chosen.Cluster].Extensions[localMark]
	return local
}
