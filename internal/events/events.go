// Package events records what happened to a job as Kubernetes events on it. The messages come from the engine's decisions
// unchanged.
package events

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/job"
)

// maxMessageLength is the API server's limit.
const maxMessageLength = 1024

// exitedWithCode is the reason by which clients of Training Operator find the exit code of a pod.
const exitedWithCode = "ExitedWithCode"

// Subject is the job that events are about, at a moment.
type Subject struct {
	corev1.ObjectReference
	Now time.Time
}

// Of are the events of a decision that are not routine. An event's name is made from what it says and from the numbers of the attempt,
// of the restarts and of the edit: a second restart, or a second scaling, is an event of its own, and one that is sent twice is
// stored once.
func Of(about Subject, d job.Decision) []*corev1.Event {
	var all []*corev1.Event
	for _, e := range d.Events {
		if e.Routine {
			continue
		}
		kind, pod := corev1.EventTypeNormal, ""
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		if e.Failure != nil {
			pod = e.Failure.Pod // two refused pods are two events
		}
		run := fmt.Sprintf("%d.%d.%d.%s", d.Status.Attempt, d.Status.Retries+d.Status.Disruptions, d.Status.ObservedGeneration, pod)
		if f := e.Failure; f != nil && f.ExitCode != 0 && isEnd(e) {
			all = append(all, about.New(corev1.EventTypeNormal, exitedWithCode, fmt.Sprintf("Pod: %s.%s exited with code %d", about.Namespace, f.Pod, f.ExitCode), run))
		}
		all = append(all, about.New(kind, e.Reason, e.Message, run))
	}
	return all
}

// isEnd tells whether an event says what became of the job because of a failure. Other events about the same failure follow it.
func isEnd(e job.Event) bool {
	return strings.HasSuffix(e.Reason, string(job.Restarting)) || strings.HasSuffix(e.Reason, string(job.Failed))
}

// New is an event on the subject. It has the fields of both generations of the API: old clients read the timestamps, the count and
// the source, new ones the event time, the controller and the action. Identity distinguishes it from others that say the same.
func (about Subject) New(kind, reason, message, identity string) *corev1.Event {
	if len(message) > maxMessageLength {
		message = strings.ToValidUTF8(message[:maxMessageLength-3], "") + "..."
	}
	controller := naming.OperatorName(about.Kind)
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s\x00%s\x00%s\x00%s", about.UID, reason, message, identity)
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: about.Namespace, Name: fmt.Sprintf("%s.%016x", about.Name, hash.Sum64())},
		InvolvedObject: about.ObjectReference,
		Type:           kind, Reason: reason, Message: message, Action: reason,
		FirstTimestamp: metav1.NewTime(about.Now), LastTimestamp: metav1.NewTime(about.Now), EventTime: metav1.NewMicroTime(about.Now), Count: 1,
		Source: corev1.EventSource{Component: controller}, ReportingController: controller, ReportingInstance: instance,
	}
}
