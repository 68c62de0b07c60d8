package job

import corev1 "k8s.io/api/core/v1"

// run creates and deletes children of a job that is neither finished nor suspended, so that they are as they should be.
func (p *pass) run() {
	for _, pod := range p.outdated {
		p.deletePod(pod, "it belongs to an earlier attempt")
	}
	for _, pod := range p.surplus {
		p.deletePod(pod, "the job was scaled down")
	}
	for _, r := range p.replicas {
		if p.handled(r) && !p.isLost(r.Replica) {
			p.deletePod(r.pod, "it is replaced")
		}
	}
	p.acceptAvoided()
	if p.keepChildren() {
		p.createPods()
	}
	p.delayAfterRejection()
	p.noteRunning()
}

// createPods creates the pods that are missing. No pod of this attempt is created while one of an earlier attempt may run.
// Before the first one that must be seen on the API server itself, not in the cache.
func (p *pass) createPods() {
	s := p.next()
	if len(p.outdated) > 0 || !s.Finishing.IsZero() {
		return
	}
	if p.Now.Before(s.NotBefore) {
		p.requeueAt(s.NotBefore)
		return
	}
	present := false
	for _, r := range p.replicas {
		present = present || r.pod != nil
		if r.pod == nil && p.mayCreate(r.Replica) && p.waitsForRole(r.role) == "" {
			p.CreatePods = append(p.CreatePods, r.Replica)
		}
	}
	if len(p.CreatePods) == 0 || present {
		return
	}
	p.createUnseen()
	if s.Attempt > 0 {
		p.Ask.Pods = p.Ask.Pods || !p.Live
	}
}

// mayCreate reports whether a replica without a pod should get one now.
func (p *pass) mayCreate(r Replica) bool {
	if p.done(r) || p.foreign[p.Job.PodName(r)] {
		return false
	}
	rec := p.next().record(r)
	if rec == nil {
		return true
	}
	if !rec.Lost && p.Now.Before(rec.NotBefore) {
		p.requeueAt(rec.NotBefore)
		return false
	}
	return !rec.Lost
}

// trains reports whether every role has as many replicas running, or done, as it needs. Roles that start after the training
// do not count.
func (p *pass) trains() bool {
	running := map[string]int32{}
	someone := false
	for _, r := range p.replicas {
		runs := r.pod != nil && r.running && r.pod.DeletionTimestamp == nil && !p.handled(r)
		if runs || p.done(r.Replica) {
			running[r.Role]++
		}
		someone = someone || runs
	}
	for _, role := range p.Job.Roles {
		if running[role.Name] < p.required(role) && !p.Job.follows(role.Name, p.Job.Trains) {
			return false
		}
	}
	return someone
}

// noteRunning records that the job runs, and how long that took.
func (p *pass) noteRunning() {
	s := p.next()
	if s.Is(Running) || !p.trains() {
		return
	}
	if c := s.condition(Restarting); c != nil {
		p.measure(TimeToRecover, p.Now.Sub(c.LastTransition))
	} else {
		p.measure(TimeToRunning, p.Now.Sub(s.StartTime))
	}
	s.unset(Restarting)
	p.becomes(Running, "is running")
}

// reportRestart records the restart, and that the job no longer runs if too few replicas do.
func (p *pass) reportRestart(why string) {
	message := "is restarting: " + why
	if p.trains() {
		p.emit(true, p.reason(Restarting), message)
		return
	}
	p.next().unset(Running)
	if p.next().Is(Restarting) {
		p.emit(true, p.reason(Restarting), message)
	}
	p.becomes(Restarting, message)
}

func (p *pass) allPods() []*corev1.Pod {
	pods := append(append([]*corev1.Pod{}, p.outdated...), p.surplus...)
	for _, r := range p.replicas {
		if r.pod != nil {
			pods = append(pods, r.pod)
		}
	}
	return pods
}

// deletePod deletes a pod, unless it is being deleted already.
func (p *pass) deletePod(pod *corev1.Pod, why string) {
	if pod.DeletionTimestamp == nil {
		p.delete(Deletion{Pod: pod, Why: why})
	}
}
