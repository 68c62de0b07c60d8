package cluster_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// serving is a pod that sends its host name to everybody who connects to port 2222, the one all of TensorFlow's replicas listen on.
func serving(name string) *corev1.Pod {
	pod := local.Pod(name, python(`
import socket
door = socket.create_server(("", 2222))
while True:
    client, _ = door.accept()
    client.sendall(socket.gethostname().encode())
    client.close()`))
	pod.Labels = map[string]string{"app": "names"}
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(2222)}},
		PeriodSeconds: 1,
	}
	return pod
}

// idle is a pod in which a test runs its commands.
func idle(name string) *corev1.Pod {
	pod := local.Pod(name, "exec sleep 600")
	pod.Spec.TerminationGracePeriodSeconds = new(int64(0))
	return pod
}

// python is a shell command that runs a Python program with the machine's own Python.
func python(program string) string {
	return "exec /usr/bin/python3 -u -c '" + strings.ReplaceAll(program, "'", `'\''`) + "'"
}

// ask is a command that prints what a TCP server has to say.
func ask(host string, port int) string {
	return python(fmt.Sprintf(`
import socket
s = socket.create_connection((%q, %d), 10)
print(b"".join(iter(lambda: s.recv(65536), b"")).decode(), end="")`, host, port))
}

// run runs a shell command in a pod.
func run(w *local.World, pod, command string) string {
	w.Helper()
	return w.Kubectl("exec", pod, "--", "sh", "-c", command)
}

// ready waits for pods to be ready.
func ready(w *local.World, pods ...string) {
	w.Helper()
	for _, pod := range pods {
		w.Until(pod, "ready", isReady)
	}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestPodHasAnAddressAndAHostNameOfItsOwn(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Create(idle("one"), idle("two"))
	ready(w, "one", "two")
	for _, name := range []string{"one", "two"} {
		address := w.Get(name).Status.PodIP
		if got, want := run(w, name, "hostname; hostname -i; cat /etc/hostname"), name+"\n"+address+"\n"+name+"\n"; got != want {
			t.Errorf("the pod says of itself %q, kubelet says %q", got, want)
		}
		if hosts := run(w, name, "cat /etc/hosts"); !strings.Contains(hosts, address+"\t"+name) {
			t.Errorf("/etc/hosts of %s does not map its name to its address:\n%s", name, hosts)
		}
	}
	one, two := netip.MustParseAddr(w.Get("one").Status.PodIP), netip.MustParseAddr(w.Get("two").Status.PodIP)
	if one == two || !netip.MustParsePrefix("10.213.0.0/16").Contains(one) {
		t.Errorf("the pods have the addresses %s and %s", one, two)
	}
}

func TestTwoPodsListenOnTheSamePort(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Create(serving("worker-0"), serving("worker-1"), idle("client"))
	ready(w, "worker-0", "worker-1", "client")
	for _, name := range []string{"worker-0", "worker-1"} {
		if got := run(w, "client", ask(w.Get(name).Status.PodIP, 2222)); got != name {
			t.Errorf("port 2222 of %s is answered by %q", name, got)
		}
	}
}

func TestPodReachesTheMachinesNetwork(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Create(idle("client"))
	ready(w, "client")
	t.Run("what listens on the machine's 127.0.0.1 is host.trainyard.internal", func(t *testing.T) {
		port := say(t, "127.0.0.1", strings.NewReader("from the machine"))
		if got := run(w, "client", ask("host.trainyard.internal", port)); got != "from the machine" {
			t.Errorf("the pod reads %q", got)
		}
	})
	t.Run("what listens on its other addresses is found there", func(t *testing.T) {
		for _, address := range otherAddresses(t) {
			port := say(t, address, strings.NewReader("from the machine"))
			if got := run(w, "client", ask(address, port)); got != "from the machine" {
				t.Errorf("the pod reads %q from %s", got, address)
			}
		}
	})
	t.Run("a large download arrives whole", func(t *testing.T) {
		const size = 32 << 20
		content := strings.Repeat("0123456789abcdef", size/16)
		port := say(t, "127.0.0.1", strings.NewReader(content))
		got := run(w, "client", ask("host.trainyard.internal", port)+" | sha256sum")
		if want := fmt.Sprintf("%x  -\n", sha256.Sum256([]byte(content))); got != want {
			t.Errorf("the pod reads something of sum %s", got)
		}
	})
	t.Run("a port where nobody listens refuses at once", func(t *testing.T) {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := listener.Addr().(*net.TCPAddr).Port
		_ = listener.Close()
		o := w.Try("", "exec", "client", "--", "sh", "-c", ask("host.trainyard.internal", port))
		if o.Code == 0 || !strings.Contains(o.Stderr, "ConnectionRefusedError") {
			t.Errorf("connecting ends with code %d and %s", o.Code, o.Stderr)
		}
	})
}

// say serves one client on a free port of an address of this machine.
func say(t *testing.T, address string, content io.Reader) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp4", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(conn, content)
		_ = conn.Close()
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// otherAddresses are this machine's IPv4 addresses but for those of the loopback interface.
func otherAddresses(t *testing.T) []string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, address := range all {
		if ip := address.(*net.IPNet).IP; ip.To4() != nil && ip.IsGlobalUnicast() {
			found = append(found, ip.String())
		}
	}
	return found
}
