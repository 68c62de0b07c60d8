package main

import (
	"os"
	"strings"
)

// clusterDomain is the DNS domain that the flag names, or else that of the cluster in whose pod the operator runs; empty where neither
// says it.
func clusterDomain(o options) string {
	if o.clusterDomain != "" {
		return o.clusterDomain
	}
	content, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return ""
	}
	return domainOf(string(content))
}

// domainOf reads the cluster's domain from the search domains of a pod: NAMESPACE.svc.DOMAIN, svc.DOMAIN and DOMAIN. The namespace may
// be called svc, so the shortest domain counts.
func domainOf(resolvConf string) string {
	domain := ""
	for line := range strings.Lines(resolvConf) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "search" {
			continue
		}
		for _, search := range fields[1:] {
			after, found := strings.CutPrefix(strings.TrimSuffix(search, "."), "svc.")
			if found && (domain == "" || len(after) < len(domain)) {
				domain = after
			}
		}
	}
	return domain
}
