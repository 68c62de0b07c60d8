// Package ui is the dashboard. It shows what package record has, so it works while the cluster runs and when it is stopped. Routes that the
// table in routes does not have do not exist.
//
// The dashboard of the local cluster is for the person who started it. It listens on 127.0.0.1, but so that no other person and no web page can
// read it, it takes only requests for its own name (a page of another site could otherwise reach it by a name that leads to 127.0.0.1), and
// only with the cookie that the link from the terminal sets. Requests that change something also need the dashboard's own page as their origin.
// They reach the cluster with the rights of the person.
//
// The dashboard in a cluster is for all its people. Each request has a token that the API server knows, and before a byte of a record is sent, the API
// server says whether its owner may read it (access.go). Changes are made with the token itself: the dashboard's own account can change nothing.
package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/yard"
)

//go:generate go tool -modfile=../../go.tools.mod esbuild web/app.tsx --bundle --minify --target=es2022 --charset=utf8 --legal-comments=inline --jsx-factory=h --jsx-fragment=Fragment --alias:preact=./web/vendor/preact/preact.module.js --alias:preact/hooks=./web/vendor/preact/hooks.module.js --outfile=assets/app.js --log-level=warning

//go:embed assets
var assets embed.FS

// Server answers a browser.
type Server struct {
	jobs  *jobs
	hosts map[string]bool
	// entrance lets people of a cluster in, nil on the local cluster.
	entrance *entrance
	requests *prometheus.CounterVec
	// cookie is the name of the cookie that lets a browser in. It has the port, because a browser sends cookies to all ports of a host: two
	// dashboards would replace each other's.
	cookie string

	mu sync.Mutex
	// link is the secret of the link that can be used once, empty after that; session is the one of the cookie.
	link, session string
}

// Cluster is the cluster of the recorded jobs, which may run or not.
type Cluster struct {
	Running func() bool
	// Open connects to the cluster with the rights of the person. On a local cluster there is no token.
	Open func(token string) (*yard.Yard, error)
	// Flags are what a person adds to a command to reach the cluster.
	Flags []string
}

// New makes a server for a port of 127.0.0.1. The jobs are those of a record.
func New(past *record.Store, cluster Cluster, port int) *Server {
	return &Server{
		jobs: &jobs{yard: &yard.Yard{Past: past, Stopped: true}, cluster: cluster}, link: rand.Text(), session: rand.Text(), requests: newRequests(),
		cookie: fmt.Sprint("trainyard-", port),
		hosts:  map[string]bool{fmt.Sprintf("127.0.0.1:%d", port): true, fmt.Sprintf("localhost:%d", port): true},
	}
}

// NewInCluster makes a server for the people of a cluster. It answers requests for some hosts, and for localhost, because a port may be forwarded. The
// configuration is the server's own, with the rights to review tokens and rights and to get namespaces.
func NewInCluster(past *record.Store, config *rest.Config, hosts []string) (*Server, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	known := map[string]bool{"localhost": true, "127.0.0.1": true}
	for _, host := range hosts {
		known[strings.ToLower(host)] = true
	}
	open := func(token string) (*yard.Yard, error) {
		own := rest.AnonymousClientConfig(config)
		own.BearerToken = token
		return yard.Open(own, "")
	}
	return &Server{
		jobs:     &jobs{yard: &yard.Yard{Past: past, Stopped: true}, cluster: Cluster{Running: func() bool { return true }, Open: open}},
		requests: newRequests(),
		entrance: &entrance{hosts: known, reviews: &reviews{core: core, answers: map[[sha256.Size]byte]answered{}}},
	}, nil
}

// Link is the path that lets the first browser in that opens it.
func (s *Server) Link() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "/?token=" + s.link
}

// route is what answers requests, and who may make them.
type route struct {
	may   check
	serve http.HandlerFunc
}

// routes are all there is.
func (s *Server) routes() map[string]route {
	all := map[string]route{
		"GET /{$}":                         {person, app},
		"GET /jobs/{uid}":                  {person, app},
		"GET /jobs/{uid}/{tab}":            {person, app},
		"GET /compare":                     {person, app},
		"GET /capacity":                    {person, app},
		"GET /assets/{name}":               {anybody, asset},
		"GET /api/v1/jobs":                 {person, s.jobs.list}, // those that the person may list
		"GET /api/v1/jobs/{uid}":           {reader, s.jobs.show},
		"GET /api/v1/jobs/{uid}/log":       {reader, s.jobs.log},
		"GET /api/v1/jobs/{uid}/search":    {reader, s.jobs.search},
		"GET /api/v1/jobs/{uid}/whole-log": {reader, s.jobs.wholeLog},
		"GET /api/v1/jobs/{uid}/usage":     {reader, s.jobs.usage},
		"GET /api/v1/jobs/{uid}/scalars":   {reader, s.jobs.scalars},
		"GET /api/v1/capacity":             {person, s.jobs.capacity}, // with the person's token
		"GET /api/v1/stream":               {follower, s.jobs.stream},
		"GET /api/v1/me":                   {person, me},
		"POST /api/v1/jobs/{uid}/suspend":  {writer("patch"), s.jobs.act(suspend(true))}, // these with the person's token, too
		"POST /api/v1/jobs/{uid}/resume":   {writer("patch"), s.jobs.act(suspend(false))},
		"POST /api/v1/jobs/{uid}/scale":    {writer("patch"), s.jobs.act(scale)},
		"POST /api/v1/jobs/{uid}/delete":   {writer("delete"), s.jobs.act(remove)},
		"POST /api/v1/jobs/{uid}/again":    {writer("create"), s.jobs.act(s.jobs.again)},
	}
	if s.entrance != nil {
		all["POST /signin"], all["POST /signout"] = route{anybody, s.signIn}, route{anybody, signOut}
	}
	return all
}

// Routes are the patterns of all routes, as http.ServeMux has them.
func (s *Server) Routes() []string { return slices.Sorted(maps.Keys(s.routes())) }

// Handler is the whole server.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, route := range s.routes() {
		mux.HandleFunc(pattern, s.counted(pattern, func(w http.ResponseWriter, r *http.Request) {
			if route.may(s, w, r) {
				route.serve(w, r)
			}
		}))
	}
	return s.guard(http.NewCrossOriginProtection().Handler(mux))
}

// guard lets only requests pass that are for this server. On the local cluster they must come from the person's browser; in a cluster they get the
// person whose token they have.
func (s *Server) guard(next http.Handler) http.Handler {
	policy := "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if s.entrance != nil {
		policy = strings.Replace(policy, "form-action 'none'", "form-action 'self'", 1) // to sign in
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if s.entrance != nil {
			s.identified(w, r, next)
			return
		}
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

// identified answers a request on a cluster.
func (s *Server) identified(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if !s.entrance.knowsHost(r) {
		http.Error(w, "This server does not answer to this name: add it to --host.", http.StatusMisdirectedRequest)
		return
	}
	known, err := s.entrance.identify(r)
	if err != nil {
		http.Error(w, sentence(err), http.StatusServiceUnavailable)
		return
	}
	next.ServeHTTP(w, known)
}

// letIn exchanges the secret of the link for a cookie. A browser that has the cookie needs no link. Other pages may lead there (the terminal may be
// one), so the cookie is also sent when a link of another site is followed; scripts and forms of other sites cannot use it.
func (s *Server) letIn(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.knows(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if stranger(r.RemoteAddr) {
		http.Error(w, "This link is for the person who started `trainyard ui`.", http.StatusForbidden)
		return
	}
	if s.link == "" || !equal(r.URL.Query().Get("token"), s.link) {
		http.Error(w, "This link was used before, or is not complete: `trainyard ui` prints another.", http.StatusUnauthorized)
		return
	}
	s.link = ""
	http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: s.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *Server) knows(r *http.Request) bool {
	c, err := r.Cookie(s.cookie)
	return err == nil && equal(c.Value, s.session)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// app is the page for all paths: the program in it reads the path.
func app(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, assets, "assets/page.html") }

func asset(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, assets, "assets/"+r.PathValue("name"))
}
