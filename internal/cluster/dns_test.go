package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// A headless Service over pods with a subdomain is how the replicas of a training job find each other.
func TestHeadlessServiceNamesItsPods(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(`
apiVersion: v1
kind: Service
metadata: {name: job}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {app: names}
  ports: [{name: torch, port: 2222}]
`)
	var addresses []string
	for _, name := range []string{"job-0", "job-1"} {
		pod := serving(name)
		pod.Spec.Hostname, pod.Spec.Subdomain = name, "job"
		w.Create(pod)
	}
	w.Create(idle("client"))
	ready(w, "client")
	for _, name := range []string{"job-0", "job-1"} {
		ready(w, name)
		addresses = append(addresses, w.Get(name).Status.PodIP)
	}
	slices.Sort(addresses)
	first := w.Get("job-0").Status.PodIP
	for _, c := range []struct{ name, want string }{
		{"job-0.job", first},
		{"job-0.job." + w.Namespace, first},
		{"job-0.job." + w.Namespace + ".svc.cluster.local", first},
		{"job", strings.Join(addresses, " ")},
		{"job." + w.Namespace + ".svc.cluster.local", strings.Join(addresses, " ")},
	} {
		if got := lookUp(w, "client", c.name); got != c.want {
			t.Errorf("%s is %q, not %q", c.name, got, c.want)
		}
	}
	t.Run("a pod's address has its name", func(t *testing.T) {
		if got := run(w, "client", "getent hosts "+first); !strings.Contains(got, "job-0.job."+w.Namespace+".svc.cluster.local") {
			t.Errorf("%s is of %q", first, got)
		}
	})
	t.Run("a pod knows its own full name", func(t *testing.T) {
		if got, want := run(w, "job-0", "hostname -f"), "job-0.job."+w.Namespace+".svc.cluster.local\n"; got != want {
			t.Errorf("it is %q, not %q", got, want)
		}
	})
	t.Run("an SRV record has the port", func(t *testing.T) {
		if got := run(w, "client", askSRV("_torch._tcp.job."+w.Namespace+".svc.cluster.local")); got != "2222\n" {
			t.Errorf("it is %q", got)
		}
	})
	t.Run("a pod that comes later is found at once, though it was asked for before", func(t *testing.T) {
		if o := w.Try("", "exec", "client", "--", "getent", "hosts", "job-2.job."+w.Namespace+".svc.cluster.local."); o.Code == 0 {
			t.Fatalf("job-2.job is %q before it is there", o.Stdout)
		}
		late := idle("job-2")
		late.Labels, late.Spec.Hostname, late.Spec.Subdomain = map[string]string{"app": "names"}, "job-2", "job"
		w.Create(late)
		ready(w, "job-2")
		w.Await(w.Get("job-2").Status.PodIP, "exec", "client", "--", "getent", "hosts", "job-2.job")
	})
}

func TestNamesOfOtherThings(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Create(idle("client"))
	ready(w, "client")
	t.Run("the API server", func(t *testing.T) {
		if got := lookUp(w, "client", "kubernetes.default.svc"); got != "10.214.0.1" {
			t.Errorf("kubernetes.default.svc is %q", got)
		}
	})
	t.Run("nothing has no address", func(t *testing.T) {
		if o := w.Try("", "exec", "client", "--", "getent", "hosts", "nothing."+w.Namespace+".svc.cluster.local"); o.Code == 0 {
			t.Errorf("it is %q", o.Stdout)
		}
	})
}

// lookUp gives the addresses of a name as a pod sees them, sorted.
func lookUp(w *local.World, pod, name string) string {
	w.Helper()
	all := strings.Fields(run(w, pod, "getent ahostsv4 "+name+" | awk '{print $1}' | sort -u"))
	slices.Sort(all)
	return strings.Join(all, " ")
}

// askSRV is a command that prints the port of the first answer to a question for an SRV record: a header of 12 bytes, the
// question, then in the answer the name, 8 bytes of type, class and time to live, the length, priority, weight and the port.
func askSRV(name string) string {
	return python(fmt.Sprintf(`
import re, socket, struct
server = re.search("nameserver (.*)", open("/etc/resolv.conf").read()).group(1)
name = b"".join(bytes([len(l)]) + l.encode() for l in %q.split(".")) + b"\0"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
s.sendto(struct.pack(">6H", 1, 256, 1, 0, 0, 0) + name + struct.pack(">2H", 33, 1), (server, 53))
answer = s.recv(4096)[12 + len(name) + 4:]
skip = 2 if answer[0] >= 192 else len(name)
print(struct.unpack(">H", answer[skip + 14:skip + 16])[0])`, name))
}
