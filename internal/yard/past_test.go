package yard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/record"
)

// stoppedYard is a cluster that is not running. It had the job demo twice: the second one restarted as a whole, and then its worker in its pod.
func stoppedYard(t *testing.T) *Yard {
	t.Helper()
	y := &Yard{Namespace: "default", Past: record.Open(t.TempDir()), Stopped: true}
	for i, uid := range []types.UID{"aaaa1", "bbbb2"} {
		object := fmt.Sprintf(`{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"demo","namespace":"default","uid":%q},
		  "spec":{"pytorchReplicaSpecs":{"Worker":{"template":{"spec":{"containers":[{"name":"pytorch"},{"name":"side"}]}}}}},"status":{"attempt":1}}`, uid)
		summary := record.Summary{Namespace: "default", UID: uid, Kind: "PyTorchJob", Name: "demo", Created: day.Add(time.Duration(i) * time.Hour), State: "Running"}
		r := &record.Record{Summary: summary, Object: json.RawMessage(object), Attempts: []record.Attempt{{Number: 0, Reason: "Restarted"}, {Number: 1}}}
		for attempt, pod := range []types.UID{"p0", "p1"} {
			labels := map[string]string{naming.LabelReplicaType: "worker", naming.LabelReplicaIndex: "0", naming.LabelAttempt: fmt.Sprint(attempt)}
			r.Pods = append(r.Pods, record.Pod{Pod: corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{UID: pod, Name: "demo-worker-0", Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pytorch"}, {Name: "side"}}},
			}})
		}
		if err := errors.Join(y.Past.Save(r), y.Past.List(summary)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(attempt int, container string, restart int32, pod types.UID, entries ...string) {
		t.Helper()
		w, err := y.Past.WriteLog("default", "bbbb2", record.Log{Attempt: int32(attempt), Replica: "worker-0", Container: container, Restart: restart, Pod: pod})
		for _, e := range entries {
			err = errors.Join(err, w.Write([]byte(e+"\n")))
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write(0, "pytorch", 0, "p0", "2026-11-15T09:00:01Z stdout F first", "2026-11-15T09:00:02Z stderr P 10%\r", "2026-11-15T09:00:03Z stderr F 20%")
	write(1, "pytorch", 0, "p1", "2026-11-15T09:01:01Z stdout F second", "2026-11-15T09:01:02Z gap F lost")
	write(1, "pytorch", 1, "p1", "2026-11-15T09:02:01Z stdout F third", "2026-11-15T09:02:02Z stdout F fourth", "2026-11-15T09:02:03Z stdout P open")
	write(1, "side", 0, "p1", "2026-11-15T09:01:03Z stdout F beside")
	return y
}

func TestRecordedLogs(t *testing.T) {
	y := stoppedYard(t)
	j, err := y.Look(t.Context(), "demo")
	if err != nil || j.Job.UID != "bbbb2" || len(j.Status.Attempts) != 2 {
		t.Fatalf("the newest demo is not found: %v, %v", j, err)
	}
	for _, row := range []struct {
		sentence string
		query    LogQuery
		want     []string
	}{
		{"all runs of the container that trains, in the order of time", LogQuery{}, []string{"0 first", "0 20%", "1 second", "1 (lost)", "1 third", "1 fourth", "1 open"}},
		{"one attempt", LogQuery{Attempt: new(int32)}, []string{"0 first", "0 20%"}},
		{"the end of the last run", LogQuery{Tail: new(int64(2))}, []string{"1 fourth", "1 open"}},
		{"the end of an earlier attempt", LogQuery{Tail: new(int64(1)), Attempt: new(int32)}, []string{"0 20%"}},
		{"no line", LogQuery{Tail: new(int64)}, nil},
		{"the run before the last", LogQuery{Previous: true, Attempt: new(int32(1))}, []string{"1 second", "1 (lost)"}},
		{"another container", LogQuery{Container: "side"}, []string{"1 beside"}},
		{"another replica", LogQuery{Replica: "worker-1"}, nil},
		{"lines of the last minute", LogQuery{Since: time.Minute}, nil},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var got []string
			if err := y.Logs(t.Context(), j, row.query, func(l Line) { got = append(got, fmt.Sprintf("%d %s", l.Attempt, l.Text)) }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("other lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARecordedJobIsFoundByNameKindOrID(t *testing.T) {
	y := stoppedYard(t)
	for name, want := range map[string]types.UID{"demo": "bbbb2", "pytorchjob/demo": "bbbb2", "aaaa": "aaaa1", "tfjob/demo": "", "aaa": "", "none": ""} {
		j, err := y.Look(t.Context(), name)
		switch {
		case want == "" && !errors.Is(err, ErrNotFound):
			t.Errorf("%s: %v", name, err)
		case want != "" && (err != nil || j.Job.UID != want):
			t.Errorf("%s: %v, %v", name, j, err)
		}
	}
}

// kubelet shows only the newest file of a log. What was before comes from the record, and each line comes once.
func TestTheLogOfAPodThatIsThereBeginsInTheRecord(t *testing.T) {
	y := stoppedYard(t)
	j, err := y.Look(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	kubelet := http.NewServeMux()
	kubelet.HandleFunc("/api/v1/namespaces/default/pods/demo-worker-0/log", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("previous") == "true" {
			http.Error(w, "it is gone", http.StatusNotFound)
			return
		}
		fmt.Fprint(w, "2026-11-15T09:02:02Z fourth\n2026-11-15T09:02:03Z open and ended\n2026-11-15T09:02:04Z fifth\n")
	})
	server := httptest.NewServer(kubelet)
	defer server.Close()
	if y.Core, err = kubernetes.NewForConfig(&rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	pod := j.Recorded.Pods[1].Pod
	pod.Namespace = "default"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pytorch", RestartCount: 1}}
	logs, err := y.Past.Logs("default", "bbbb2")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		sentence string
		query    LogQuery
		want     []string
	}{
		{"all of it", LogQuery{}, []string{"second", "(lost)", "third", "fourth", "open and ended", "fifth"}},
		{"the end", LogQuery{Tail: new(int64(4))}, []string{"third", "fourth", "open and ended", "fifth"}},
		{"the run before", LogQuery{Previous: true}, []string{"second", "(lost)"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var got []string
			log := y.open(t.Context(), j, &pod, row.query, logs)
			merge([]*source{log}, func(l Line) { got = append(got, l.Text) })
			if diff := cmp.Diff(row.want, got); diff != "" || log.err != nil {
				t.Errorf("other lines (-want +got): %v\n%s", log.err, diff)
			}
		})
	}
}
