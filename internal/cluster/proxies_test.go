package cluster

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPodsGetTheProxiesOfTheShell(t *testing.T) {
	const inside = "localhost,127.0.0.1,10.213.0.0/16,10.214.0.0/16,.svc,.cluster.local,host.trainyard.internal"
	for _, row := range []struct {
		name        string
		shell, want []string
	}{
		{"no proxy: pods get nothing", []string{"NO_PROXY=corp"}, nil},
		{"a proxy: what is in the cluster is reached without it", []string{"HTTPS_PROXY=http://proxy:3128"},
			[]string{"HTTPS_PROXY=http://proxy:3128", "grpc_proxy=", "no_proxy=" + inside, "NO_PROXY=" + inside}},
		{"the person's exceptions stay", []string{"http_proxy=http://proxy", "NO_PROXY=.corp, 10.0.0.0/8", "no_proxy=.corp"},
			[]string{"http_proxy=http://proxy", "grpc_proxy=", "no_proxy=.corp,10.0.0.0/8," + inside, "NO_PROXY=.corp,10.0.0.0/8," + inside}},
		{"a proxy on the machine's own 127.0.0.1, which is the pod's for a pod", []string{"http_proxy=http://me:secret@127.0.0.1:3128/", "ALL_PROXY=socks5h://localhost:1080", "https_proxy=localhost:8080"},
			[]string{"http_proxy=http://me:secret@host.trainyard.internal:3128/", "ALL_PROXY=socks5h://host.trainyard.internal:1080",
				"https_proxy=host.trainyard.internal:8080", "grpc_proxy=", "no_proxy=" + inside, "NO_PROXY=" + inside}},
		{"gRPC uses a proxy if the person says so", []string{"grpc_proxy=http://proxy"}, []string{"grpc_proxy=http://proxy", "no_proxy=" + inside, "NO_PROXY=" + inside}},
		{"an empty variable is none", []string{"http_proxy="}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := Inherited(append([]string{"PATH=/bin", "SECRET=1"}, row.shell...))
			if diff := cmp.Diff(append([]string{"PATH=/bin"}, row.want...), got); diff != "" {
				t.Error(diff)
			}
			if left := withoutProxies(append(row.shell, "PATH=/bin")); !slices.Equal(left, []string{"PATH=/bin"}) {
				t.Errorf("the cluster's own parts see %v", left)
			}
		})
	}
}
