package manifest

import (
	"strconv"
	"time"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest/traceid"
)

// restartScope is what the annotations of a job say that a failure restarts, empty where they say nothing that has a meaning.
func restartScope(annotations map[string]string) job.Scope {
	switch scope := job.Scope(annotations[kubeflowv1.AnnotationRestartScope]); scope {
	case job.ScopeJob, job.ScopeReplica:
		return scope
	}
	return ""
}

// RestartPolicy is the restart policy that the annotations of a job give to all its roles, empty where they say nothing that has a
// meaning.
func RestartPolicy(annotations map[string]string) job.RestartPolicy {
	switch policy := job.RestartPolicy(annotations[kubeflowv1.AnnotationRestartPolicy]); policy {
	case job.RestartNever, job.RestartOnFailure, job.RestartAlways, job.RestartExitCode:
		return policy
	}
	return ""
}

// finishWithin is how long replicas may go on after the job has succeeded where no annotation says so. A rank that writes the
// last part of a checkpoint needs seconds.
const finishWithin = 30 * time.Second

// SetFromAnnotations sets what the annotations of a job of any kind say. One without a meaning counts as not there; lint warns of it.
func (m *Manifest) SetFromAnnotations(annotations map[string]string) {
	m.Trace, m.Traced = traceid.Of(m.Job.UID, annotations), traceid.Valid(annotations[traceid.Annotation])
	j := &m.Job
	j.ScopeOverride = restartScope(annotations)
	j.AvoidNodes = job.AvoidPrefer
	if mode := job.AvoidNodes(annotations[kubeflowv1.AnnotationAvoidNodes]); mode == job.AvoidOff || mode == job.AvoidRequire {
		j.AvoidNodes = mode
	}
	j.LeavesNodes = annotations[kubeflowv1.AnnotationOnNodeMaintenance] == "Move"
	j.Policy.FinishWithin = finishWithin
	if d, err := time.ParseDuration(annotations[kubeflowv1.AnnotationFinishWithin]); err == nil && d >= 0 {
		j.Policy.FinishWithin = d
	}
	if n, err := strconv.ParseInt(annotations[kubeflowv1.AnnotationMaxDisruptions], 10, 32); err == nil && n >= 0 {
		j.Policy.MaxDisruptions = new(int32(n))
	}
	if n, err := strconv.ParseInt(annotations[kubeflowv1.AnnotationTTL], 10, 32); err == nil && n >= 0 && j.Policy.TTLSecondsAfterFinished == nil {
		j.Policy.TTLSecondsAfterFinished = new(int32(n))
	}
}
