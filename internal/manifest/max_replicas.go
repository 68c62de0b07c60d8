package manifest

import "github.com/trainyard/trainyard/internal/job"

// MaxReplicas is how many replicas of a role the tools work out without a cluster, one by one. It is more than any cluster has
// nodes: a larger number is a typing error, and would need more memory than there is.
const MaxReplicas = 10000

// TooManyReplicas is the first role of a job that has more than MaxReplicas.
func TooManyReplicas(j job.Job) (role job.Role, found bool) {
	for _, role := range j.Roles {
		if j.Size(role) > MaxReplicas {
			return role, true
		}
	}
	return job.Role{}, false
}
