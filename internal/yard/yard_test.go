package yard

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/controller"
)

// clusterThatKnows is a yard whose API server serves only these kinds.
func clusterThatKnows(t *testing.T, kinds ...string) *Yard {
	t.Helper()
	scheme, err := controller.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(kind string) error {
		for _, k := range kinds {
			if k == kind {
				return nil
			}
		}
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: kubeflowv1.GroupVersion.Group, Kind: kind}}
	}
	kindOf := func(obj any) string {
		switch obj.(type) {
		case *kubeflowv1.PyTorchJob, *kubeflowv1.PyTorchJobList:
			return kubeflowv1.PyTorchJobKind
		}
		return kubeflowv1.TFJobKind
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if err := refuse(kindOf(obj)); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := refuse(kindOf(list)); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	return &Yard{WithWatch: c, Namespace: "default"}
}

func TestAClusterWithoutTheKindsIsNotAClusterWithoutJobs(t *testing.T) {
	for _, row := range []struct {
		name    string
		knows   []string
		unknown bool
	}{
		{"it knows no kind: that is said", nil, true},
		{"it knows one kind of two: there are no jobs", []string{"TFJob"}, false},
		{"it knows all: there are no jobs", []string{"PyTorchJob", "TFJob"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			y := clusterThatKnows(t, row.knows...)
			jobs, err := y.Jobs(t.Context(), "default")
			if len(jobs) != 0 || meta.IsNoMatchError(err) != row.unknown || !row.unknown && err != nil {
				t.Errorf("Jobs: %d jobs, %v", len(jobs), err)
			}
			if _, err := y.Find(t.Context(), "demo"); meta.IsNoMatchError(err) != row.unknown || errors.Is(err, ErrNotFound) == row.unknown {
				t.Errorf("Find: %v", err)
			}
		})
	}
}
