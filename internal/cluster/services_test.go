package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

const namesService = `
apiVersion: v1
kind: Service
metadata: {name: names}
spec:
  selector: {app: names}
  ports: [{port: 80, targetPort: 2222}]
`

func TestServiceSpreadsConnections(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(namesService)
	w.Create(serving("a"), serving("b"), serving("c"), idle("client"))
	ready(w, "a", "b", "c", "client")
	awaitEndpoints(w, "names", 3)

	t.Run("over all its pods", func(t *testing.T) {
		answers := run(w, "client", askOften("names", 80, 30))
		for _, name := range []string{"a", "b", "c"} {
			if n := strings.Count(answers, name); n < 5 {
				t.Errorf("%d of 30 connections reach pod %s", n, name)
			}
		}
	})
	t.Run("by every name it has", func(t *testing.T) {
		service, err := w.Client.CoreV1().Services(w.Namespace).Get(context.Background(), "names", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"names." + w.Namespace, "names." + w.Namespace + ".svc.cluster.local", service.Spec.ClusterIP} {
			if got := run(w, "client", ask(name, 80)); !strings.Contains("abc", got) || got == "" {
				t.Errorf("%s answers %q", name, got)
			}
		}
	})
	t.Run("also to the pod that asks", func(t *testing.T) {
		if answers := run(w, "a", askOften("names", 80, 6)); !strings.Contains(answers, "a") {
			t.Errorf("pod a never reaches itself: %s", answers)
		}
	})
	t.Run("a later pod finds it in its environment", func(t *testing.T) {
		w.Create(local.Pod("later", "echo $NAMES_SERVICE_HOST $NAMES_SERVICE_PORT"))
		w.UntilPhase("later", corev1.PodSucceeded)
		if got := w.Logs("later"); !strings.HasPrefix(got, "10.214.") || !strings.HasSuffix(got, " 80\n") {
			t.Errorf("it says %q", got)
		}
	})
}

func TestServiceLosesNoConnectionWhenAPodGoes(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(namesService)
	for _, name := range []string{"stays", "goes"} {
		pod := serving(name)
		pod.Spec.TerminationGracePeriodSeconds = new(int64(10))
		// As everywhere in Kubernetes, a server that wants to lose nobody serves on while word gets round that it goes.
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 2}}}
		w.Create(pod)
	}
	ready(w, "stays", "goes")
	awaitEndpoints(w, "names", 2)
	w.Create(local.Pod("client", python(`
import socket, time
seen = []
while seen[-50:] != ["stays"] * 50:
    with socket.create_connection(("names", 80), 5) as s:
        seen.append(s.recv(100).decode())
    if len(seen) == 20: print("begun")
    time.sleep(0.02)
assert "" not in seen, "a connection was cut"
assert "goes" in seen, "the pod that goes was never reached"`)))
	w.Await("begun", "logs", "client")
	w.Kubectl("delete", "pod", "goes", "--wait=false")
	w.Until("client", "ended", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	if w.Get("client").Status.Phase != corev1.PodSucceeded {
		t.Errorf("the client failed:\n%s", w.Logs("client"))
	}
}

func TestServiceWithoutPodsRefusesAtOnce(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(namesService)
	w.Create(idle("client"))
	ready(w, "client")
	refused := func() error {
		o := w.Try("", "exec", "client", "--", "sh", "-c", ask("names", 80))
		if o.Code == 0 || !strings.Contains(o.Stderr, "ConnectionRefusedError") {
			return fmt.Errorf("connecting ends with code %d and %s%s", o.Code, o.Stdout, o.Stderr)
		}
		return nil
	}
	if err := refused(); err != nil {
		t.Errorf("before there is a pod: %v", err)
	}
	w.Create(serving("only"))
	ready(w, "only")
	awaitEndpoints(w, "names", 1)
	if got := run(w, "client", ask("names", 80)); got != "only" {
		t.Errorf("while there is one: %q", got)
	}
	w.Kubectl("delete", "pod", "only", "--now")
	w.Eventually("after it has gone", refused)
}

func TestServiceCarriesUDP(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(`
apiVersion: v1
kind: Service
metadata: {name: echo}
spec:
  selector: {app: echo}
  ports: [{port: 53, targetPort: 5353, protocol: UDP}]
`)
	echo := func(name string) *corev1.Pod {
		pod := local.Pod(name, python(`
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5353))
while True:
    packet, client = s.recvfrom(65536)
    s.sendto(socket.gethostname().encode() + b" heard " + packet, client)`))
		pod.Labels = map[string]string{"app": "echo"}
		pod.Spec.TerminationGracePeriodSeconds = new(int64(0))
		return pod
	}
	w.Create(echo("first"))
	ready(w, "first")
	awaitEndpoints(w, "echo", 1)
	// One socket, so that the Service must move an existing session to another pod when the first is gone.
	w.Create(local.Pod("client", python(`
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
s.connect(("echo", 53))
last = b""
while last != b"second heard a word":
    try:
        s.send(b"a word")
        answer = s.recv(100)
    except OSError:
        answer = b""
    if answer and answer != last: print(answer.decode())
    last = answer or last
    time.sleep(0.05)`)))
	w.Await("first heard a word", "logs", "client")
	w.Create(echo("second"))
	ready(w, "second")
	w.Kubectl("delete", "pod", "first", "--now")
	w.UntilPhase("client", corev1.PodSucceeded)
}

func TestPodUsesTheAPIByItsServiceAccount(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	list := local.Pod("lists", python(`
import json, os, ssl, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
read = lambda name: open(account + name).read()
request = urllib.request.Request(
    f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}/api/v1/namespaces/{read('namespace')}/pods",
    headers={"Authorization": "Bearer " + read("token")})
try:
    answer = urllib.request.urlopen(request, context=ssl.create_default_context(cafile=account + "ca.crt"))
    print("pods:", [pod["metadata"]["name"] for pod in json.load(answer)["items"]])
except urllib.error.HTTPError as e:
    print("refused:", json.load(e)["message"])`))
	w.Create(list)
	w.UntilPhase("lists", corev1.PodSucceeded)
	if got := w.Logs("lists"); !strings.HasPrefix(got, "refused: pods is forbidden: User \"system:serviceaccount:"+w.Namespace+":default\" cannot list") {
		t.Errorf("without a right: %s", got)
	}
	w.Kubectl("create", "rolebinding", "readers", "--clusterrole=view", "--serviceaccount="+w.Namespace+":default")
	list.Name = "lists-again"
	w.Create(list)
	w.UntilPhase("lists-again", corev1.PodSucceeded)
	if got := w.Logs("lists-again"); got != "pods: ['lists', 'lists-again']\n" {
		t.Errorf("with the right: %s", got)
	}
}

// askOften is a command that prints what a server says to each of n connections.
func askOften(host string, port, n int) string {
	return python(fmt.Sprintf(`
import socket
for _ in range(%d):
    with socket.create_connection((%q, %d), 10) as s: print(s.recv(100).decode())`, n, host, port))
}

// awaitEndpoints waits until a Service has n ready endpoints.
func awaitEndpoints(w *local.World, service string, n int) {
	w.Helper()
	w.Eventually(fmt.Sprintf("Service %s has %d endpoints", service, n), func() error {
		all, err := w.Client.DiscoveryV1().EndpointSlices(w.Namespace).List(context.Background(),
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
		if err != nil {
			return err
		}
		found := 0
		for _, slice := range all.Items {
			for _, endpoint := range slice.Endpoints {
				if r := endpoint.Conditions.Ready; r == nil || *r {
					found++
				}
			}
		}
		if found != n {
			return fmt.Errorf("it has %d", found)
		}
		return nil
	})
}
