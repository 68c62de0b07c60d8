package cluster

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// A person behind a proxy has variables for it in the shell. The cluster's own parts must not see them: the API server would ask the
// proxy for its kubelets. Pods need them, with exceptions for everything in the cluster.

// proxyNames are the variables that name a proxy, in lower case. Programs read them in either case.
var proxyNames = []string{"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "grpc_proxy"}

// noProxyName is the variable that lists what is reached without a proxy.
const noProxyName = "no_proxy"

// withoutProxies is an environment for the cluster's own parts.
func withoutProxies(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		name, _, _ := strings.Cut(strings.ToLower(variable), "=")
		return slices.Contains(proxyNames, name) || name == noProxyName
	})
}

// podProxies are the variables by which pods use the proxies of an environment, none if it has no proxy.
//
// gRPC uses http_proxy too, and replicas connect to each other by names without a dot, which no_proxy cannot describe. An empty
// grpc_proxy, unless the person set it, means that gRPC uses no proxy.
func podProxies(environment []string) []string {
	var proxies, exceptions []string
	grpc := false
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		switch lower := strings.ToLower(name); {
		case value == "":
		case lower == noProxyName:
			exceptions = append(exceptions, strings.Split(value, ",")...)
		case slices.Contains(proxyNames, lower):
			grpc = grpc || lower == "grpc_proxy"
			proxies = append(proxies, name+"="+proxySeenByPods(value))
		}
	}
	if len(proxies) == 0 {
		return nil
	}
	if !grpc {
		proxies = append(proxies, "grpc_proxy=")
	}
	exceptions = append(exceptions, "localhost", "127.0.0.1", podRange.String(), serviceRange.String(), ".svc", "."+clusterDomain, HostName)
	var unique []string
	for _, e := range exceptions {
		if e = strings.TrimSpace(e); e != "" && !slices.Contains(unique, e) {
			unique = append(unique, e)
		}
	}
	list := strings.Join(unique, ",")
	return append(proxies, noProxyName+"="+list, strings.ToUpper(noProxyName)+"="+list)
}

// proxySeenByPods replaces the machine's own 127.0.0.1 in a proxy's URL: in a pod that is the pod.
func proxySeenByPods(proxy string) string {
	bare := !strings.Contains(proxy, "://")
	text := proxy
	if bare {
		text = "http://" + proxy
	}
	u, err := url.Parse(text)
	if err != nil {
		return proxy
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return proxy
	}
	host := HostName
	if port := u.Port(); port != "" {
		host = net.JoinHostPort(HostName, port)
	}
	u.Host = host
	if bare {
		return strings.TrimPrefix(u.String(), "http://")
	}
	return u.String()
}
