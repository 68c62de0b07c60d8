package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/yard"
)

var day = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

// site is a dashboard that serves a store.
type site struct {
	*httptest.Server
	server *Server
	store  *record.Store
	port   int
	// stopped says that the cluster does not run.
	stopped atomic.Bool
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{store: record.Open(t.TempDir())}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.server.Handler().ServeHTTP(w, r) }))
	_, port, _ := strings.Cut(s.Listener.Addr().String(), ":")
	s.port, _ = strconv.Atoi(port)
	refused := func(string) (*yard.Yard, error) { return nil, syscall.ECONNREFUSED }
	s.server = New(s.store, Cluster{Running: func() bool { return !s.stopped.Load() }, Open: refused}, s.port)
	s.Start()
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s
}

// add records a job with one worker.
func (s *site) add(t *testing.T, summary record.Summary, change func(*record.Record)) {
	t.Helper()
	summary.Namespace, summary.Kind = "default", "PyTorchJob"
	object := fmt.Sprintf(`{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":%q,"namespace":"default","uid":%q,"creationTimestamp":%q},
	  "spec":{"pytorchReplicaSpecs":{"Worker":{"template":{"spec":{"containers":[{"name":"pytorch"}]}}}}}}`, summary.Name, summary.UID, summary.Created.Format(time.RFC3339))
	r := &record.Record{Summary: summary, Object: json.RawMessage(object), Updated: summary.Created}
	change(r)
	if err := s.store.Save(r); err != nil {
		t.Fatal(err)
	}
	if err := s.store.List(r.Summary); err != nil {
		t.Fatal(err)
	}
}

// write records lines of the job's worker.
func (s *site) write(t *testing.T, uid types.UID, attempt int32, pod types.UID, lines ...string) {
	t.Helper()
	w, err := s.store.WriteLog("default", uid, record.Log{Attempt: attempt, Replica: "worker-0", Container: "pytorch", Pod: pod})
	if err != nil {
		t.Fatal(err)
	}
	var entries []byte
	for i, line := range lines {
		entries = fmt.Appendf(entries, "%s stdout F %s\n", day.Add(time.Duration(i)*time.Millisecond).Format(time.RFC3339Nano), line)
	}
	if err := w.Write(entries); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// enter opens the link and returns a client with its cookie.
func (s *site) enter(t *testing.T) *http.Cookie {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Get(s.URL + s.server.Link())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if len(response.Cookies()) != 1 || response.StatusCode != http.StatusSeeOther {
		t.Fatalf("the link answers %s and sets %v", response.Status, response.Cookies())
	}
	return response.Cookies()[0]
}

func (s *site) ask(t *testing.T, method, path string, change func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	change(r)
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return response.StatusCode, "", response.Header
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body), response.Header
}

// TestOnlyThePersonGetsAnAnswer asks every route as everybody who might.
func TestOnlyThePersonGetsAnAnswer(t *testing.T) {
	s := newSite(t)
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: day}, func(*record.Record) {})
	s.write(t, "j1", 0, "p1", "hello")
	link := s.server.Link()
	own := s.enter(t)
	log := url.QueryEscape("0/worker-0/pytorch.0.p1")
	values := strings.NewReplacer("{$}", "", "{uid}/log", "j1/log?log="+log, "{uid}/search", "j1/search?q=h&log="+log, "{uid}/whole-log", "j1/whole-log?log="+log, "{uid}/scale", "j1/scale?replicas=2", "{uid}", "j1", "{tab}", "logs", "{name}", "app.js")
	for pattern := range s.server.routes() {
		method, path, _ := strings.Cut(pattern, " ")
		path = values.Replace(path)
		for _, row := range []struct {
			who    string
			change func(*http.Request)
			// reads and changes are what requests get that read or change something.
			reads, changes int
		}{
			{"the person", func(r *http.Request) { r.AddCookie(own) }, http.StatusOK, http.StatusServiceUnavailable}, // the cluster does not answer
			{"nobody", func(*http.Request) {}, http.StatusUnauthorized, http.StatusUnauthorized},
			{"a wrong cookie", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: own.Name, Value: "guess"}) }, http.StatusUnauthorized, http.StatusUnauthorized},
			{"a page of another name", func(r *http.Request) { r.AddCookie(own); r.Host = "evil.example:" + strconv.Itoa(s.port) }, http.StatusMisdirectedRequest, http.StatusMisdirectedRequest},
			{"another port", func(r *http.Request) { r.AddCookie(own); r.Host = "127.0.0.1:1" }, http.StatusMisdirectedRequest, http.StatusMisdirectedRequest},
			// A browser does not send the cookie from there. If it did, the page could not read the answer, and nothing would change.
			{"a page of another origin", func(r *http.Request) { r.AddCookie(own); r.Header.Set("Origin", "http://evil.example") }, http.StatusOK, http.StatusForbidden},
			{"a page of another port", func(r *http.Request) { r.AddCookie(own); r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusOK, http.StatusForbidden},
		} {
			code, body, header := s.ask(t, method, path, row.change)
			want := row.reads
			switch {
			case method != http.MethodGet:
				want = row.changes
			case path == "/api/v1/capacity" && want == http.StatusOK: // it needs the cluster, too
				want = http.StatusServiceUnavailable
			}
			if code != want {
				t.Errorf("%s gets %d from %s %s, want %d: %s", row.who, code, method, path, want, body)
			}
			if allowed := header.Get("Access-Control-Allow-Origin"); allowed != "" {
				t.Errorf("%s %s lets %s read it", method, path, allowed)
			}
			if csp := header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'") || header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s has the headers %v", method, path, header)
			}
		}
	}
	for _, row := range []struct {
		sentence, method, path string
		change                 func(*http.Request)
		want                   int
	}{
		{"a person who is in may follow the link again", http.MethodGet, link, func(*http.Request) {}, http.StatusSeeOther},
		{"for others the link works once", http.MethodGet, link, func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
		{"the cookie of another dashboard of this machine is another", http.MethodGet, "/", func(r *http.Request) {
			r.Header.Set("Cookie", strings.Replace(own.String(), own.Name, "trainyard-1", 1))
		}, http.StatusUnauthorized},
		{"other paths do not exist", http.MethodGet, "/api/v1/secrets", func(*http.Request) {}, http.StatusNotFound},
		{"no file is served but the assets", http.MethodGet, "/assets/..%2fserver.go", func(*http.Request) {}, http.StatusBadRequest},
		{"other methods do not exist", http.MethodDelete, "/api/v1/jobs/j1", func(*http.Request) {}, http.StatusMethodNotAllowed},
		{"a link changes nothing", http.MethodGet, "/api/v1/jobs/j1/suspend", func(*http.Request) {}, http.StatusMethodNotAllowed},
		{"a job that is not recorded", http.MethodGet, "/api/v1/jobs/none", func(*http.Request) {}, http.StatusNotFound},
		{"a log that is not recorded", http.MethodGet, "/api/v1/jobs/j1/log?log=..%2f..%2frecord.json", func(*http.Request) {}, http.StatusNotFound},
		{"a wrong regular expression", http.MethodGet, "/api/v1/jobs/j1/search?regex=1&q=(&log=" + log, func(*http.Request) {}, http.StatusBadRequest},
	} {
		code, body, _ := s.ask(t, row.method, row.path, func(r *http.Request) { r.AddCookie(own); row.change(r) })
		if code != row.want {
			t.Errorf("%s: %d, want %d: %s", row.sentence, code, row.want, body)
		}
	}
}

func TestTheLinkIsForItsOwner(t *testing.T) {
	const sockets = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 30 10 -1
`
	for address, want := range map[string]string{"127.0.0.1:50000": "1001 true", "127.0.0.1:8080": "1000 true", "127.0.0.1:50001": "0 false", "@": "0 false"} {
		if uid, ok := ownerOf(sockets, address); fmt.Sprint(uid, " ", ok) != want {
			t.Errorf("%s is of %d, %t", address, uid, ok)
		}
	}
	s := newSite(t)
	connection, err := net.Dial("tcp4", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close() //nolint:errcheck // nothing was sent
	table, err := os.ReadFile("/proc/net/tcp")
	if uid, ok := ownerOf(string(table), connection.LocalAddr().String()); err != nil || !ok || uid != os.Getuid() || stranger(connection.LocalAddr().String()) {
		t.Errorf("our own connection is of %d, %t: %v", uid, ok, err)
	}
}

func TestWhyGoesOnWhileNothingChanges(t *testing.T) {
	s := newSite(t)
	created := time.Now().Add(-3 * time.Hour).Truncate(time.Second)
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: created, Started: created, State: "Running"}, func(r *record.Record) {
		r.Summary.Namespace = "team"
		r.Object = json.RawMessage(strings.NewReplacer(`"namespace":"default"`, `"namespace":"team"`, `"spec":{`, fmt.Sprintf(
			`"status":{"startTime":%q,"conditions":[{"type":"Running","status":"True","lastTransitionTime":%[1]q}]},"spec":{`, created.Format(time.RFC3339))).Replace(string(r.Object)))
	})
	own := s.enter(t)
	why := func() string {
		var got struct{ Why string }
		if err := json.Unmarshal([]byte(s.get(t, own, "/api/v1/jobs/j1")), &got); err != nil {
			t.Fatal(err)
		}
		return got.Why
	}
	if now := why(); !strings.Contains(now, "running for 3h") {
		t.Errorf("while the cluster runs: %s", now)
	}
	s.stopped.Store(true)
	if now := why(); !strings.Contains(now, "running for 0s") {
		t.Errorf("when it has stopped: %s", now)
	}
}

func TestLinesAreSentAsATerminalShowsThem(t *testing.T) {
	s := newSite(t)
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: day}, func(*record.Record) {})
	s.write(t, "j1", 0, "p1", "10%\r\x1b[2K100%", "\x1b[31mred\x1b[0m \x1b]0;title\x07<b>", "bad \xff byte")
	w, err := s.store.WriteLog("default", "j1", record.Log{Replica: "worker-0", Container: "pytorch", Pod: "p1"})
	for range 64 { // runtimes cut long lines
		err = errors.Join(err, w.Write(fmt.Appendf(nil, "%s stdout P %s\n", day.Add(time.Second).Format(time.RFC3339Nano), strings.Repeat("x", 16<<10))))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	own := s.enter(t)
	code, body, _ := s.ask(t, http.MethodGet, "/api/v1/jobs/j1/log?from=0&log="+url.QueryEscape("0/worker-0/pytorch.0.p1"), func(r *http.Request) { r.AddCookie(own) })
	var got struct {
		Lines []line
		Total int64
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK || got.Total != 4 {
		t.Fatalf("%d: %s", code, body)
	}
	for i, want := range []string{"100%", "\x1b[31mred\x1b[0m <b>\x1b[0m", "bad \uFFFD byte"} {
		if got.Lines[i].Text != want || got.Lines[i].Number != int64(i) {
			t.Errorf("line %d is %q, want %q", got.Lines[i].Number, got.Lines[i].Text, want)
		}
	}
	if long := got.Lines[3].Text; len(long) > 2*maxLineText || !strings.HasSuffix(long, fmt.Sprintf("(%d more bytes)", 1<<20-maxLineText)) {
		t.Errorf("the long line has %d bytes", len(long))
	}
	_, body, _ = s.ask(t, http.MethodGet, "/api/v1/jobs/j1/whole-log?log="+url.QueryEscape("0/worker-0/pytorch.0.p1"), func(r *http.Request) { r.AddCookie(own) })
	if want := "10%\r\x1b[2K100%\n\x1b[31mred\x1b[0m \x1b]0;title\x07<b>\nbad \xff byte\n" + strings.Repeat("x", 1<<20); body != want {
		t.Errorf("the whole log has %d bytes, want %d", len(body), len(want))
	}
}

func TestALongLogIsSearched(t *testing.T) {
	s := newSite(t)
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: day}, func(*record.Record) {})
	lines := make([]string, 100_000)
	for i := range lines {
		lines[i] = fmt.Sprint("step ", i)
	}
	lines[70_000] = "0%\ra \x1b[31mNeed\x1b[0mle"
	s.write(t, "j1", 0, "p1", lines...)
	own := s.enter(t)
	for query, want := range map[string]string{"q=needle": `{"lines":[70000],"more":false}`, "q=none": `{"lines":[],"more":false}`, "q=0%25": `{"lines":[],"more":false}`, "q=9999$&regex=1": `{"lines":[9999,19999,29999,39999,49999,59999,69999,79999,89999,99999],"more":false}`} {
		_, body, _ := s.ask(t, http.MethodGet, "/api/v1/jobs/j1/search?"+query+"&log="+url.QueryEscape("0/worker-0/pytorch.0.p1"), func(r *http.Request) { r.AddCookie(own) })
		if strings.TrimSpace(body) != want {
			t.Errorf("%s finds %s, want %s", query, body, want)
		}
	}
}

// TestOnlyWhatAJobAllowsIsOffered lists what can be done to jobs in their states.
func TestOnlyWhatAJobAllowsIsOffered(t *testing.T) {
	s := newSite(t)
	own := s.enter(t)
	const ended = `"status":{"conditions":[{"type":"Succeeded","status":"True"}],"completionTime":"2026-11-15T08:01:00Z"}`
	for i, row := range []struct {
		sentence, parts string
		deleted         bool
		want            []string
	}{
		{"a job that runs", `"spec":{%s}`, false, []string{"suspend", "scale", "delete"}},
		{"a job that is suspended", `"spec":{%s,"runPolicy":{"suspend":true}}`, false, []string{"resume", "scale", "delete"}},
		{"a job that has ended", `"spec":{%s},` + ended, false, []string{"again", "delete"}},
		{"a job that is deleted", `"spec":{%s},` + ended, true, []string{"again"}},
	} {
		summary := record.Summary{UID: types.UID(fmt.Sprint("j", i)), Name: "demo", Created: day}
		s.add(t, summary, func(r *record.Record) {
			spec := fmt.Sprintf(row.parts, `"pytorchReplicaSpecs":{"Worker":{"replicas":2,"template":{"spec":{"containers":[{"name":"pytorch"}]}}}}`)
			r.Object = json.RawMessage(fmt.Sprintf(`{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"demo","namespace":"default","uid":%q},%s}`, summary.UID, spec))
			if row.deleted {
				r.Summary.Deleted = day
			}
		})
		_, body, _ := s.ask(t, http.MethodGet, "/api/v1/jobs/"+string(summary.UID), func(r *http.Request) { r.AddCookie(own) })
		var got struct {
			Actions []string
			Roles   []role
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%s: %v: %s", row.sentence, err, body)
		}
		if !slices.Equal(got.Actions, row.want) || slices.Contains(row.want, "scale") != slices.Equal(got.Roles, []role{{"worker", 2}}) {
			t.Errorf("%s: %v %v, want %v", row.sentence, got.Actions, got.Roles, row.want)
		}
	}
}
