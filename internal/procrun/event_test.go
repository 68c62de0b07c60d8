package procrun

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestEventsTellAPodsLife(t *testing.T) {
	w := newWorld(t)
	events := make(chan *v1.ContainerEventResponse)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	listening := make(chan struct{})
	go func() {
		_ = w.GetContainerEvents(ctx, events, func(v1.RuntimeService_GetContainerEventsClient) { close(listening) })
	}()
	<-listening
	pod := w.pod("life")
	id := w.start(pod, "exit 3")
	w.ended(id)
	w.must(w.StopPodSandbox(ctx, pod))
	w.must(w.RemovePodSandbox(ctx, pod))
	names := map[string]string{pod: "pod", id: "container"}
	var got []string
	for len(got) < 8 {
		select {
		case e := <-events:
			got = append(got, names[e.GetContainerId()]+" "+e.GetContainerEventType().String())
			if e.GetPodSandboxStatus().GetId() != pod {
				t.Errorf("event about pod %s", e.GetPodSandboxStatus().GetId())
			}
			if e.GetContainerId() == id && e.GetContainerEventType() == v1.ContainerEventType_CONTAINER_STOPPED_EVENT &&
				e.GetContainersStatuses()[0].GetExitCode() != 3 {
				t.Errorf("the container's end comes with %v", e.GetContainersStatuses())
			}
		case <-time.After(patient):
			t.Fatalf("no more events after %q", got)
		}
	}
	want := []string{
		"pod CONTAINER_CREATED_EVENT", "pod CONTAINER_STARTED_EVENT",
		"container CONTAINER_CREATED_EVENT", "container CONTAINER_STARTED_EVENT", "container CONTAINER_STOPPED_EVENT",
		"pod CONTAINER_STOPPED_EVENT", "container CONTAINER_DELETED_EVENT", "pod CONTAINER_DELETED_EVENT",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}
