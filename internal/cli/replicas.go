package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/job"
)

// replicasOf are the replicas that a job starts with, in the order of its roles.
func replicasOf(j job.Job) []job.Replica {
	var all []job.Replica
	for _, role := range j.Roles {
		for i := range j.Size(role) {
			all = append(all, job.Replica{Role: role.Name, Index: i})
		}
	}
	return all
}

// shortName is the name of a replica on the command line: worker-1.
func shortName(r job.Replica) string { return fmt.Sprintf("%s-%d", strings.ToLower(r.Role), r.Index) }

// isCalled reports whether a person may call a replica by a name: its short name, its pod's, or that of its role if it is the only one.
func isCalled(j job.Job, r job.Replica, name string) bool {
	alone := func(role job.Role) bool { return role.Name == r.Role && j.Size(role) == 1 }
	return strings.EqualFold(name, shortName(r)) || strings.EqualFold(name, j.PodName(r)) ||
		strings.EqualFold(name, r.Role) && slices.ContainsFunc(j.Roles, alone)
}

// findReplica is the replica that a person calls by a name.
func findReplica(j job.Job, name string) (job.Replica, error) {
	for _, r := range replicasOf(j) {
		if isCalled(j, r, name) {
			return r, nil
		}
	}
	return job.Replica{}, noSuchReplica(j, name)
}

func replicaList(j job.Job) string {
	var names []string
	for _, replica := range replicasOf(j) {
		names = append(names, shortName(replica))
	}
	return shortList(names, 8)
}

// shortList lists at most limit names.
func shortList(names []string, limit int) string {
	if len(names) > limit {
		return strings.Join(names[:limit-1], ", ") + fmt.Sprintf(" and %d more", len(names)-limit+1)
	}
	return strings.Join(names, ", ")
}

func noSuchReplica(j job.Job, name string) error {
	return usageError{fmt.Errorf("%s has no replica %s: it has %s", j.Name, name, replicaList(j))}
}
