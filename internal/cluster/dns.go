package cluster

import (
	"fmt"
	"net"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/bind"       // the directives of the Corefile below
	_ "github.com/coredns/coredns/plugin/cache"      //
	_ "github.com/coredns/coredns/plugin/errors"     //
	_ "github.com/coredns/coredns/plugin/forward"    //
	_ "github.com/coredns/coredns/plugin/hosts"      //
	_ "github.com/coredns/coredns/plugin/kubernetes" //
	"k8s.io/klog/v2"
)

// HostName is the name by which pods reach the machine itself: what listens on its 127.0.0.1.
const HostName = "host.trainyard.internal"

// startDNS serves the names of services and pods on address, by CoreDNS, and passes other questions on. Answers about the
// cluster are not cached: a replica asks for its peers until they are there, and must see them at once.
func startDNS(kubeconfig string, address, upstream net.IP) (stop func(), err error) {
	corefile := fmt.Sprintf(`%[1]s in-addr.arpa ip6.arpa {
	bind %[2]s
	errors
	kubernetes %[1]s in-addr.arpa ip6.arpa {
		kubeconfig %[3]s
		pods insecure
		fallthrough in-addr.arpa ip6.arpa
		ttl 1
	}
}
. {
	bind %[2]s
	errors
	hosts {
		%[5]s %[6]s
		fallthrough
	}
	cache 30
	forward . %[4]s
}
`, clusterDomain, address, kubeconfig, upstream, hostAddress, HostName)
	caddy.Quiet, dnsserver.Quiet = true, true
	instance, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(corefile), Filepath: "Corefile", ServerTypeName: "dns"})
	klog.ClearLogger() // CoreDNS takes all components' logs for its own
	if err != nil {
		return nil, fmt.Errorf("starting DNS: %w", err)
	}
	return func() { _ = instance.Stop() }, nil
}
