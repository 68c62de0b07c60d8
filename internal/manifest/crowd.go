package manifest

import "github.com/trainyard/trainyard/internal/job"

// MostReplicas is how many replicas of a role are worked out without a cluster, one by one. It is more than any cluster has nodes; a
// number beyond is a slip, and would take all memory there is.
const MostReplicas = 10000

// Crowd is the first role of a job that has more.
func Crowd(j job.Job) (role job.Role, found bool) {
	for _, role := range j.Roles {
		if j.Size(role) > MostReplicas {
			return role, true
		}
	}
	return job.Role{}, false
}
