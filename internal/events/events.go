// Package events records what happened to a job as Kubernetes events on it. The messages come from the engine's decisions
// unchanged.
package events

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/trainyard/trainyard/internal/job"
)

// maxNoteLength is the API server's limit.
const maxNoteLength = 1024

// Record records the events of a decision that are not routine. The recorder merges two events with the same reason and action into
// one, so the action includes the numbers of the attempt, of the restarts and of the edit: a second restart, or a second scaling, is
// an event of its own.
func Record(recorder events.EventRecorder, regarding runtime.Object, d job.Decision) {
	for _, e := range d.Events {
		if e.Routine {
			continue
		}
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		action := fmt.Sprintf("Run%d.%d.%d", d.Status.Attempt, d.Status.Retries+d.Status.Disruptions, d.Status.ObservedGeneration)
		if e.Failure != nil {
			action += "." + e.Failure.Pod // two refused pods are two events
		}
		note := e.Message
		if len(note) > maxNoteLength {
			note = note[:maxNoteLength-3] + "..."
		}
		recorder.Eventf(regarding, nil, kind, e.Reason, action, "%s", note)
	}
}
