package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

// ReadStatus takes the neutral status out of the kubeflow.org one. Roles come in the given order.
func ReadStatus(s *kubeflowv1.JobStatus, roles []job.Role) job.Status {
	out := job.Status{
		StartTime: when(s.StartTime), CompletionTime: when(s.CompletionTime), ObservedGeneration: s.ObservedGeneration,
		Attempt: s.Attempt, Retries: s.Retries, Disruptions: s.Disruptions, Message: s.Message, Ready: s.Ready,
		NotBefore: when(s.NotBefore), InARow: s.RestartsInARow, Finishing: when(s.FinishingSince), LastFailure: readFailure(s.LastFailure, roles),
	}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, job.Condition{
			Type: job.ConditionType(c.Type), Status: c.Status == corev1.ConditionTrue, Reason: c.Reason, Message: c.Message,
			LastUpdate: c.LastUpdateTime.UTC(), LastTransition: c.LastTransitionTime.UTC(),
		})
	}
	for _, role := range roles {
		if rs := s.ReplicaStatuses[kubeflowv1.ReplicaType(role.Name)]; rs != nil {
			out.Roles = append(out.Roles, job.RoleStatus{
				Role: role.Name, Size: rs.Replicas, Active: rs.Active, Succeeded: rs.Succeeded, Failed: rs.Failed,
				Started: readIndexes(rs.StartedIndexes), Done: readIndexes(rs.CompletedIndexes),
			})
		}
	}
	for _, a := range s.Attempts {
		out.Attempts = append(out.Attempts, job.Attempt{
			Number: a.Number, Start: when(a.StartTime), End: when(a.EndTime), Reason: a.Reason, Message: a.Why,
		})
	}
	for _, n := range s.AvoidNodes {
		out.AvoidNodes = append(out.AvoidNodes, job.AvoidedNode{Node: n.Node, Until: n.Until.UTC(), Strikes: n.Strikes, Why: n.Why, OnlyPreferred: n.OnlyPreferred})
	}
	for _, r := range s.Records {
		out.Records = append(out.Records, job.Record{
			Replica: job.Replica{Role: string(r.Role), Index: r.Index}, Pod: r.Pod, Failures: r.Failures, Handled: r.Settled,
			InARow: r.RestartsInARow, NotBefore: when(r.NotBefore), Lost: r.Lost,
		})
	}
	return out
}

// WriteStatus turns the neutral status into the kubeflow.org one. Selector finds the pods of a role.
func WriteStatus(s job.Status, selector func(role string) string) kubeflowv1.JobStatus {
	out := kubeflowv1.JobStatus{
		StartTime: stored(s.StartTime), CompletionTime: stored(s.CompletionTime),
		ReplicaStatuses: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaStatus{},
		RunStatus: kubeflowv1.RunStatus{
			ObservedGeneration: s.ObservedGeneration, Attempt: s.Attempt, Retries: s.Retries, Disruptions: s.Disruptions,
			Restarts: s.Retries + s.Disruptions, Message: s.Message, Ready: s.Ready, NotBefore: stored(s.NotBefore),
			RestartsInARow: s.InARow, FinishingSince: stored(s.Finishing), LastFailure: writeFailure(s.LastFailure),
		},
	}
	for _, c := range s.Conditions {
		status := corev1.ConditionFalse
		if c.Status {
			status = corev1.ConditionTrue
		}
		out.Conditions = append(out.Conditions, kubeflowv1.JobCondition{
			Type: kubeflowv1.JobConditionType(c.Type), Status: status, Reason: c.Reason, Message: c.Message,
			LastUpdateTime: metav1.NewTime(c.LastUpdate), LastTransitionTime: metav1.NewTime(c.LastTransition),
		})
	}
	for _, r := range s.Roles {
		out.ReplicaStatuses[kubeflowv1.ReplicaType(r.Role)] = &kubeflowv1.ReplicaStatus{
			Active: r.Active, Succeeded: r.Succeeded, Failed: r.Failed, Selector: selector(r.Role), Replicas: r.Size,
			StartedIndexes: writeIndexes(r.Started), CompletedIndexes: writeIndexes(r.Done),
		}
	}
	for _, a := range s.Attempts {
		out.Attempts = append(out.Attempts, kubeflowv1.Attempt{
			Number: a.Number, StartTime: stored(a.Start), EndTime: stored(a.End), Reason: a.Reason, Why: a.Message,
		})
	}
	for _, n := range s.AvoidNodes {
		out.AvoidNodes = append(out.AvoidNodes, kubeflowv1.AvoidedNode{Node: n.Node, Until: metav1.NewTime(n.Until), Strikes: n.Strikes, Why: n.Why, OnlyPreferred: n.OnlyPreferred})
	}
	for _, r := range s.Records {
		out.Records = append(out.Records, kubeflowv1.ReplicaRecord{
			Role: kubeflowv1.ReplicaType(r.Role), Index: r.Index, Pod: r.Pod, Failures: r.Failures, Settled: r.Handled,
			RestartsInARow: r.InARow, NotBefore: stored(r.NotBefore), Lost: r.Lost,
		})
	}
	return out
}

func readFailure(f *kubeflowv1.ReplicaFailure, roles []job.Role) *job.Failure {
	if f == nil {
		return nil
	}
	out := &job.Failure{
		Pod: f.Pod, Node: f.Node, Class: job.Class(f.Class), Reason: f.Reason, Message: f.Message, Time: when(f.Time),
	}
	if f.ExitCode != nil {
		out.ExitCode = *f.ExitCode
	}
	if f.Signal != nil {
		out.Signal = *f.Signal
	}
	out.Replica = readReplica(f.Replica, roles)
	return out
}

// readReplica reads "worker-2". The name of a role may itself have a '-', and begin with that of another.
func readReplica(text string, roles []job.Role) job.Replica {
	end := strings.LastIndexByte(text, '-')
	for _, role := range roles {
		if end >= 0 && strings.EqualFold(text[:end], role.Name) {
			index, _ := strconv.ParseInt(text[end+1:], 10, 32)
			return job.Replica{Role: role.Name, Index: int32(index)}
		}
	}
	return job.Replica{}
}

func writeFailure(f *job.Failure) *kubeflowv1.ReplicaFailure {
	if f == nil {
		return nil
	}
	out := &kubeflowv1.ReplicaFailure{
		Replica: fmt.Sprintf("%s-%d", strings.ToLower(f.Role), f.Index), Pod: f.Pod, Node: f.Node,
		Class: kubeflowv1.FailureClass(f.Class), Reason: f.Reason, Message: f.Message, Time: stored(f.Time),
	}
	if f.ExitCode != 0 {
		out.ExitCode = &f.ExitCode
	}
	if f.Signal != 0 {
		out.Signal = &f.Signal
	}
	return out
}

func when(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func stored(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// readIndexes reads "0,3-5". What it cannot read, and what no job can have, it leaves out: whoever may write the status must not be able
// to fill the operator's memory.
func readIndexes(text string) []int32 {
	var set []int32
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		from, err := strconv.ParseInt(low, 10, 32)
		to := from
		if isRange && err == nil {
			to, err = strconv.ParseInt(high, 10, 32)
		}
		for i := max(from, 0); err == nil && i <= min(to, job.MaxReplicas-1) && len(set) < job.MaxReplicas; i++ {
			set = append(set, int32(i))
		}
	}
	slices.Sort(set)
	return slices.Compact(set)
}

func writeIndexes(set []int32) string {
	var parts []string
	for i := 0; i < len(set); {
		end := i
		for end+1 < len(set) && set[end+1] == set[end]+1 {
			end++
		}
		if part := strconv.Itoa(int(set[i])); end > i {
			parts = append(parts, fmt.Sprintf("%s-%d", part, set[end]))
		} else {
			parts = append(parts, part)
		}
		i = end + 1
	}
	return strings.Join(parts, ",")
}
