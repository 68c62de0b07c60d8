package yard

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// contactChanges calls notify when an API server stops answering, and when it answers again. A refusal is an answer.
func contactChanges(notify func(answers bool)) func(context.Context, error) {
	var mu sync.Mutex
	answers := true
	return func(ctx context.Context, err error) {
		mu.Lock()
		defer mu.Unlock()
		var status apierrors.APIStatus
		now := err == nil || errors.As(err, &status)
		if now != answers && ctx.Err() == nil {
			answers = now
			notify(now)
		}
	}
}

// errNoEvent says that a watch ended before it brought an event.
var errNoEvent = errors.New("the watch brought no event")

// watchContact passes the events of a watch on and reports whether the server answers. A server that cannot be reached may look like
// a watch that ends at once. A watch that stays open for a second is an answer.
func watchContact(ctx context.Context, w watch.Interface, answered func(context.Context, error)) watch.Interface {
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
					answered(ctx, errNoEvent)
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
