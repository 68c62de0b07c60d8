package yard

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// edges tells when an API server ceases to answer, and when it begins to again. That it says no is an answer.
func edges(tell func(answers bool)) func(context.Context, error) {
	var mu sync.Mutex
	answers := true
	return func(ctx context.Context, err error) {
		mu.Lock()
		defer mu.Unlock()
		var status apierrors.APIStatus
		now := err == nil || errors.As(err, &status)
		if now != answers && ctx.Err() == nil {
			answers = now
			tell(now)
		}
	}
}

// errSilent says that a watch has ended before anything was heard by it.
var errSilent = errors.New("nothing was heard")

// heard passes a watch on and tells whether somebody is at its other end. A server that cannot be reached may look like a watch
// that ends at once; one that is open for a second is an answer.
func heard(ctx context.Context, w watch.Interface, answered func(context.Context, error)) watch.Interface {
	events := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		silent, second := true, time.NewTimer(time.Second)
		defer second.Stop()
		for {
			select {
			case <-proxy.StopChan():
				return
			case <-second.C:
				silent = false
				answered(ctx, nil)
			case e, open := <-w.ResultChan():
				if !open && silent {
					answered(ctx, errSilent)
				}
				if !open {
					return
				}
				silent = false
				answered(ctx, nil)
				select {
				case events <- e:
				case <-proxy.StopChan():
					return
				}
			}
		}
	}()
	return proxy
}
