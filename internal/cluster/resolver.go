package cluster

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// resolverConfig is the resolv.conf that kubelet completes for each pod: the cluster's DNS, and the machine's search list, so that pods
// find short names that the machine finds.
func resolverConfig(dns net.IP, machine string) []byte {
	config := fmt.Appendf(nil, "nameserver %s\n", dns)
	if list := searchList(machine); len(list) > 0 {
		config = fmt.Appendf(config, "search %s\n", strings.Join(list, " "))
	}
	return config
}

// machineResolver is the machine's resolv.conf; without one there is no search list.
func machineResolver() string {
	content, _ := os.ReadFile("/etc/resolv.conf")
	return string(content)
}

// searchList is the search list of a resolv.conf: its last line "search" or "domain". The root, which systemd writes, adds nothing.
func searchList(resolver string) (list []string) {
	for line := range strings.Lines(resolver) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "search" && fields[0] != "domain" {
			continue
		}
		list = nil
		for _, domain := range fields[1:] {
			if domain != "." {
				list = append(list, domain)
			}
		}
	}
	return list
}
