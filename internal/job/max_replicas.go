package job

// MaxReplicas is how many replicas a job may have. It is more than any cluster has nodes: a larger number is a typing error, and
// would need more memory than there is. The API server refuses it; a job that was stored before that rule fails.
const MaxReplicas = 10000

// TooManyReplicas is the first role with which a job has more than MaxReplicas.
func (j Job) TooManyReplicas() (role Role, found bool) {
	var total int64
	for _, role := range j.Roles {
		if total += int64(j.Size(role)); total > MaxReplicas {
			return role, true
		}
	}
	return Role{}, false
}
