package cluster

import (
	"net"
	"testing"
)

func TestPodsHaveTheMachinesSearchList(t *testing.T) {
	for _, row := range []struct{ name, machine, want string }{
		{"no resolv.conf", "", ""},
		{"no list", "nameserver 10.0.0.1\noptions edns0\n", ""},
		{"systemd's root", "search .\n", ""},
		{"a list", "# from DHCP\nsearch corp.example lab.example\nnameserver 10.0.0.1\n", "search corp.example lab.example\n"},
		{"the last one counts", "domain old.example\nsearch corp.example\n", "search corp.example\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got, want := string(resolverConfig(net.IPv4(10, 213, 0, 2), row.machine)), "nameserver 10.213.0.2\n"+row.want; got != want {
				t.Errorf("kubelet gets %q, want %q", got, want)
			}
		})
	}
}
