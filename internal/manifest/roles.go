package manifest

// Has tells whether the job has a replica of the role.
func (m *Manifest) Has(role string) bool { return m.Size(role) > 0 }

// Size is the number of replicas that a role should have now, 0 where there is no such role.
func (m *Manifest) Size(role string) int32 { return m.Job.Size(m.role(role)) }

// Total is the number of replicas of all roles.
func (m *Manifest) Total() int32 {
	var n int32
	for _, role := range m.Job.Roles {
		n += m.Job.Size(role)
	}
	return n
}
