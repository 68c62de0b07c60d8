package job

// ManagedElsewhere reports whether another controller runs this job: then it is not touched, not even its status.
func (j Job) ManagedElsewhere() bool {
	by := j.Policy.ManagedBy
	return by != nil && *by != j.Manager
}
