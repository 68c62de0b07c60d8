package cluster

import (
	"fmt"
	"sync"

	"go.etcd.io/etcd/server/v3/storage/wal"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// featureGates are Kubernetes' gates that differ from their defaults here. Gates are one set for a whole process.
func featureGates() map[string]bool {
	return map[string]bool{
		"GenericWorkload":        true, // PodGroups, which are scheduled together or not at all
		"KubeletInUserNamespace": true, // an ordinary user's cluster lives in a user namespace
	}
}

// walSegment is how much disk etcd reserves at a time for its log of writes.
const walSegment = 16 << 20

// prepareProcess sets what Kubernetes' components share in one process, once: feature gates, and one logger for all.
var prepareProcess = sync.OnceValue(func() error {
	// Every component configures logging when it starts; the second would be refused.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	wal.SegmentSizeBytes = walSegment
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(featureGates()); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	return nil
})
