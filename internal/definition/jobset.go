package definition

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/trainyard/trainyard/api/crds"
)

// jobSets is the kind of which a TrainJob of Kubeflow Trainer consists. Ours do not.
var jobSets = schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}

// OfferJobSet makes a cluster serve JobSets if it does not, and reports whether it created their definition. Kueue's manager watches
// JobSets on every cluster with TrainJobs. If they are not served, it ends, and its webhooks then refuse all jobs. It needs the
// definition only, and no controller.
//
// A definition that exists belongs to JobSet and stays as it is. The one we create has kubectl as its field manager, so that JobSet's
// own installation, kubectl apply --server-side, takes it over without a conflict.
func OfferJobSet(ctx context.Context, config *rest.Config) (created bool, _ error) {
	c, err := newClient(config)
	if err != nil {
		return false, err
	}
	err = c.Get().AbsPath(pathOf(jobSets)).SetHeader("Accept", metadataOnly).Do(ctx).Error()
	if !apierrors.IsNotFound(err) {
		return false, wrapJobSet(err)
	}
	err = c.Patch(types.ApplyPatchType).AbsPath(pathOf(jobSets)).Param("fieldManager", "kubectl").
		SetHeader("Accept", metadataOnly).Body(crds.JobSet).Do(ctx).Error()
	if apierrors.IsConflict(err) {
		return false, nil // somebody else has created it meanwhile
	}
	return err == nil, wrapJobSet(err)
}

func wrapJobSet(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("installing %s: %w", jobSets, err)
}
