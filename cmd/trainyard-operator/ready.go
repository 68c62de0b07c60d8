package main

import (
	"fmt"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/kinds"
)

// readiness answers /readyz: the caches are synced, and this operator leads or knows that another one does.
type readiness struct {
	mgr    ctrl.Manager
	cached []client.Object
	lease  client.ObjectKey
}

func newReadiness(mgr ctrl.Manager, o options) readiness {
	r := readiness{mgr: mgr, cached: []client.Object{&corev1.Pod{}}, lease: client.ObjectKey{Namespace: leaseNamespace(o), Name: o.leaderElectionID}}
	for _, kind := range kinds.All {
		r.cached = append(r.cached, kind.New())
	}
	return r
}

func (r readiness) check(req *http.Request) error {
	for _, obj := range r.cached {
		informer, err := r.mgr.GetCache().GetInformer(req.Context(), obj, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", obj, err)
		}
		if !informer.HasSynced() {
			return fmt.Errorf("the cache of %T is not synced", obj)
		}
	}
	select {
	case <-r.mgr.Elected(): // also closed where there is no leader election
		return nil
	default:
	}
	var lease coordinationv1.Lease
	if err := r.mgr.GetAPIReader().Get(req.Context(), r.lease, &lease); err != nil {
		return fmt.Errorf("finding the leader: %w", err)
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		return fmt.Errorf("no operator holds the lease %s", r.lease)
	}
	return nil
}
