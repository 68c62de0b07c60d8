package main

import "testing"

func TestTheDomainOfTheClusterIsInResolvConf(t *testing.T) {
	for _, row := range []struct{ sentence, content, want string }{
		{"a pod", "nameserver 10.96.0.10\nsearch lab.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n", "cluster.local"},
		{"another domain", "search lab.svc.k8s.example.com svc.k8s.example.com k8s.example.com example.com", "k8s.example.com"},
		{"with final dots", "search lab.svc.cluster.local. svc.cluster.local. cluster.local.", "cluster.local"},
		{"a namespace called svc", "search svc.svc.cluster.local svc.cluster.local cluster.local", "cluster.local"},
		{"a machine", "nameserver 127.0.0.53\nsearch example.com\n", ""},
		{"nothing", "", ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := domainOf(row.content); got != row.want {
				t.Errorf("the domain is %q, want %q", got, row.want)
			}
		})
	}
}
