package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// typesIn is trainyard with these arguments in a shell with this environment.
func typesIn(environment []string, args ...string) *exec.Cmd {
	return &exec.Cmd{Path: "/proc/self/exe", Args: append([]string{trainyardName}, args...), Env: environment}
}

// proxy is an HTTP proxy on this machine that answers everything itself.
type proxy struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newProxy(t *testing.T) *proxy {
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.Host)
		p.mu.Unlock()
		fmt.Fprint(w, "from the proxy")
	}))
	t.Cleanup(p.Close)
	return p
}

// In the shell of a person behind a proxy the cluster works, and pods use the proxy for all that is not in the cluster.
func TestAProxyIsForPodsAndNotForTheCluster(t *testing.T) {
	t.Parallel()
	d, p := desk{&local.World{TB: t}}, newProxy(t)
	behind := append(os.Environ(), "HTTP_PROXY="+p.URL, "HTTPS_PROXY="+p.URL, "http_proxy="+p.URL, "https_proxy="+p.URL, "ALL_PROXY="+p.URL)
	training := `
import http.server, socket, threading, urllib.request
read = lambda url: urllib.request.urlopen(url, timeout=60).read().decode()
class Peer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"from a peer")
threading.Thread(target=http.server.HTTPServer(("", 8080), Peer).serve_forever, daemon=True).start()
print("outside:", read("http://models.example/weights"))
print("inside:", read("http://%s.default.svc:8080/" % socket.gethostname()))`
	o := finish(d, typesIn(behind, "run", "--data-dir="+t.TempDir(), "--name=behind", "--", "python3", "-u", "-c", training))
	d.expect(o, 0, `^worker-0 \| outside: from the proxy$`, `^worker-0 \| inside: from a peer$`, `^behind succeeded`)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.asked, []string{"GET models.example"}) {
		t.Errorf("the proxy was asked for %v", p.asked)
	}
}

// A command has the environment of its own shell, whichever shell started the cluster.
func TestACommandHasTheEnvironmentOfItsShell(t *testing.T) {
	t.Parallel()
	d := desk{&local.World{TB: t}}
	path := "PATH=" + os.Getenv("PATH")
	shell := []string{path, "HOME=" + t.TempDir(), "LD_LIBRARY_PATH=/mine/lib", "CONDA_DEFAULT_ENV=mine", "PYTHONPATH=/mine/$(odd)", "LOADEDMODULES=cuda/12:nccl", "SECRET=1"}
	others := []string{path, "HOME=" + t.TempDir(), "LD_LIBRARY_PATH=/theirs", "VIRTUAL_ENV=/theirs", "http_proxy=http://theirs:1"}
	environment := func(dataDir string) []string {
		o := finish(d, typesIn(shell, "run", "--data-dir="+dataDir, "--name=same", "--", "sh", "-c", "env | sort"))
		d.expect(o, 0)
		var lines []string
		for _, line := range regexp.MustCompile(`(?m)^worker-0 \| (\w+)=(.*)$`).FindAllStringSubmatch(o.Stdout, -1) {
			if name := line[1]; !slices.Contains([]string{"HOME", "PET_RDZV_ID"}, name) && !strings.HasPrefix(name, "KUBERNETES_") {
				lines = append(lines, line[1]+"="+line[2])
			}
		}
		return lines
	}
	up := local.StartUpIn(t, others, t.TempDir()).Ready()
	joined, own := environment(up.DataDir), environment(t.TempDir())
	if diff := cmp.Diff(own, joined); diff != "" {
		t.Errorf("in a cluster that it joins (+) a command has another environment than in its own (-):\n%s", diff)
	}
	for _, want := range shell {
		if name, _, _ := strings.Cut(want, "="); name != "HOME" && slices.Contains(own, want) != (name != "SECRET") {
			t.Errorf("%s: the environment is\n%s", want, strings.Join(own, "\n"))
		}
	}
}
