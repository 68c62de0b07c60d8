package ui

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/record"
)

const (
	// keepYes and keepNo are how long an answer of the API server about a person is used again.
	keepYes, keepNo = 30 * time.Second, 5 * time.Second
	// maxAnswers is how many answers are kept.
	maxAnswers = 10_000
	// reviewTimeout is how long the API server may take for an answer.
	reviewTimeout = 10 * time.Second
)

// clusterCookie is the cookie that has a person's token. Browsers accept this name only by TLS or from the machine itself, and only for this host.
const clusterCookie = "__Host-trainyard"

// entrance lets people in whose tokens the API server knows. They see what the API server says that they may.
type entrance struct {
	hosts   map[string]bool
	reviews *reviews
}

// caller is the person of a request on a cluster.
type caller struct {
	token   string
	user    authenticationv1.UserInfo
	reviews *reviews
}

type callerKey struct{}

// callerOf is the person of a request. On the local cluster there is none: who has the link may do everything.
func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// knowsHost reports whether a request is for this server, whatever the port: it may be forwarded.
func (e *entrance) knowsHost(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return e.hosts[strings.ToLower(host)]
}

// tokenOf is the token of a request: a proxy sends it as a header, a browser as the cookie that signIn has set.
func tokenOf(r *http.Request) string {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return strings.TrimSpace(token)
	}
	if c, err := r.Cookie(clusterCookie); err == nil {
		return c.Value
	}
	return ""
}

// identify is the request with the person whose token it has, if the API server knows the token.
func (e *entrance) identify(r *http.Request) (*http.Request, error) {
	token := tokenOf(r)
	if token == "" {
		return r, nil
	}
	user, err := e.reviews.authenticate(r.Context(), token)
	if err != nil || user == nil {
		return r, err
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, &caller{token, *user, e.reviews})), nil
}

// signIn exchanges a token from the form for a cookie.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	token := strings.TrimSpace(r.PostFormValue("token"))
	user, err := s.entrance.reviews.authenticate(r.Context(), token)
	switch {
	case err != nil:
		http.Error(w, sentence(err), http.StatusServiceUnavailable)
	case user == nil:
		signInPage(w, "The cluster does not know this token. It may have expired.")
	default:
		http.SetCookie(w, &http.Cookie{Name: clusterCookie, Value: token, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// signOut removes the cookie. The token itself lives until it expires.
func signOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: clusterCookie, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// signInPage asks for a token. The sentence is one of ours.
func signInPage(w http.ResponseWriter, sentence string) {
	page, err := assets.ReadFile("assets/signin.html")
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = w.Write([]byte(strings.Replace(string(page), "SENTENCE", sentence, 1)))
}

// me answers with the name of the person, which is empty on the local cluster.
func me(w http.ResponseWriter, r *http.Request) {
	name := ""
	if c := callerOf(r.Context()); c != nil {
		name = c.user.Username
	}
	answer(w, map[string]string{"name": name})
}

// A check decides whether a request is served. If not, it has answered. On the local cluster everything is allowed that came so far.
type check func(s *Server, w http.ResponseWriter, r *http.Request) bool

// anybody may have what has no data.
func anybody(*Server, http.ResponseWriter, *http.Request) bool { return true }

// person must be known. What is then shown depends on the person's rights.
func person(s *Server, w http.ResponseWriter, r *http.Request) bool {
	if s.entrance == nil || callerOf(r.Context()) != nil {
		return true
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		http.Error(w, "Sign in first: load the page again, or send a token of the cluster as a bearer token.", http.StatusUnauthorized)
	} else {
		signInPage(w, "")
	}
	return false
}

// reader must be allowed to read the job of the request and its logs.
func reader(s *Server, w http.ResponseWriter, r *http.Request) bool {
	return person(s, w, r) && s.jobs.mayRead(w, r, types.UID(r.PathValue("uid")))
}

// writer must also be allowed to change the job. The API server decides again, because the change is made with the person's token.
func writer(verb string) check {
	return func(s *Server, w http.ResponseWriter, r *http.Request) bool {
		c := callerOf(r.Context())
		if !reader(s, w, r) || c == nil {
			return c == nil && s.entrance == nil
		}
		all, err := s.jobs.yard.Past.Summaries()
		if err != nil {
			fail(w, err)
			return false
		}
		allowed := false
		if at := indexOf(all, types.UID(r.PathValue("uid"))); at >= 0 {
			allowed, err = c.may(r.Context(), verb, all[at].Kind, all[at].Namespace)
		}
		if err != nil {
			http.Error(w, sentence(err), http.StatusServiceUnavailable)
			return false
		}
		if !allowed {
			http.Error(w, fmt.Sprintf("You may not do this: it needs the right to %s the job.", verb), http.StatusForbidden)
		}
		return allowed
	}
}

// follower must be allowed to read the job that is followed, if there is one.
func follower(s *Server, w http.ResponseWriter, r *http.Request) bool {
	uid := types.UID(r.URL.Query().Get("job"))
	return person(s, w, r) && (uid == "" || s.jobs.mayRead(w, r, uid))
}

// mayRead reports whether the person may read a job. For others it does not exist. If not, it has answered.
func (j *jobs) mayRead(w http.ResponseWriter, r *http.Request, uid types.UID) bool {
	c := callerOf(r.Context())
	if c == nil {
		return true
	}
	all, err := j.yard.Past.Summaries()
	if err != nil {
		fail(w, err)
		return false
	}
	allowed := false
	if at := indexOf(all, uid); at >= 0 {
		allowed, err = c.mayRead(r.Context(), all[at])
	}
	if err != nil {
		http.Error(w, sentence(err), http.StatusServiceUnavailable)
		return false
	}
	if !allowed {
		http.Error(w, "There is no record of this job, or you may not read it: that needs the rights to get the job and pods/log in its namespace.", http.StatusNotFound)
	}
	return allowed
}

// mayRead reports whether the person may get the job and the logs of pods where the job was.
func (c *caller) mayRead(ctx context.Context, s record.Summary) (bool, error) {
	namespace, err := c.reviews.scope(ctx, s)
	if err != nil {
		return false, err
	}
	allowed, err := c.may(ctx, "get", s.Kind, namespace)
	if err != nil || !allowed {
		return false, err
	}
	return c.reviews.allows(ctx, c.user, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: namespace})
}

// may reports whether the person may do something to jobs of a kind in a namespace, or in all if it is empty.
func (c *caller) may(ctx context.Context, verb, kind, namespace string) (bool, error) {
	at := slices.IndexFunc(kinds.All, func(k kinds.Adapter) bool { return k.Name() == kind })
	if at < 0 {
		return false, nil
	}
	return c.reviews.allows(ctx, c.user, authorizationv1.ResourceAttributes{
		Verb: verb, Group: kinds.All[at].GroupVersion().Group, Resource: strings.ToLower(kind) + "s", Namespace: namespace,
	})
}

// visible are the jobs that the person of a request may list.
func visible(ctx context.Context, all []record.Summary) ([]record.Summary, error) {
	c := callerOf(ctx)
	if c == nil {
		return all, nil
	}
	type where struct{ namespace, kind string }
	known := map[where]bool{}
	may := func(w where) (bool, error) {
		if _, ok := known[w]; !ok {
			allowed, err := c.may(ctx, "list", w.kind, w.namespace)
			if err != nil {
				return false, err
			}
			known[w] = allowed
		}
		return known[w], nil
	}
	var shown []record.Summary
	for _, s := range all {
		allowed, err := may(where{"", s.Kind}) // many may list all
		if err == nil && !allowed {
			var namespace string
			if namespace, err = c.reviews.scope(ctx, s); err == nil && namespace != "" {
				allowed, err = may(where{namespace, s.Kind})
			}
		}
		if err != nil {
			return nil, err
		}
		if allowed {
			shown = append(shown, s)
		}
	}
	return shown, nil
}

// allowed are the actions that the person may do to a job. The API server decides again when they are done.
func (c *caller) allowed(ctx context.Context, actions []string, s record.Summary) []string {
	verbs := map[string]string{"suspend": "patch", "resume": "patch", "scale": "patch", "delete": "delete", "again": "create"}
	return slices.DeleteFunc(actions, func(action string) bool {
		may, err := c.may(ctx, verbs[action], s.Kind, s.Namespace)
		return err != nil || !may
	})
}

// reviews asks the API server who somebody is, and what they may do. It uses the answers for some seconds. If there is no answer, nobody may.
type reviews struct {
	core kubernetes.Interface

	mu      sync.Mutex
	answers map[[sha256.Size]byte]answered
}

// answered is an answer of the API server, until it must be asked again.
type answered struct {
	until time.Time
	user  *authenticationv1.UserInfo
	yes   bool
	uid   types.UID
}

// ask is the answer to a question, from the API server if it is not known.
func (r *reviews) ask(ctx context.Context, question any, ask func(context.Context) (answered, error)) (answered, error) {
	text, err := json.Marshal(question)
	if err != nil {
		return answered{}, err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%T %s", question, text))
	r.mu.Lock()
	a, ok := r.answers[key]
	r.mu.Unlock()
	if ok && time.Now().Before(a.until) {
		return a, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	if a, err = ask(ctx); err != nil {
		return answered{}, fmt.Errorf("asking the API server for your rights: %w", err)
	}
	a.until = time.Now().Add(keepNo)
	if a.yes {
		a.until = time.Now().Add(keepYes)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.answers) >= maxAnswers {
		clear(r.answers)
	}
	r.answers[key] = a
	return a, nil
}

// authenticate is the person with a token, nil if the API server knows none.
func (r *reviews) authenticate(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	if token == "" {
		return nil, nil
	}
	review := authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	a, err := r.ask(ctx, review.Spec, func(ctx context.Context) (answered, error) {
		done, err := r.core.AuthenticationV1().TokenReviews().Create(ctx, &review, metav1.CreateOptions{})
		if err != nil || !done.Status.Authenticated {
			return answered{}, err
		}
		return answered{yes: true, user: &done.Status.User}, nil
	})
	return a.user, err
}

// allows reports whether a person may do something.
func (r *reviews) allows(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error) {
	review := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, ResourceAttributes: &what, Extra: map[string]authorizationv1.ExtraValue{},
	}}
	for key, values := range user.Extra {
		review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	a, err := r.ask(ctx, review.Spec, func(ctx context.Context) (answered, error) {
		done, err := r.core.AuthorizationV1().SubjectAccessReviews().Create(ctx, &review, metav1.CreateOptions{})
		if err != nil {
			return answered{}, err
		}
		return answered{yes: done.Status.Allowed && !done.Status.Denied}, nil
	})
	return a.yes, err
}

// scope is the namespace in which rights on a recorded job count. If the job's namespace is gone, or another one has its name now, these are
// the rights in all namespaces: who owns the new namespace does not inherit the old one's jobs.
func (r *reviews) scope(ctx context.Context, s record.Summary) (string, error) {
	type namespaceNamed string
	a, err := r.ask(ctx, namespaceNamed(s.Namespace), func(ctx context.Context) (answered, error) {
		namespace, err := r.core.CoreV1().Namespaces().Get(ctx, s.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return answered{}, nil
		}
		if err != nil {
			return answered{}, err
		}
		return answered{yes: true, uid: namespace.UID}, nil
	})
	if err != nil || a.uid == "" || a.uid != s.NamespaceUID {
		return "", err
	}
	return s.Namespace, nil
}
