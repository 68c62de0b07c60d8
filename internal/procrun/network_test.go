package procrun

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// address returns a pod's IP address.
func (w *world) address(pod string) string {
	w.Helper()
	status, err := w.PodSandboxStatus(context.Background(), pod, false)
	w.must(err)
	return status.GetStatus().GetNetwork().GetIp()
}

// answer is a script that answers on a TCP port with a word, for as long as it is let.
func answer(port int, word string) []string {
	return []string{binary, "answer", fmt.Sprint(port), word}
}

// Two pods listen on the same port, and a third, the node and each itself reach both.
func TestPodsReachEachOther(t *testing.T) {
	w := newWorld(t)
	command := func(port int, word string) func(*v1.ContainerConfig) {
		return func(c *v1.ContainerConfig) { c.Command = answer(port, word) }
	}
	first, second := w.pod("first"), w.pod("second")
	for pod, word := range map[string]string{first: "one", second: "two"} {
		for _, port := range []int{2222, 80} {
			w.logged(w.start(pod, "", command(port, word)), "listening")
		}
	}
	for _, port := range []int{2222, 80} {
		for pod, word := range map[string]string{first: "one", second: "two"} {
			target := fmt.Sprintf("%s:%d", w.address(pod), port)
			if got := hear(t, target); got != word {
				t.Errorf("the node hears %q from %s, want %q", got, target, word)
			}
			for _, from := range []string{first, second} {
				out, _ := w.run(from, "", func(c *v1.ContainerConfig) { c.Command = []string{binary, "hear", target} })
				if strings.TrimSpace(out) != word {
					t.Errorf("a pod hears %q from %s, want %q", out, target, word)
				}
			}
		}
	}
}

func hear(t *testing.T, target string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", target, testTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	text, err := readAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestHostNetwork(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("host", func(c *v1.PodSandboxConfig) {
		c.Linux.SecurityContext.NamespaceOptions.Network = v1.NamespaceMode_NODE
	})
	if ip := w.address(pod); ip != "" {
		t.Errorf("a pod on the host's network has the address %s", ip)
	}
	out, _ := w.run(pod, "ls /sys/class/net; hostname")
	name, err := os.Hostname()
	w.must(err)
	if !strings.Contains(out, "pods\n") || !strings.HasSuffix(out, name+"\n") {
		t.Errorf("the pod sees %q", out)
	}
}

func TestRoutesOfAPod(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Gateway = netip.MustParseAddr("10.99.255.254") })
	out, code := w.run(w.pod("routes"), "cat /proc/net/route; cat /proc/sys/net/ipv4/ip_unprivileged_port_start")
	// The kernel writes addresses backwards: destination, gateway.
	for _, want := range []string{"eth0\t00000000\tFEFF630A", "eth0\t0000620A\t0100630A", "eth0\t0000630A\t00000000", "\n0\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("missing %q in:\n%s", want, out)
		}
	}
}

func TestNodeOutsideThePodsRange(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Node = netip.MustParseAddr("10.97.0.1") })
	pod := w.pod("outside")
	w.logged(w.start(pod, "", func(c *v1.ContainerConfig) { c.Command = answer(2222, "here") }), "listening")
	if got := hear(t, w.address(pod)+":2222"); got != "here" {
		t.Errorf("the node hears %q", got)
	}
	out, _ := w.run(pod, "cat /proc/net/route")
	if want := "eth0\t0000620A\t0100610A"; !strings.Contains(out, want) {
		t.Errorf("missing %q in:\n%s", want, out)
	}
}

func TestSysctlsOfAPod(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("sysctl", func(c *v1.PodSandboxConfig) {
		c.Linux.Sysctls = map[string]string{"net.ipv4.ip_local_port_range": "20000\t30000"}
	})
	if out, _ := w.run(pod, "cat /proc/sys/net/ipv4/ip_local_port_range"); out != "20000\t30000\n" {
		t.Errorf("got %q", out)
	}
	config := podConfig(w, "bad")
	config.Linux.Sysctls = map[string]string{"no.such.thing": "1"}
	if _, err := w.RunPodSandbox(context.Background(), config, ""); err == nil || !strings.Contains(err.Error(), "no.such.thing") {
		t.Errorf("got %v", err)
	}
}

func TestAddresses(t *testing.T) {
	n := &network{config: Config{Pods: netip.MustParsePrefix("10.0.0.0/29")}, used: map[netip.Addr]bool{}}
	n.last = n.config.Pods.Addr()
	n.used[netip.MustParseAddr("10.0.0.1")] = true // the node
	take := func() string {
		addr, err := n.allocate()
		if err != nil {
			return err.Error()
		}
		return addr.String()
	}
	release := func(addr string) string { n.release(netip.MustParseAddr(addr)); return "" }
	for _, step := range []struct{ what, got, want string }{
		{"the node's is taken", take(), "10.0.0.2"},
		{"the next", take(), "10.0.0.3"},
		{"one comes back", release("10.0.0.2"), ""},
		{"it is not used again at once", take(), "10.0.0.4"},
		{"the next but one", take(), "10.0.0.5"},
		{"the last before broadcast", take(), "10.0.0.6"},
		{"then from the beginning", take(), "10.0.0.2"},
		{"none is left", take(), "no free pod address in 10.0.0.0/29"},
		{"one comes back", release("10.0.0.5"), ""},
		{"it is found", take(), "10.0.0.5"},
	} {
		if step.got != step.want {
			t.Errorf("%s: got %s, want %s", step.what, step.got, step.want)
		}
	}
}

// A stopped pod gives its address and its interface back.
func TestStoppedPodLeavesTheNetwork(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("leaving")
	addr := netip.MustParseAddr(w.address(pod))
	w.must(w.StopPodSandbox(context.Background(), pod))
	w.must(w.StopPodSandbox(context.Background(), pod))
	if w.network.used[addr] {
		t.Errorf("%s is still in use", addr)
	}
	if ip := w.address(pod); ip != "" {
		t.Errorf("the stopped pod has the address %s", ip)
	}
	w.eventually(func() bool { _, err := net.InterfaceByName("veth" + pod[:11]); return err != nil }, "the interface is gone")
}

func readAll(conn net.Conn) (string, error) {
	_ = conn.SetDeadline(time.Now().Add(testTimeout))
	buffer := make([]byte, 100)
	n, err := conn.Read(buffer)
	return string(buffer[:n]), err
}
