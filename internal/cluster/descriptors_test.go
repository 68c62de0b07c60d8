package cluster_test

import (
	"context"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// A listener that could not accept a connection for want of a file descriptor accepts the next one.
func TestAShortageOfFileDescriptorsPasses(t *testing.T) {
	t.Parallel()
	c := local.Start(t, cluster.Options{})
	w := local.On(t, c)
	var limits unix.Rlimit
	if err := unix.Prlimit(c.Pid(), unix.RLIMIT_NOFILE, nil, &limits); err != nil {
		t.Fatal(err)
	}
	none := limits
	none.Cur = 3
	if err := unix.Prlimit(c.Pid(), unix.RLIMIT_NOFILE, &none, nil); err != nil {
		t.Fatal(err)
	}
	if err := askOnNewConnection(c, time.Second); err == nil {
		t.Error("the API server answers on a new connection, although it has no file descriptor for one")
	}
	if err := unix.Prlimit(c.Pid(), unix.RLIMIT_NOFILE, &limits, nil); err != nil {
		t.Fatal(err)
	}
	w.Eventually("the API server answers again", func() error { return askOnNewConnection(c, 10*time.Second) })
}

// askOnNewConnection asks for a namespace on a connection of its own.
func askOnNewConnection(c *cluster.Cluster, limit time.Duration) error {
	config := rest.CopyConfig(c.RESTConfig())
	config.Dial = (&net.Dialer{}).DialContext // so that client-go does not use a connection that it has
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_, err = client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	return err
}
