// Package ui is the dashboard of the local cluster, for the person who started it. It shows what package record has, so it works while the
// cluster runs and when it is stopped.
//
// It listens on 127.0.0.1, but so that no other person and no web page can read it, it takes only requests for its own name (a page of
// another site could otherwise reach it by a name that leads to 127.0.0.1), and only with the cookie that the link from the terminal sets.
// Routes that the table in routes does not have do not exist. Requests that change something also need the dashboard's own page as their
// origin. They reach the cluster with the rights of the person.
package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"fmt"
	"net/http"
	"sync"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/yard"
)

//go:generate go tool -modfile=../../go.tools.mod esbuild web/app.tsx --bundle --minify --target=es2022 --charset=utf8 --legal-comments=inline --jsx-factory=h --jsx-fragment=Fragment --alias:preact=./web/vendor/preact/preact.module.js --alias:preact/hooks=./web/vendor/preact/hooks.module.js --outfile=assets/app.js --log-level=warning

//go:embed assets
var assets embed.FS

// cookie is the name of the cookie that lets a browser in.
const cookie = "trainyard"

// Server answers a browser.
type Server struct {
	jobs  *jobs
	hosts map[string]bool

	mu sync.Mutex
	// link is the secret of the link that can be used once, empty after that; session is the one of the cookie.
	link, session string
}

// Cluster is the cluster of the recorded jobs, which may run or not.
type Cluster struct {
	Running func() bool
	// Open connects to the cluster with the rights of the person.
	Open func() (*yard.Yard, error)
}

// New makes a server for a port of 127.0.0.1. The jobs are those of a record.
func New(past *record.Store, cluster Cluster, port int) *Server {
	return &Server{
		jobs: &jobs{yard: &yard.Yard{Past: past, Stopped: true}, cluster: cluster}, link: rand.Text(), session: rand.Text(),
		hosts: map[string]bool{fmt.Sprintf("127.0.0.1:%d", port): true, fmt.Sprintf("localhost:%d", port): true},
	}
}

// Link is the path that lets the first browser in that opens it.
func (s *Server) Link() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "/?token=" + s.link
}

// routes are all there is.
func (s *Server) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /{$}":                         app,
		"GET /jobs/{uid}":                  app,
		"GET /jobs/{uid}/{tab}":            app,
		"GET /compare":                     app,
		"GET /capacity":                    app,
		"GET /assets/{name}":               asset,
		"GET /api/v1/jobs":                 s.jobs.list,
		"GET /api/v1/jobs/{uid}":           s.jobs.show,
		"GET /api/v1/jobs/{uid}/log":       s.jobs.log,
		"GET /api/v1/jobs/{uid}/search":    s.jobs.search,
		"GET /api/v1/jobs/{uid}/whole-log": s.jobs.wholeLog,
		"GET /api/v1/jobs/{uid}/usage":     s.jobs.usage,
		"GET /api/v1/jobs/{uid}/scalars":   s.jobs.scalars,
		"GET /api/v1/capacity":             s.jobs.capacity,
		"GET /api/v1/stream":               s.jobs.stream,
		"POST /api/v1/jobs/{uid}/suspend":  s.jobs.act(suspend(true)),
		"POST /api/v1/jobs/{uid}/resume":   s.jobs.act(suspend(false)),
		"POST /api/v1/jobs/{uid}/scale":    s.jobs.act(scale),
		"POST /api/v1/jobs/{uid}/delete":   s.jobs.act(remove),
		"POST /api/v1/jobs/{uid}/again":    s.jobs.act(s.jobs.again),
	}
}

// Handler is the whole server.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handler := range s.routes() {
		mux.HandleFunc(pattern, handler)
	}
	return s.guard(http.NewCrossOriginProtection().Handler(mux))
}

// guard lets only requests pass that are for this server and come from the person's browser.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		switch {
		case !s.hosts[r.Host]:
			http.Error(w, "This server answers only to 127.0.0.1 and localhost.", http.StatusMisdirectedRequest)
		case r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.Query().Has("token"):
			s.letIn(w, r)
		case !s.knows(r):
			http.Error(w, "Open the link that `trainyard ui` has printed. It works once: `trainyard ui` prints another.", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// letIn exchanges the secret of the link for a cookie.
func (s *Server) letIn(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == "" || !equal(r.URL.Query().Get("token"), s.link) {
		http.Error(w, "This link was used before, or is not complete: `trainyard ui` prints another.", http.StatusUnauthorized)
		return
	}
	s.link = ""
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *Server) knows(r *http.Request) bool {
	c, err := r.Cookie(cookie)
	return err == nil && equal(c.Value, s.session)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// app is the page for all paths: the program in it reads the path.
func app(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, assets, "assets/page.html") }

func asset(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, assets, "assets/"+r.PathValue("name"))
}
