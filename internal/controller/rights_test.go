package controller_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
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
	w.awaitRights("system:serviceaccount:"+home+":trainyard-operator",
		authorizationv1.ResourceAttributes{Group: "kubeflow.org", Resource: "pytorchjobs", Verb: "watch"}, authorizationv1.ResourceAttributes{Resource: "nodes", Verb: "get"},
		authorizationv1.ResourceAttributes{Resource: "secrets", Verb: "create"},
		authorizationv1.ResourceAttributes{Namespace: home, Group: "coordination.k8s.io", Resource: "leases", Verb: "update"})
	day := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	answer, err := w.Client.CoreV1().ServiceAccounts(home).CreateToken(ctx, "trainyard-operator", request, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return answer.Status.Token
}

// awaitRights waits until a user has rights, one of each role: they take effect a moment after they are given.
func (w *world) awaitRights(user string, rights ...authorizationv1.ResourceAttributes) {
	w.Helper()
	for _, right := range rights {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &right}}
		w.Eventually(fmt.Sprintf("%s may %s %s", user, right.Verb, right.Resource), func() error {
			answer, err := w.Client.AuthorizationV1().SubjectAccessReviews().Create(context.Background(), review, metav1.CreateOptions{})
			if err == nil && !answer.Status.Allowed {
				err = fmt.Errorf("it may not: %s", answer.Status.Reason)
			}
			return err
		})
	}
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

// An operator without the rights of config/mpi runs all kinds but MPIJobs, which wait and say what is missing.
func TestAnMPIJobWithoutItsRightWaits(t *testing.T) {
	t.Parallel()
	w := withoutOperator(t)
	w.asInstalled() // there are the roles
	user := "operator-without-mpi-of-" + w.Namespace
	for _, role := range []string{"trainyard-operator", "trainyard-operator-cluster"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role + "-" + w.Namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		}
		if err := w.client.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.client.Delete(context.Background(), binding) })
	}
	w.awaitRights(user, authorizationv1.ResourceAttributes{Group: "kubeflow.org", Resource: "pytorchjobs", Verb: "watch"}, authorizationv1.ResourceAttributes{Resource: "nodes", Verb: "get"})
	installed := rest.CopyConfig(w.Config)
	installed.Impersonate.UserName = user
	mgr, err := newOperator(installed, w.Namespace, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.start(mgr)
	w.Apply(mpiJob("v1", "runPolicy: {backoffLimit: 0}", 1, "true"))
	ring := &training{world: w, name: "demo", empty: &kubeflowv1.MPIJob{}}
	s := ring.until("says what it waits for", func(s kubeflowv1.JobStatus) bool {
		return strings.Contains(s.Message, `cannot create resource "secrets"`) && strings.Contains(s.Message, "the operator needs the rights of config/mpi, which is mpi: true in the chart")
	})
	if newest(s).Type != kubeflowv1.JobCreated || len(ring.pods()) != 0 {
		t.Errorf("it has %d pods, and the status\n%s", len(ring.pods()), describe(s))
	}
	w.submit(gang(1, "true", func(pj *kubeflowv1.PyTorchJob) { pj.Name = "other" })).becomes(kubeflowv1.JobSucceeded)
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
