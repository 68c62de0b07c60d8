package ui

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/testing/browser"
)

var pictures = flag.String("pictures", "", "directory for pictures of the pages")

// failing is a job whose worker failed once and then ran to its end, as far as ended says.
func failing(created time.Time, ended bool) func(*record.Record) {
	pod := func(uid types.UID, attempt int, exit int32) record.Pod {
		begin, end := created.Add(time.Duration(attempt*20+2)*time.Second), created.Add(time.Duration(attempt*20+18)*time.Second)
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, StartedAt: metav1.NewTime(begin), FinishedAt: metav1.NewTime(end)}}
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			UID: uid, Name: "demo-worker-0", CreationTimestamp: metav1.NewTime(created.Add(time.Duration(attempt*20) * time.Second)),
			Labels: map[string]string{naming.LabelReplicaType: "worker", naming.LabelReplicaIndex: "0", naming.LabelAttempt: fmt.Sprint(attempt)},
		}}
		p.Spec.NodeName, p.Spec.Containers = "trainyard", []corev1.Container{{Name: "pytorch"}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pytorch", State: state}}
		return record.Pod{Pod: p}
	}
	return func(r *record.Record) {
		r.Pods = []record.Pod{pod("p0", 0, 1)}
		r.Attempts = []record.Attempt{{Number: 0, Start: created, End: created.Add(20 * time.Second), Reason: "Restarted", Message: "Worker 0 exited with code 1"}}
		r.Events = []corev1.Event{{
			ObjectMeta: metav1.ObjectMeta{UID: "e1"}, InvolvedObject: corev1.ObjectReference{Kind: "PyTorchJob", Name: r.Summary.Name, UID: r.Summary.UID},
			Type: corev1.EventTypeWarning, Reason: "Restarting", Message: "PyTorchJob demo is restarting: <img src=x onerror=alert(1)>",
			FirstTimestamp: metav1.NewTime(created.Add(19 * time.Second)), LastTimestamp: metav1.NewTime(created.Add(19 * time.Second)),
		}}
		r.Summary.State, r.Summary.Started, r.Summary.Attempts, r.Summary.Replicas = "Restarting", created, 1, 1
		if ended {
			r.Pods = append(r.Pods, pod("p1", 1, 0))
			r.Attempts = append(r.Attempts, record.Attempt{Number: 1, Start: created.Add(20 * time.Second), End: created.Add(40 * time.Second), Reason: "Succeeded"})
			r.Summary.State, r.Summary.Ended, r.Summary.Attempts = "Succeeded", created.Add(40*time.Second), 2
		}
	}
}

// stopped is the pod of another worker that was deleted because this one failed.
func stopped(failed record.Pod) record.Pod {
	other := *failed.Pod.DeepCopy()
	other.UID, other.Name, other.Labels[naming.LabelReplicaIndex] = "p9", "demo-worker-1", "1"
	end := other.Status.ContainerStatuses[0].State.Terminated
	deleted, grace := metav1.NewTime(end.FinishedAt.Add(30*time.Second)), int64(30)
	end.ExitCode, other.DeletionTimestamp, other.DeletionGracePeriodSeconds = 143, &deleted, &grace
	return record.Pod{Pod: other}
}

// TestTheDashboard looks at ten thousand jobs and at a log of a million lines, as a person does.
func TestTheDashboard(t *testing.T) {
	s := newSite(t)
	for i := range 10_000 {
		created := day.Add(-time.Duration(i) * time.Minute)
		summary := record.Summary{Namespace: "default", Kind: "PyTorchJob", UID: types.UID(fmt.Sprintf("u%05d", i)), Name: fmt.Sprintf("job-%05d", i), State: "Succeeded",
			Created: created, Started: created, Ended: created.Add(time.Minute)}
		if err := s.store.List(summary); err != nil {
			t.Fatal(err)
		}
	}
	created := time.Now().Add(-time.Minute).Truncate(time.Second)
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: created}, func(r *record.Record) {
		failing(created, false)(r)
		r.Pods = append([]record.Pod{stopped(r.Pods[0])}, r.Pods...)
	})
	const million = 1_000_000
	lines := make([]string, million)
	for i := range lines {
		lines[i] = fmt.Sprintf("step %d", i)
	}
	lines[700_000] = `<script>document.title="owned"</script><img src=x onerror="document.title='owned'"> needle`
	lines[700_001] = "\x1b]0;owned\x07\x1b[2J\x1b[1;1H\x1b]8;;https://example.com\x07link\x1b]8;;\x07 \x1b[38;5;999999m after escapes"
	lines[700_002] = strings.Repeat("<b>long</b> ", 100_000) // more than a megabyte
	lines[million-1] = "\x1b[31mthe last line\x1b[0m"
	s.write(t, "j1", 0, "p0", lines...)

	b := browser.Open(t, s.URL+s.server.Link())
	b.Shows("demo", "Restarting", "Succeeded")
	if rows := b.Eval("document.querySelectorAll('.job').length"); len(rows) > 2 {
		t.Errorf("%s rows are in the page", rows)
	}
	b.Draw(*pictures, "dashboard-jobs", "light", "a.job")

	t.Log("the list is searched and walked by keys")
	b.Press("/")
	b.Becomes("document.activeElement.type", func(kind string) bool { return kind == "search" }, "the search field in focus")
	b.Press("job-00777")
	b.Shows("job-00777")
	b.Becomes("document.querySelectorAll('a.job').length", func(n string) bool { return n == "1" }, "one job")
	b.GoTo("/?q=demo")
	b.Shows("demo")
	b.Press("j")
	b.Becomes("document.querySelectorAll('a.job.selected').length", func(n string) bool { return n == "1" }, "a selected job")
	b.Press(kb.Enter)
	b.Shows("demo · Trainyard", "Worker 0 exited with code 1")

	t.Log("the timeline shows the failure, and a click opens the log")
	b.GoTo("/jobs/j1/timeline")
	b.Shows("worker-0", "worker-1")
	b.Becomes("[...document.querySelectorAll('button.span.gone, button.span.bad')].map((e) => e.className + ' ' + e.ariaLabel.slice(0, 8)).join(', ')",
		func(bars string) bool { return bars == "span bad worker-0, span gone worker-1" }, "one worker that failed and one that was stopped")
	b.Click("button.span.bad")
	b.Shows("1000000 lines", "the last line")
	if colour := b.Eval("document.querySelector('.log .f1').textContent"); colour != "the last line" {
		t.Errorf("red is %q", colour)
	}
	if rows := b.Eval("document.querySelectorAll('.log .rows > div').length"); len(rows) > 3 {
		t.Errorf("%s lines are in the page", rows)
	}

	t.Log("the log is searched, and a line has a link")
	b.Press("/")
	b.Becomes("document.activeElement.type", func(kind string) bool { return kind == "search" }, "the search field in focus")
	b.Press("needle")
	b.Becomes("document.querySelector('[role=status]')?.textContent ?? ''", func(text string) bool { return text == "1 line" }, "one line that was found")
	b.Press(kb.Enter)
	b.Shows("needle", `<script>document.title="owned"</script>`)
	b.Becomes("location.search", func(query string) bool { return strings.Contains(query, "line=700001") }, "the line in the address")
	b.GoTo(b.Eval("location.pathname + location.search"))
	b.Becomes("document.querySelector('.log .here')?.textContent ?? ''", func(text string) bool { return strings.Contains(text, "needle") }, "the line of the link")
	b.Shows("link", "after escapes", "<b>long</b> <b>long</b>")
	if links := b.Eval("document.querySelectorAll('.log .rows a[href^=http]').length + document.querySelectorAll('.log .rows b').length"); links != "0" {
		t.Errorf("log lines made %s elements", links)
	}
	if title := b.Eval("document.title"); title != "demo · Trainyard" {
		t.Errorf("a log line was taken as HTML: %s", title)
	}

	t.Log("what happens is shown in every tab")
	tabs := []*browser.Tab{b}
	for range 6 {
		tabs = append(tabs, b.Another("/jobs/j1"))
	}
	b.GoTo("/jobs/j1/events")
	b.Shows("onerror=alert(1)")
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: created}, failing(created, true))
	s.write(t, "j1", 1, "p1", "the second attempt")
	for _, each := range tabs { // a page follows the server while it can be seen
		each.Front()
		each.Shows("Succeeded")
	}
	b.Front()
	b.GoTo("/jobs/j1/manifest")
	b.Shows("kind: PyTorchJob", "What looks like a secret is masked")
	b.GoTo("/jobs/j1/logs")
	b.Shows("the second attempt", "1 line")
	progress, err := s.store.WriteLog("default", "j1", record.Log{Attempt: 1, Replica: "worker-0", Container: "pytorch", Pod: "p1"})
	for _, percent := range []int{6, 7} { // a bar that has no end yet
		if err == nil {
			err = progress.Write(fmt.Appendf(nil, "%s stderr P \r%d%% \x1b[38;5;9mdone\n", day.Add(time.Hour).Format(time.RFC3339Nano), percent))
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Shows(fmt.Sprintf("%d%% done", percent), "2 lines")
	}
	if colour := b.Eval("document.querySelector('.log .f1').textContent"); colour != "done" {
		t.Errorf("red is %q", colour)
	}
	b.Draw(*pictures, "dashboard-logs", "dark", ".log .no")
	b.GoTo("/jobs/j1/timeline")
	b.Draw(*pictures, "dashboard-timeline", "light", ".gantt .span")
	b.GoTo("/jobs/j1")
	b.Draw(*pictures, "dashboard-job", "dark", "#why")
}

// TestPlots looks at what two jobs used and printed, alone and side by side.
func TestPlots(t *testing.T) {
	s := newSite(t)
	s.stopped.Store(true)
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i, uid := range []types.UID{"j1", "j2"} {
		s.add(t, record.Summary{UID: uid, Name: fmt.Sprint("train-", i+1), Created: begin}, func(r *record.Record) {
			failing(begin, true)(r)
			r.Object = bytes.Replace(r.Object, []byte(`{"name":"pytorch"}`), []byte(`{"name":"pytorch","resources":{"limits":{"nvidia.com/gpu":"2"}}}`), 1)
		})
		lines := make([]string, 200)
		for step := range lines {
			lines[step] = fmt.Sprintf("step %d loss=%.4f lr=%g", step, 3/math.Sqrt(float64(step+1))+float64(i)/4, 1e-3)
		}
		lines[100] = "step 100 loss=nan lr=0.001"
		lines[199] = `trainyard-scalars {"step": 199, "expert balance": 0.75}`
		s.write(t, uid, 1, "p1", lines...)
		var uses []record.Use
		for n := range 60 {
			uses = append(uses, record.Use{Time: begin.Add(time.Duration(20+10*n) * time.Second), Pod: "p1", Cores: 1.5 + math.Sin(float64(n)/5)/4, Memory: int64(n+10) << 24,
				GPU: 1.8 + math.Cos(float64(n)/3)/5, GPUMemory: int64(n+40) << 28})
		}
		if err := s.store.AddUsage("default", uid, uses); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want string) func(string) bool { return func(got string) bool { return got == want } }
	b := browser.Open(t, s.URL+s.server.Link())
	b.GoTo("/jobs/j1/usage")
	b.Shows("Processors in use", "Memory in use", "GPUs in use", "Memory of GPUs in use", "worker-0")
	b.Becomes("document.querySelectorAll('.plot polyline').length", is("4"), "a line in each of four plots")
	b.Draw(*pictures, "dashboard-usage", "light", ".plot polyline")
	b.GoTo("/jobs/j1/scalars")
	b.Shows("loss", "lr", "expert balance", "0.75", "0.213") // the last loss
	b.Becomes("document.querySelectorAll('.plot[aria-label=loss] polyline').length", is("2"), "a loss that is interrupted where it is not a number")
	b.GoTo("/compare?a=j1")
	b.Shows("There are no other such jobs")
	b.GoTo("/compare?a=j1&q=train")
	b.Shows("train-2")
	b.Do("clicking train-2", chromedp.Click("//a[normalize-space()='train-2']", chromedp.BySearch))
	b.Shows("train-1 and train-2", "Outcome", "Succeeded", "loss", "0.463")
	b.Becomes("document.querySelectorAll('.plot[aria-label=loss] polyline').length", is("4"), "the losses of both")
	b.Becomes("[...document.querySelectorAll('#difference .added, #difference .removed')].map((e) => e.textContent.trim()).join(' ')", is("-   name: train-1 +   name: train-2"), "what differs")
	b.Draw(*pictures, "dashboard-compare", "dark", "#difference")
	b.GoTo("/capacity")
	b.Shows("The local cluster is not running.")
}
