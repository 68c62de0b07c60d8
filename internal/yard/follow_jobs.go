package yard

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
)

// FollowJobs sends the jobs of a namespace, or of all namespaces if it is empty, that the options select: first all of them, then each
// time one changes or is gone, until ctx ends. Like Follow it survives outages of the API server.
func (y *Yard) FollowJobs(ctx context.Context, namespace string, contact func(answers bool), options ...client.ListOption) (<-chan *Job, error) {
	changes := make(chan *Job)
	options = append([]client.ListOption{client.InNamespace(namespace)}, options...)
	contacts := contactOfAll(contact)
	var unavailable error
	available := false
	for _, k := range kinds.All {
		list, err := y.newList(k)
		if err != nil {
			return nil, err
		}
		if err := y.List(ctx, list, options...); isUnavailable(err) {
			unavailable = err
			continue
		}
		available = true // a server that does not answer is reported by the watch
		y.watch(ctx, list, k.New(), options, contacts(), func(obj client.Object, gone bool) {
			o := obj.(manifest.Object)
			select {
			case changes <- &Job{Kind: k, Object: o, Manifest: k.Read(o), Gone: gone}:
			case <-ctx.Done():
			}
		})
	}
	if !available {
		return nil, unavailable
	}
	return changes, nil
}

// contactOfAll combines the contact of several watches: the server does not answer while one of them gets no answer.
func contactOfAll(notify func(answers bool)) (next func() func(answers bool)) {
	var mu sync.Mutex
	silent := 0
	return func() func(bool) {
		return func(answers bool) {
			mu.Lock()
			defer mu.Unlock()
			was := silent
			if answers {
				silent--
			} else {
				silent++
			}
			if (was == 0) != (silent == 0) {
				notify(silent == 0)
			}
		}
	}
}
