package view

// Standing counts the changes of everything beside a task and its Lease that says how the task looks: rooms, their members,
// agents and Consents. While it stays the same, so does what was made of a task.
func (v *View) Standing() int64 { return v.membersVersion.Load() + v.consents.version.Load() }
