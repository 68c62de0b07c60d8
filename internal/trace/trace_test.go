package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/manifest/traceid"
	"github.com/trainyard/trainyard/internal/record"
)

var day = time.Date(2026, 11, 16, 8, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return day.Add(time.Duration(seconds) * time.Second) }

// pod is a pod of a worker that was created at a second, scheduled a second later, started two later, and ended.
func pod(index, attempt, created, ended int, exit int32) record.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID: types.UID(fmt.Sprintf("p%d-%d", index, attempt)), Name: fmt.Sprint("demo-worker-", index), CreationTimestamp: metav1.NewTime(at(created)),
		Labels: map[string]string{naming.LabelReplicaType: "worker", naming.LabelReplicaIndex: fmt.Sprint(index), naming.LabelAttempt: fmt.Sprint(attempt)},
	}}
	p.Spec.NodeName = "a"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(created + 1))}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, StartedAt: metav1.NewTime(at(created + 2)), FinishedAt: metav1.NewTime(at(ended))},
	}}}
	return record.Pod{Pod: p}
}

// restarted is a job whose second worker failed once.
func restarted() *record.Record {
	return &record.Record{
		Summary: record.Summary{Namespace: "default", UID: "j1", Kind: "PyTorchJob", Name: "demo", State: "Succeeded", Created: day, Started: day, Ended: at(60), Retries: 1},
		Object:  json.RawMessage(`{"metadata":{}}`),
		Attempts: []record.Attempt{
			{Number: 0, Start: at(1), End: at(20), Reason: "Restarted", Message: "Worker 1 exited with code 1"}, {Number: 1, Start: at(30), End: at(60), Reason: "Succeeded"},
		},
		Pods: []record.Pod{pod(0, 0, 1, 19, 143), pod(1, 0, 1, 18, 1), pod(0, 1, 30, 59, 0), pod(1, 1, 30, 60, 0)},
	}
}

// drawn is a trace as a tree.
func drawn(spans []Span) string {
	depth, out := map[string]int{}, ""
	for _, s := range spans {
		depth[s.ID] = depth[s.Parent] + 1
		line := fmt.Sprintf("%s%s %s–%s", strings.Repeat("  ", depth[s.ID]-1), s.Name, s.Start.Sub(day), s.End.Sub(day))
		if s.Failure != "" {
			line += ": " + s.Failure
		}
		out += line + "\n"
	}
	return out
}

func TestAJobsLifeAsSpans(t *testing.T) {
	const want = `job demo 0s–1m0s
  queued 0s–1s
  attempt 1 1s–20s: Worker 1 exited with code 1
    worker-0 1s–19s: exited with code 143
      scheduling 1s–2s
      starting 2s–3s
      training 3s–19s: exited with code 143
    worker-1 1s–18s: exited with code 1
      scheduling 1s–2s
      starting 2s–3s
      training 3s–18s: exited with code 1
  restart 20s–30s
  attempt 2 30s–1m0s
    worker-0 30s–59s
      scheduling 30s–31s
      starting 31s–32s
      training 32s–59s
    worker-1 30s–1m0s
      scheduling 30s–31s
      starting 31s–32s
      training 32s–1m0s
`
	spans := Spans(restarted())
	if got := drawn(spans); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	ids := map[string]bool{}
	for _, s := range spans {
		if len(s.Trace) != 32 || len(s.ID) != 16 || ids[s.ID] || s.Trace != spans[0].Trace || s.Attributes[0] != [2]string{"trainyard.job.name", "demo"} {
			t.Errorf("span %+v", s)
		}
		ids[s.ID] = true
	}
}

// TestWhatHasEndedStays compares the trace of a job that runs with its trace later.
func TestWhatHasEndedStays(t *testing.T) {
	later := map[string]Span{}
	for _, s := range Spans(restarted()) {
		later[s.ID] = s
	}
	running := restarted()
	running.Summary.Ended, running.Summary.State = time.Time{}, "Running"
	running.Attempts[1] = record.Attempt{Number: 1, Start: at(30)}
	running.Pods[2].Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at(32))}}
	spans := Spans(running)
	if len(spans) == 0 || len(spans) >= len(later) {
		t.Fatalf("%d spans of %d have ended", len(spans), len(later))
	}
	for _, s := range spans {
		if fmt.Sprint(later[s.ID]) != fmt.Sprint(s) {
			t.Errorf("%s %s–%s is another span later: %v", s.Name, s.Start, s.End, later[s.ID])
		}
	}
}

func TestTheTraceOfAJobContinuesTheOneThatItNames(t *testing.T) {
	r := restarted()
	r.Object = json.RawMessage(`{"metadata":{"annotations":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}`)
	if root := Spans(r)[0]; root.Trace != "0af7651916cd43dd8448eb211c80319c" || root.Parent != "b7ad6b7169203331" {
		t.Errorf("the job's span is %+v", root)
	}
}

// TestAReplacedPodIsOfTheSameReplica gives a worker a second pod in the same attempt.
func TestAReplacedPodIsOfTheSameReplica(t *testing.T) {
	r := restarted()
	again := pod(1, 0, 10, 18, 1)
	again.Pod.UID = "p1-again"
	r.Pods = []record.Pod{pod(0, 0, 1, 19, 143), pod(1, 0, 1, 9, 7), again}
	const want = `    worker-1 1s–18s: exited with code 1
      scheduling 1s–2s
      starting 2s–3s
      training 3s–9s: exited with code 7
      scheduling 10s–11s
      starting 11s–12s
      training 12s–18s: exited with code 1
`
	if got := drawn(Spans(r)); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestALargeAttemptHasOnlyTheSpansThatMatter(t *testing.T) {
	r := restarted()
	r.Pods = nil
	for i := range 1000 {
		exit := int32(0)
		if i == 500 {
			exit = 1
		}
		r.Pods = append(r.Pods, pod(i, 0, 1, 18, exit))
	}
	workers := 0
	for _, s := range Spans(r) {
		if strings.HasPrefix(s.Name, "worker-") {
			workers++
		}
	}
	if workers != slowest+1 {
		t.Errorf("%d replicas have spans", workers)
	}
}

func TestSend(t *testing.T) {
	var got, path, kind string
	code := http.StatusOK
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, path, kind = string(body), r.URL.Path, r.Header.Get("Content-Type")
		w.WriteHeader(code)
		_, _ = w.Write([]byte("no room"))
	}))
	defer collector.Close()
	r := restarted()
	r.Attempts, r.Summary.State, r.Summary.Message = nil, "Failed", "it failed"
	if err := Send(t.Context(), collector.URL+"/", Spans(r)); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"trainyard"}}]},"scopeSpans":[{"scope":{"name":"trainyard"},"spans":[`+
		`{"traceId":"%s","spanId":"%s","name":"job demo","kind":1,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":`, traceid.Of("j1", nil).ID, traceid.Of("j1", nil).Job(), day.UnixNano(), at(60).UnixNano())
	if path != "/v1/traces" || kind != "application/json" || !strings.HasPrefix(got, want) || !strings.HasSuffix(got, `"status":{"code":2,"message":"it failed"}}]}]}]}`) {
		t.Errorf("%s gets %s", path, got)
	}
	code = http.StatusServiceUnavailable
	if err := Send(t.Context(), collector.URL, nil); err == nil || !strings.HasSuffix(err.Error(), "answers 503 Service Unavailable: no room") {
		t.Errorf("the error is %v", err)
	}
}
