package controller_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// home is where the operators of all tests have their ServiceAccount, with the rights that an installation gives it.
const home = "trainyard-system"

var account struct {
	sync.Mutex
	tokens map[string]string // by the address of their cluster
}

// asInstalled leads to the cluster as the operator of an installation: whatever a test lets it do, it does by the rights of
// config/rbac.
func (w *world) asInstalled() *rest.Config {
	w.Helper()
	account.Lock()
	defer account.Unlock()
	if account.tokens == nil {
		account.tokens = map[string]string{}
	}
	if account.tokens[w.Config.Host] == "" {
		account.tokens[w.Config.Host] = w.installRights()
	}
	config := rest.AnonymousClientConfig(w.Config)
	config.BearerToken = account.tokens[w.Config.Host]
	return config
}

func (w *world) installRights() (token string) {
	w.Helper()
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}
	if err := w.client.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		w.Fatal(err)
	}
	w.Kubectl("apply", "--server-side", "--namespace="+home, "-k", w.overlay("../../config/rbac"))
	w.Kubectl("apply", "--server-side", "--namespace="+home, "-k", w.overlay("../../config/mpi"))
	for _, right := range []authorizationv1.ResourceAttributes{ // one of each role: they take effect a moment later
		{Group: "kubeflow.org", Resource: "pytorchjobs", Verb: "watch"}, {Resource: "nodes", Verb: "get"}, {Resource: "secrets", Verb: "create"},
		{Namespace: home, Group: "coordination.k8s.io", Resource: "leases", Verb: "update"},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + home + ":trainyard-operator", ResourceAttributes: &right,
		}}
		w.Eventually(fmt.Sprintf("the operator may %s %s", right.Verb, right.Resource), func() error {
			answer, err := w.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err == nil && !answer.Status.Allowed {
				err = fmt.Errorf("it may not: %s", answer.Status.Reason)
			}
			return err
		})
	}
	day := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	answer, err := w.Client.CoreV1().ServiceAccounts(home).CreateToken(ctx, "trainyard-operator", request, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return answer.Status.Token
}

// overlay puts a folder of kustomize into the namespace.
func (w *world) overlay(folder string) string {
	w.Helper()
	dir := w.TempDir()
	here, err := os.Getwd()
	if err != nil {
		w.Fatal(err)
	}
	base, err := filepath.Rel(dir, filepath.Join(here, folder))
	if err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, "namespace: %s\nresources: [%s]\n", home, base), 0o600); err != nil {
		w.Fatal(err)
	}
	return dir
}

// The operator may hold the lease by which one of several leads.
func TestTheOperatorMayLead(t *testing.T) {
	t.Parallel()
	w := withoutOperator(t)
	mgr := w.operate(func(o *ctrl.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, w.Namespace, home
	})
	select {
	case <-mgr.Elected():
	case <-time.After(local.Timeout):
		t.Error("it does not")
	}
}

// checkRights sees that the world's operator asked for nothing that it may not.
func (w *world) checkRights() {
	w.Helper()
	for _, r := range w.audited(operatorOf(w.Namespace)) {
		if r.Annotations["authorization.k8s.io/decision"] == "forbid" {
			w.Errorf("the operator may not %s %s/%s: %s", r.Verb, r.ObjectRef.Resource, r.ObjectRef.Subresource, r.RequestURI)
		}
	}
}
