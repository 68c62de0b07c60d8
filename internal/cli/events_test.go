package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/yard"
)

func TestAnEventInOneLine(t *testing.T) {
	day := time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)
	demo := &yard.Job{
		Kind:     kinds.All[0],
		Object:   &kubeflowv1.PyTorchJob{ObjectMeta: metav1.ObjectMeta{Name: "demo", CreationTimestamp: metav1.NewTime(day)}},
		Manifest: &manifest.Manifest{Job: job.Job{Name: "demo"}},
	}
	exact, whole := day.Add(6900*time.Millisecond), day.Add(6*time.Second)
	for _, row := range []struct {
		sentence string
		event    yard.Event
		want     string
	}{
		{"parts of a second are cut", yard.Event{Time: exact, Name: "demo", Type: "Warning", Text: "PyTorchJob demo is restarting."}, "      +6s ! demo          is restarting."},
		{"so that what follows with whole seconds is not before", yard.Event{Time: whole, Name: "demo-worker-0", Type: "Normal", Text: "Stopping\ncontainer"}, "      +6s   worker-0      Stopping container"},
		{"often", yard.Event{Time: exact, First: day, Times: 3, Name: "demo-worker-0", Text: "Started"}, "      +6s   worker-0      Started (3 times since +0s)"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := eventLine(demo, row.event); got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
}
