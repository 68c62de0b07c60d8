// Package kubeconfig marks the kubeconfigs of local clusters, and recognises them. It is apart from the local cluster, because clients
// on other systems than Linux read such files, too.
package kubeconfig

import (
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// localMark is in the kubeconfig of a cluster that runs its pods on this machine, also where the file is copied.
const localMark = "trainyard.dev/local-cluster"

// LocalMark are the extensions of a cluster that runs its pods on this machine.
func LocalMark() map[string]runtime.Object {
	return map[string]runtime.Object{localMark: &runtime.Unknown{Raw: []byte("{}"), ContentType: runtime.ContentTypeJSON}}
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
