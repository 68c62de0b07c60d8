package job

// managedElsewhere tells whether another controller runs this job: then it is not touched, not even its status.
func managedElsewhere(j Job) bool {
	by := j.Policy.ManagedBy
	return by != nil && *by != j.Manager
}
