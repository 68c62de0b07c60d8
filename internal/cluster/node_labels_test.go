package cluster_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/cluster"
)

func TestNodeLabelsAreRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		flags   []string
		want    map[string][]string
		refused string
	}{
		{name: "none", want: map[string][]string{}},
		{name: "one value for all nodes", flags: []string{"team=blue"}, want: map[string][]string{"team": {"blue"}}},
		{name: "values for the nodes in turn", flags: []string{"topology.kubernetes.io/zone=a,b", "rack=r1,r2,r3"},
			want: map[string][]string{"topology.kubernetes.io/zone": {"a", "b"}, "rack": {"r1", "r2", "r3"}}},
		{name: "no value", flags: []string{"rack"}, refused: "write KEY=VALUE"},
		{name: "a key twice", flags: []string{"rack=a", "rack=b"}, refused: "twice"},
		{name: "no key", flags: []string{"=a"}, refused: "node label"},
		{name: "a value that is no label's", flags: []string{"rack=a b"}, refused: "rack=a b"},
		{name: "a key that kubelet may not set", flags: []string{"node-role.kubernetes.io/worker=yes"}, refused: "topology.kubernetes.io/zone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := cluster.ParseNodeLabels(c.flags)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
