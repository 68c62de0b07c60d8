package events

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/trainyard/trainyard/internal/job"
)

func TestRecord(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	Record(recorder, &corev1.Pod{}, job.Decision{Events: []job.Event{
		{Reason: "PyTorchJobCreated", Message: "PyTorchJob demo is created.", Routine: true},
		{Reason: "PyTorchJobRunning", Message: "PyTorchJob demo is running 100% well."},
		{Reason: "PyTorchJobFailed", Message: strings.Repeat("x", 2000), Warning: true},
	}})
	if got, want := <-recorder.Events, "Normal PyTorchJobRunning PyTorchJob demo is running 100% well."; got != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
	if got := <-recorder.Events; !strings.HasPrefix(got, "Warning PyTorchJobFailed xxx") || len(got) > maxNoteLength+len("Warning PyTorchJobFailed ") {
		t.Errorf("recorded %d bytes: %.40s", len(got), got)
	}
}
