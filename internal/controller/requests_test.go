package controller_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// A job of four pods costs nine requests: two Services, four pods, and a record of each of its states, Created, Running
// and Succeeded. Beside that each state is told once as an event; and where pods take long to come, how many are there is
// recorded every three seconds at most.
func TestAJobOfFourPodsTakesNineRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit(gang(3, `sleep 2`)).becomes(kubeflowv1.JobSucceeded)
	slowly := int((s.CompletionTime.Sub(s.StartTime.Time) - 2*time.Second) / (3 * time.Second))
	total, events := 0, 0
	for request, n := range w.requests() {
		switch verb, resource, _ := strings.Cut(request, " "); {
		case resource == "events":
			events += n
		case verb == "delete": // after Succeeded
		default:
			total += n
		}
	}
	if total > 9+slowly || events > 4 {
		t.Errorf("%d requests and %d events, in a life of %d times three seconds: %v", total, events, slowly, w.requests())
	}
}

// A finished job is at peace: whatever comes by, it asks for nothing, and neither does an operator that starts.
func TestAFinishedJobTakesNoRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	finished := w.submit(gang(1, `true`))
	finished.becomes(kubeflowv1.JobSucceeded)
	w.Eventually("it is cleaned up", func() error {
		if left := finished.services(); len(left) > 0 {
			return fmt.Errorf("services %q are there", left)
		}
		return nil
	})
	w.submit(gang(1, `true`, func(pj *kubeflowv1.PyTorchJob) { pj.Name = "next" })).becomes(kubeflowv1.JobSucceeded)
	settled := w.requestsAbout("demo")
	w.stop()
	w.operate()
	finished.edit(func(obj client.Object) { obj.SetAnnotations(map[string]string{"looked": "at"}) })
	w.submit(gang(1, `true`, func(pj *kubeflowv1.PyTorchJob) { pj.Name = "last" })).becomes(kubeflowv1.JobSucceeded)
	if now := w.requestsAbout("demo"); !maps.Equal(now, settled) {
		t.Errorf("a finished job led to requests: %v, before %v", now, settled)
	}
}

// A running job that nothing happens to is looked at again, by a resync or by an operator that starts, without a request.
func TestAResyncTakesNoRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	quiet := w.submit(gang(1, `sleep 600`))
	quiet.becomes(kubeflowv1.JobRunning)
	quiet.until("knows what its pods show", func(s kubeflowv1.JobStatus) bool { return s.Ready == "2/2" })
	settled := w.requestsAbout("demo")
	w.stop()
	w.operate()
	quiet.edit(func(obj client.Object) { obj.SetAnnotations(map[string]string{"looked": "at"}) })
	w.submit(gang(1, `true`, func(pj *kubeflowv1.PyTorchJob) { pj.Name = "next" })).becomes(kubeflowv1.JobSucceeded)
	if now := w.requestsAbout("demo"); !maps.Equal(now, settled) {
		t.Errorf("a resync led to requests: %v, before %v", now, settled)
	}
}

// requests counts what the world's operator has asked of the API server, watches and the lists they begin with left out.
func (w *world) requests() map[string]int { return w.requestsAbout("") }

// requestsAbout counts those about one job and its children.
func (w *world) requestsAbout(job string) map[string]int {
	w.Helper()
	count := map[string]int{}
	for _, r := range w.audited(operatorOf(w.Namespace)) {
		name := r.ObjectRef.Name
		about := name == job || strings.HasPrefix(name, job+"-") || strings.HasPrefix(name, job+".")
		if r.Verb == "list" { // of one job, or what a watch of all begins with
			about = strings.Contains(r.RequestURI, "job-name%3D"+job)
		}
		if r.Verb != "watch" && (about || job == "" && r.Verb != "list") {
			count[strings.TrimRight(r.Verb+" "+r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")]++
		}
	}
	return count
}

// audit is a line of the API server's audit log.
type audit struct {
	Verb, UserAgent, RequestURI string
	RequestReceivedTimestamp    metav1.MicroTime
	ObjectRef                   struct{ Resource, Subresource, Name, Namespace string }
}

// audited are the requests in the world's namespace, of one user agent or, if none is named, of all.
func (w *world) audited(agent string) []audit {
	w.Helper()
	file, err := os.Open(local.AuditLog(w))
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var all []audit
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line audit
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // the last line may still be being written
		}
		if line.ObjectRef.Namespace == w.Namespace && line.ObjectRef.Resource != "" && (agent == "" || line.UserAgent == agent) {
			all = append(all, line)
		}
	}
	return all
}
