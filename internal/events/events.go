// Package events tells a job's user what happened to it, as Kubernetes events on the job. The sentences come with the
// engine's decisions; here they are only passed on.
package events

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/trainyard/trainyard/internal/job"
)

// longest is what the API server allows a note to be.
const longest = 1024

// Tell records what a decision says happened, but for routine. The recorder takes two events of one reason and action for one that is
// repeated, so the action carries the number of the run and of the edit: the second restart is not the first, nor the second scaling.
func Tell(recorder events.EventRecorder, regarding runtime.Object, d job.Decision) {
	for _, e := range d.Events {
		if e.Routine {
			continue
		}
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		action := fmt.Sprintf("Run%d.%d.%d", d.Status.Attempt, d.Status.Retries+d.Status.Disruptions, d.Status.ObservedGeneration)
		note := e.Message
		if len(note) > longest {
			note = note[:longest-3] + "..."
		}
		recorder.Eventf(regarding, nil, kind, e.Reason, action, "%s", note)
	}
}
