package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/testing/local"
	"github.com/trainyard/trainyard/internal/ui"
)

// team is a namespace with people: ServiceAccounts with rights of the API server.
type team struct {
	*local.World
	uid types.UID
}

func newTeam(t *testing.T) team {
	t.Helper()
	w := local.New(t)
	namespace, err := w.Client.CoreV1().Namespaces().Get(t.Context(), w.Namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return team{w, namespace.UID}
}

// person is the token of somebody with rights in the team's namespace, or in all if everywhere is true.
func (w team) person(name string, everywhere bool, rules ...rbacv1.PolicyRule) string {
	w.Helper()
	ctx := w.Context()
	if _, err := w.Client.CoreV1().ServiceAccounts(w.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: w.Namespace + "-" + name}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: w.Namespace}}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	if _, err := w.Client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	var err error
	if everywhere {
		_, err = w.Client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
	} else {
		_, err = w.Client.RbacV1().RoleBindings(w.Namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
	token, err := w.Client.CoreV1().ServiceAccounts(w.Namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return token.Status.Token
}

func may(group, resources string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: verbs}
}

// records writes a job that the API server has into a store, with one line of log.
func (w team) records(store *record.Store, name string, namespaceUID types.UID) types.UID {
	w.Helper()
	object := w.Kubectl("get", "pytorchjob", name, "-o", "json")
	var job metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(object), &job); err != nil {
		w.Fatal(err)
	}
	r := &record.Record{Object: json.RawMessage(object), Summary: record.Summary{
		Namespace: w.Namespace, NamespaceUID: namespaceUID, UID: job.UID, Kind: "PyTorchJob", Name: name, Created: job.CreationTimestamp.Time, State: "Suspended",
	}}
	if namespaceUID != w.uid {
		r.Summary.UID = "of-a-namespace-that-is-gone"
	}
	writer, err := store.WriteLog(w.Namespace, r.Summary.UID, record.Log{Replica: "worker-0", Container: "pytorch", Pod: "p1"})
	if err == nil {
		err = writer.Write(fmt.Appendf(nil, "%s stdout F hello\n", time.Now().UTC().Format(time.RFC3339Nano)))
	}
	for _, step := range []func() error{func() error { return writer.Close() }, func() error { return store.Save(r) }, func() error { return store.List(r.Summary) }} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		w.Fatal(err)
	}
	return r.Summary.UID
}

// visitor is somebody who asks the dashboard.
type visitor struct {
	token  string
	change func(*http.Request)
	// page, list, read, write and capacity are the answers that are right.
	page, list, read, capacity int
	write                      []int
}

// kindOf says what a route is for.
func (v visitor) wants(pattern string) []int {
	switch _, path, _ := strings.Cut(pattern, " "); {
	case path == "/signin", path == "/signout":
		return nil // see below
	case strings.HasPrefix(path, "/assets/"):
		if v.page == http.StatusMisdirectedRequest {
			return []int{v.page}
		}
		return []int{http.StatusOK}
	case !strings.HasPrefix(path, "/api/"):
		return []int{v.page}
	case path == "/api/v1/jobs", path == "/api/v1/me":
		return []int{v.list}
	case path == "/api/v1/capacity":
		return []int{v.capacity}
	case strings.HasPrefix(pattern, "POST "):
		return v.write
	}
	return []int{v.read} // also the stream, which is asked for the job
}

// TestOnlyThoseWhoMayGetAnAnswer asks every route of the dashboard in a cluster as everybody who might. The API server is real, and so are the tokens.
func TestOnlyThoseWhoMayGetAnAnswer(t *testing.T) {
	t.Parallel()
	ctrl.SetLogger(klog.Background())
	w, neighbour := newTeam(t), newTeam(t)
	w.Apply(strings.Replace(job("demo", 1, "true"), "{backoffLimit: 1}", "{suspend: true}", 1))
	store := record.Open(t.TempDir())
	uid := w.records(store, "demo", w.uid)
	gone := w.records(store, "demo", "uid-of-an-older-namespace")

	own := rest.AnonymousClientConfig(w.Config)
	own.BearerToken = w.person("dashboard", true, may("authentication.k8s.io", "tokenreviews", "create"), may("authorization.k8s.io", "subjectaccessreviews", "create"), may("", "namespaces", "get"))
	server, err := ui.NewInCluster(store, own, []string{"trainyard.example"})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(server.Handler())
	t.Cleanup(site.Close)
	t.Cleanup(site.CloseClientConnections)
	ask := func(method, path string, v visitor) (int, string, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, site.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.token != "" {
			r.Header.Set("Authorization", "Bearer "+v.token)
		}
		if v.change != nil {
			v.change(r)
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close() //nolint:errcheck // it was only read
		if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
			return response.StatusCode, "", response.Header
		}
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body), response.Header
	}

	see := []rbacv1.PolicyRule{may("kubeflow.org", "pytorchjobs", "get", "list"), may("", "pods/log", "get")}
	edit := slices.Concat(see, []rbacv1.PolicyRule{may("kubeflow.org", "pytorchjobs", "patch", "delete", "create")})
	viewer, editor := w.person("viewer", false, see...), w.person("editor", false, edit...)
	const (
		ok, unknown, forbidden, hidden, elsewhere = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMisdirectedRequest
	)
	done := []int{ok, http.StatusConflict} // a job that is suspended or deleted already
	visitors := map[string]visitor{
		"nobody":                          {"", nil, unknown, unknown, unknown, unknown, []int{unknown}},
		"a token that nobody has":         {"guess", nil, unknown, unknown, unknown, unknown, []int{unknown}},
		"an editor of another namespace":  {neighbour.person("editor", false, edit...), nil, ok, ok, hidden, forbidden, []int{hidden}},
		"who may not read logs":           {w.person("lister", false, see[0]), nil, ok, ok, hidden, forbidden, []int{hidden}},
		"a viewer":                        {viewer, nil, ok, ok, ok, forbidden, []int{forbidden}},
		"a viewer by the cookie":          {"", func(r *http.Request) { r.Header.Set("Cookie", "__Host-trainyard="+viewer) }, ok, ok, ok, forbidden, []int{forbidden}},
		"a viewer of nodes":               {w.person("capacity", true, may("", "nodes pods", "list")), nil, ok, ok, hidden, ok, []int{hidden}},
		"an editor by a foreign name":     {editor, func(r *http.Request) { r.Host = "evil.example" }, elsewhere, elsewhere, elsewhere, elsewhere, []int{elsewhere}},
		"an editor from a foreign origin": {editor, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, ok, ok, ok, forbidden, []int{forbidden}},
		"an editor by the right name":     {editor, func(r *http.Request) { r.Host = "Trainyard.example:443" }, ok, ok, ok, forbidden, done},
	}
	log := url.QueryEscape("0/worker-0/pytorch.0.p1")
	values := strings.NewReplacer("{$}", "", "{uid}/log", string(uid)+"/log?log="+log, "{uid}/search", string(uid)+"/search?q=h&log="+log, "{uid}/whole-log", string(uid)+"/whole-log?log="+log,
		"{uid}/scale", string(uid)+"/scale?role=worker&replicas=2", "/stream", "/stream?job="+string(uid), "{uid}", string(uid), "{tab}", "logs", "{name}", "app.js")
	names := []string{}
	for name := range visitors {
		names = append(names, name)
	}
	slices.Sort(names) // who may change the job comes late: "an editor by the right name" after "an editor by a foreign name"
	slices.SortStableFunc(names, func(a, b string) int { return len(visitors[a].write) - len(visitors[b].write) })
	for _, name := range names {
		v := visitors[name]
		for _, pattern := range server.Routes() {
			wants := v.wants(pattern)
			method, path, _ := strings.Cut(pattern, " ")
			code, body, header := ask(method, values.Replace(path), v)
			if wants != nil && !slices.Contains(wants, code) {
				t.Errorf("%s gets %d from %s, want one of %v: %s", name, code, pattern, wants, body)
			}
			if header.Get("Access-Control-Allow-Origin") != "" || !strings.HasPrefix(header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("%s has the headers %v", pattern, header)
			}
			lists := strings.Contains(body, string(uid)) && pattern == "GET /api/v1/jobs"
			if should := v.read == ok || name == "who may not read logs"; lists != should && v.list == ok && pattern == "GET /api/v1/jobs" {
				t.Errorf("%s is shown the job: %t", name, lists)
			}
			if strings.Contains(body, string(gone)) {
				t.Errorf("%s is shown a job of a namespace that is gone by %s", name, pattern)
			}
		}
		if code, _, _ := ask("GET", "/api/v1/jobs/"+string(gone), v); code == ok {
			t.Errorf("%s may read a job of a namespace that is gone", name)
		}
	}
	everything := visitor{token: w.person("admin", true, see...)}
	if code, body, _ := ask("GET", "/api/v1/jobs/"+string(gone), everything); code != ok {
		t.Errorf("who may read all namespaces gets %d for a job of one that is gone: %s", code, body)
	}
	if found := w.Try("", "get", "pytorchjob", "demo", "-o", "jsonpath={.metadata.deletionTimestamp}"); found.Code == 0 && found.Stdout == "" {
		t.Error("the editor has deleted the job, and it is still there")
	}

	// Signing in.
	form := func(token string) func(*http.Request) {
		return func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("token=" + url.QueryEscape(token)))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	code, _, header := ask("POST", "/signin", visitor{change: form(viewer)})
	if cookie := header.Get("Set-Cookie"); code != http.StatusSeeOther || cookie != "__Host-trainyard="+viewer+"; Path=/; HttpOnly; Secure; SameSite=Strict" {
		t.Errorf("signing in: %d, %q", code, cookie)
	}
	if code, body, header := ask("POST", "/signin", visitor{change: form("guess")}); code != unknown || header.Get("Set-Cookie") != "" || !strings.Contains(body, "does not know this token") {
		t.Errorf("signing in with a wrong token: %d, %s", code, body)
	}
	if code, _, header := ask("POST", "/signin", visitor{change: func(r *http.Request) { form(viewer)(r); r.Header.Set("Origin", "https://evil.example") }}); code != forbidden || header.Get("Set-Cookie") != "" {
		t.Errorf("signing in from a foreign page: %d", code)
	}
	if code, _, header := ask("POST", "/signout", visitor{token: viewer}); code != http.StatusSeeOther || !strings.Contains(header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("signing out: %d, %v", code, header)
	}
}
