package procrun

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// events tells kubelet what happens as it happens, so that it need not ask all the time.
type events struct {
	mu        sync.Mutex
	listeners map[chan *v1.ContainerEventResponse]struct{}
}

// GetContainerEvents sends what happens to containers and sandboxes until ctx ends.
func (r *Runtime) GetContainerEvents(ctx context.Context, to chan *v1.ContainerEventResponse, established func(v1.RuntimeService_GetContainerEventsClient)) error {
	mine := make(chan *v1.ContainerEventResponse, 1024)
	r.events.mu.Lock()
	if r.events.listeners == nil {
		r.events.listeners = map[chan *v1.ContainerEventResponse]struct{}{}
	}
	r.events.listeners[mine] = struct{}{}
	r.events.mu.Unlock()
	defer func() {
		r.events.mu.Lock()
		defer r.events.mu.Unlock()
		delete(r.events.listeners, mine)
	}()
	if established != nil {
		established(nil)
	}
	for {
		select {
		case event := <-mine:
			select {
			case to <- event:
			case <-ctx.Done():
				return ctx.Err()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell sends an event about a container, or about the sandbox itself, with the state of the whole pod. A listener
// that is too far behind misses it and finds out by asking, which kubelet does from time to time.
func (r *Runtime) tell(kind v1.ContainerEventType, id string, s *sandbox) {
	r.events.mu.Lock()
	defer r.events.mu.Unlock()
	if len(r.events.listeners) == 0 {
		return
	}
	event := &v1.ContainerEventResponse{
		ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano(),
		PodSandboxStatus: s.status(), ContainersStatuses: r.statusesOf(s.id),
	}
	for listener := range r.events.listeners {
		select {
		case listener <- event:
		default:
		}
	}
}
