package controller_test

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
)

// passes is a kind of children that the cluster does not serve at first.
var passes = manifest.ChildKind{
	ChildKind:    job.ChildKind{Kind: "BoardingPass", Group: "children.trainyard.dev", Required: true, Until: job.RemoveAtEnd},
	GroupVersion: schema.GroupVersion{Group: "children.trainyard.dev", Version: "v1"}, Optional: true,
	New: func() manifest.Object {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion("children.trainyard.dev/v1")
		obj.SetKind("BoardingPass")
		return obj
	},
}

// withPass is PyTorchJob whose pods wait for such a child.
type withPass struct{ kinds.Kind }

func (k withPass) Read(obj manifest.Object) *manifest.Manifest {
	m := k.Kind.Read(obj)
	pass := passes.New()
	pass.SetName(obj.GetName())
	pass.SetNamespace(obj.GetNamespace())
	pass.SetLabels(map[string]string{naming.LabelOperatorName: naming.OperatorName(k.Name()), naming.LabelJobName: obj.GetName()})
	pass.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(obj, m.Owner)})
	m.Job.Children = append(m.Job.Children, job.Child{ChildKind: passes.ChildKind, Object: pass})
	return m
}

// A child of a kind that the cluster lacks is waited for, with a sentence that says so. Once the kind is served the child is
// created, its loss is noticed, and it goes when the job ends.
func TestAKindOfChildrenThatAppearsLater(t *testing.T) {
	t.Parallel()
	w := withoutOperator(t)
	w.runWithPasses()
	j := w.submit(gang(1, "until test -f $PWD/never; do sleep 0.1; done"))
	s := j.until("waits for the kind", func(s kubeflowv1.JobStatus) bool { return strings.Contains(s.Message, "BoardingPass") })
	if want := "the cluster does not serve the kind BoardingPass.children.trainyard.dev"; s.Message != want || len(j.pods()) > 0 {
		t.Errorf("the message is %q and there are %d pods", s.Message, len(j.pods()))
	}
	w.servePasses()
	j.becomes(kubeflowv1.JobRunning)
	pass := passes.New()
	key := client.ObjectKey{Namespace: w.Namespace, Name: j.name}
	if err := w.client.Get(context.Background(), key, pass); err != nil {
		t.Fatal(err)
	}
	first := pass.GetUID()
	if err := w.client.Delete(context.Background(), pass); err != nil {
		t.Fatal(err)
	}
	w.Eventually("the child is created again", func() error {
		again := passes.New()
		err := w.client.Get(context.Background(), key, again)
		if err == nil && again.GetUID() == first {
			err = context.DeadlineExceeded
		}
		return err
	})
	j.edit(func(obj client.Object) { policyOf(obj).ActiveDeadlineSeconds = new(int64(1)) })
	j.becomes(kubeflowv1.JobFailed)
	w.Eventually("the child is gone", func() error {
		if err := w.client.Get(context.Background(), key, passes.New()); client.IgnoreNotFound(err) != nil || err == nil {
			return context.DeadlineExceeded
		}
		return nil
	})
}

// runWithPasses starts an operator whose PyTorchJobs want boarding passes. No installation gives rights on those.
func (w *world) runWithPasses() {
	w.Helper()
	scheme, err := controller.Scheme()
	if err != nil {
		w.Fatal(err)
	}
	caches, err := controller.Cache(w.Namespace)
	if err != nil {
		w.Fatal(err)
	}
	yes := true
	mgr, err := ctrl.NewManager(w.Config, ctrl.Options{
		Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		w.Fatal(err)
	}
	err = controller.Setup(mgr, controller.Options{
		Workers: 1, Metrics: prometheus.NewRegistry(), Kinds: []kinds.Kind{withPass{kinds.All[0]}}, Children: append(manifest.ChildKinds[:len(manifest.ChildKinds):len(manifest.ChildKinds)], passes),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.start(mgr)
}

func (w *world) servePasses() {
	w.Helper()
	yes := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boardingpasses.children.trainyard.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: passes.GroupVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "boardingpasses", Kind: passes.Kind, ListKind: passes.Kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: passes.GroupVersion.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}},
			}},
		},
	}
	if err := w.client.Create(context.Background(), crd); err != nil {
		w.Fatal(err)
	}
}
