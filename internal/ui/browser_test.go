package ui

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/record"
)

var pictures = flag.String("pictures", "", "directory for pictures of the pages")

// timeout is how long a page may take to show something. It is generous: the machines are slow and shared.
const timeout = time.Minute

// tab is a page of a browser that has entered the dashboard. Whatever it complains about fails the test.
type tab struct {
	*testing.T
	*site
	ctx context.Context
}

// browse opens Chromium at the dashboard.
func browse(t *testing.T, s *site) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("there is no chromium: `make setup` installs it")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1280, 800),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(timeout))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &tab{T: t, site: s, ctx: ctx}
	b.listen()
	b.do("opening the link", log.Enable(), chromedp.Navigate(s.URL+s.server.Link()))
	return b
}

// listen fails the test for errors on the browser's console.
func (b *tab) listen() {
	var mu sync.Mutex
	var complaints []string
	complain := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		complaints = append(complaints, text)
	}
	chromedp.ListenTarget(b.ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complain(e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				for _, arg := range e.Args {
					complain(fmt.Sprintf("console: %s %s", arg.Value, arg.Description))
				}
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				complain(e.Entry.Text + " " + e.Entry.URL)
			}
		}
	})
	b.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if len(complaints) > 0 {
			b.Errorf("the browser complains:\n%s", strings.Join(complaints, "\n"))
		}
	})
}

// another opens another tab of the same browser.
func (b *tab) another(path string) *tab {
	b.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.Cleanup(cancel)
	next := &tab{T: b.T, site: b.site, ctx: ctx}
	next.listen()
	next.do("opening "+path, chromedp.Navigate(b.URL+path))
	return next
}

func (b *tab) do(what string, actions ...chromedp.Action) {
	b.Helper()
	done := make(chan error, 1)
	go func() { done <- chromedp.Run(b.ctx, actions...) }()
	select {
	case err := <-done:
		if err != nil {
			b.Fatalf("%s: %v", what, err)
		}
	case <-time.After(timeout):
		b.Fatalf("%s: the browser does not answer", what)
	}
}

// eval is the value of an expression in the page.
func (b *tab) eval(expression string) (text string) {
	b.Helper()
	b.do(expression, chromedp.Evaluate("String("+expression+")", &text))
	return text
}

// shows waits until the page shows all words.
func (b *tab) shows(words ...string) {
	b.Helper()
	b.becomes("document.body.innerText + document.title", func(text string) bool {
		for _, word := range words {
			if !strings.Contains(text, word) {
				return false
			}
		}
		return true
	}, fmt.Sprintf("%q", words))
}

// becomes waits until the value of an expression in the page is as wanted.
func (b *tab) becomes(expression string, wanted func(string) bool, what string) {
	b.Helper()
	last, tick := "", time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for end := time.After(timeout); ; {
		if last = b.eval(expression); wanted(last) {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			b.Fatalf("the page at %s never shows %s:\n%s", b.eval("location.href"), what, last)
		}
	}
}

func (b *tab) goTo(path string) {
	b.Helper()
	b.do("opening "+path, chromedp.Navigate(b.URL+path))
}

func (b *tab) keys(keys string) { b.Helper(); b.do("pressing "+keys, chromedp.KeyEvent(keys)) }

// picture draws the page, if pictures are wanted.
func (b *tab) picture(name, theme string) {
	b.Helper()
	if *pictures == "" {
		return
	}
	var png []byte
	b.do("drawing", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}), chromedp.Reload(),
		chromedp.WaitVisible("main nav, main .job", chromedp.ByQuery), chromedp.Sleep(time.Second), chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o600); err != nil {
		b.Fatal(err)
	}
}

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
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: created}, failing(created, false))
	const million = 1_000_000
	lines := make([]string, million)
	for i := range lines {
		lines[i] = fmt.Sprintf("step %d", i)
	}
	lines[700_000] = `<script>document.title="owned"</script><img src=x onerror="document.title='owned'"> needle`
	lines[million-1] = "\x1b[31mthe last line\x1b[0m"
	s.write(t, "j1", 0, "p0", lines...)

	b := browse(t, s)
	b.shows("demo", "Restarting", "Succeeded")
	if rows := b.eval("document.querySelectorAll('.job').length"); len(rows) > 2 {
		t.Errorf("%s rows are in the page", rows)
	}
	b.picture("dashboard-jobs", "light")

	t.Log("the list is searched and walked by keys")
	b.keys("/")
	b.becomes("document.activeElement.type", func(kind string) bool { return kind == "search" }, "the search field in focus")
	b.keys("job-00777")
	b.shows("job-00777")
	b.becomes("document.querySelectorAll('a.job').length", func(n string) bool { return n == "1" }, "one job")
	b.goTo("/?q=demo")
	b.shows("demo")
	b.keys("j")
	b.becomes("document.querySelectorAll('a.job.selected').length", func(n string) bool { return n == "1" }, "a selected job")
	b.keys(kb.Enter)
	b.shows("demo · Trainyard", "Worker 0 exited with code 1")

	t.Log("the timeline shows the failure, and a click opens the log")
	b.goTo("/jobs/j1/timeline")
	b.shows("worker-0")
	b.do("clicking the bar", chromedp.Click("button.span.bad", chromedp.ByQuery))
	b.shows("1000000 lines", "the last line")
	if colour := b.eval("document.querySelector('.log .f1').textContent"); colour != "the last line" {
		t.Errorf("red is %q", colour)
	}
	if rows := b.eval("document.querySelectorAll('.log .rows > div').length"); len(rows) > 3 {
		t.Errorf("%s lines are in the page", rows)
	}

	t.Log("the log is searched, and a line has a link")
	b.keys("/")
	b.becomes("document.activeElement.type", func(kind string) bool { return kind == "search" }, "the search field in focus")
	b.keys("needle")
	b.becomes("document.querySelector('[role=status]')?.textContent ?? ''", func(text string) bool { return text == "1 line" }, "one line that was found")
	b.keys(kb.Enter)
	b.shows("needle", `<script>document.title="owned"</script>`)
	b.becomes("location.search", func(query string) bool { return strings.Contains(query, "line=700001") }, "the line in the address")
	b.goTo(b.eval("location.pathname + location.search"))
	b.becomes("document.querySelector('.log .here')?.textContent ?? ''", func(text string) bool { return strings.Contains(text, "needle") }, "the line of the link")
	if title := b.eval("document.title"); title != "demo · Trainyard" {
		t.Errorf("a log line was taken as HTML: %s", title)
	}

	t.Log("what happens is shown in every tab")
	tabs := []*tab{b}
	for range 6 {
		tabs = append(tabs, b.another("/jobs/j1"))
	}
	b.goTo("/jobs/j1/events")
	b.shows("onerror=alert(1)")
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: created}, failing(created, true))
	s.write(t, "j1", 1, "p1", "the second attempt")
	for _, each := range tabs { // a page follows the server while it can be seen
		each.do("looking at it", page.BringToFront())
		each.shows("Succeeded")
	}
	b.do("looking at it", page.BringToFront())
	b.goTo("/jobs/j1/manifest")
	b.shows("kind: PyTorchJob", "What looks like a secret is masked")
	b.goTo("/jobs/j1/logs")
	b.shows("the second attempt")
	b.picture("dashboard-logs", "dark")
	b.goTo("/jobs/j1/timeline")
	b.picture("dashboard-timeline", "light")
	b.goTo("/jobs/j1")
	b.picture("dashboard-job", "dark")
}
