package controller_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// A job of four pods costs nine requests until it has succeeded: two Services, four pods, and a record of each of its states,
// Created, Running and Succeeded. Where pods take long to come, how many are there is recorded every three seconds at
// most. What follows the end is told and cleaned up once.
func TestAJobOfFourPodsTakesNineRequests(t *testing.T) {
	t.Parallel()
	newWorld(t).takesRequests(map[string]int{"create services": 2, "create pods": 4}, 8)
}

// A gang costs one request more until it has succeeded, and one more afterwards: its pod group is created and deleted.
func TestAGangOfFourPodsTakesTenRequests(t *testing.T) {
	t.Parallel()
	newWorld(t).takesRequests(map[string]int{"create services": 2, "create pods": 4, "create podgroups": 1}, 9, asGang("demo", "", ""))
}

// takesRequests runs a job of four pods. It checks the requests until it has succeeded, besides the records, and how many follow at most.
func (w *world) takesRequests(want map[string]int, after int, changes ...func(*kubeflowv1.PyTorchJob)) {
	w.Helper()
	gate := filepath.Join(w.TempDir(), "gate")
	j, lived := w.lives(gang(3, `until test -f `+gate+`; do sleep 0.1; done`, changes...), func(s kubeflowv1.JobStatus) {
		if newest(s).Type == kubeflowv1.JobRunning {
			open(w.t, gate)
		}
	})
	s := lived[len(lived)-1]
	slowly := int(s.CompletionTime.Sub(s.StartTime.Time) / (3 * time.Second))
	w.Eventually("it is cleaned up", func() error {
		_, all := w.requestsUntil(len(lived))
		if told := j.events(); len(told) != 2 || all["delete services"] < 2 || all["delete podgroups"] < want["create podgroups"] {
			return fmt.Errorf("told was %q, and the requests were %v", told, all)
		}
		return nil
	})
	j.comesToRest()
	until, all := w.requestsUntil(len(lived))
	want["patch pytorchjobs/status"] = len(lived)
	if !maps.Equal(until, want) || len(lived) > 3+slowly {
		w.Errorf("until the end %v, in a life of %d times three seconds", until, slowly)
	}
	if all["create events"] != 2 || all["delete services"] != 2 || all["delete pods"] > 3 || all["patch pytorchjobs/status"] > len(lived)+1 ||
		all["delete podgroups"] != want["create podgroups"] || total(all) > total(until)+after {
		w.Errorf("at the end %v, when it had succeeded %v", all, until)
	}
}

// requestsUntil counts what the world's operator has asked for, until so many records of one job and in all.
func (w *world) requestsUntil(records int) (until, all map[string]int) {
	w.Helper()
	until, all = map[string]int{}, map[string]int{}
	for _, r := range w.audited(operatorOf(w.Namespace)) {
		name := r.String()
		if name == "" {
			continue
		}
		if all["patch pytorchjobs/status"] < records {
			until[name]++
		}
		all[name]++
	}
	return until, all
}

func total(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// A finished job is at peace: whatever comes by, it asks for nothing, and neither does an operator that starts.
func TestAFinishedJobTakesNoRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := filepath.Join(t.TempDir(), "gate")
	finished := w.submit(gang(1, fmt.Sprintf(`test $RANK = 1 || until test -f %s; do sleep 0.1; done`, gate)))
	finished.until("knows that the worker is done", func(s kubeflowv1.JobStatus) bool { // and has nothing to learn after the end
		return s.ReplicaStatuses["Worker"] != nil && s.ReplicaStatuses["Worker"].CompletedIndexes == "0"
	})
	open(t, gate)
	finished.becomes(kubeflowv1.JobSucceeded)
	w.Eventually("it is cleaned up", func() error {
		if left, told := finished.services(), finished.events(); len(left) > 0 || len(told) != 2 {
			return fmt.Errorf("services %q are there, told was %q", left, told)
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

// requestsAbout counts what the world's operator has asked of the API server about one job and its children.
func (w *world) requestsAbout(job string) map[string]int {
	w.Helper()
	count := map[string]int{}
	for _, r := range w.audited(operatorOf(w.Namespace)) {
		name := r.ObjectRef.Name
		about := name == job || strings.HasPrefix(name, job+"-") || strings.HasPrefix(name, job+".")
		if r.Verb == "list" {
			about = strings.Contains(r.RequestURI, "job-name%3D"+job)
		}
		if about && r.String() != "" {
			count[r.String()]++
		}
	}
	return count
}

// audit is a line of the API server's audit log.
type audit struct {
	Verb, UserAgent, RequestURI string
	RequestReceivedTimestamp    metav1.MicroTime
	Annotations                 map[string]string
	ObjectRef                   struct{ Resource, Subresource, Name, Namespace string }
}

// String is what was asked. It is empty for a watch of all there is, and the list that it begins with, which are not of one
// job.
func (a audit) String() string {
	if a.Verb == "watch" || a.Verb == "list" && !strings.Contains(a.RequestURI, "job-name%3D") {
		return ""
	}
	return strings.TrimRight(a.Verb+" "+a.ObjectRef.Resource+"/"+a.ObjectRef.Subresource, "/")
}

// audited are the requests in the world's namespace in the order they came, of one user agent or, if none is named, of all.
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
	slices.SortStableFunc(all, func(a, b audit) int { return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time) })
	return all
}
