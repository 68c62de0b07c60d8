package job

import corev1 "k8s.io/api/core/v1"

// run brings the children of a job that is neither finished nor suspended to what they should be.
func (p *pass) run() {
	for _, pod := range p.outdated {
		p.delete(pod, "it belongs to an earlier attempt")
	}
	for _, pod := range p.surplus {
		p.delete(pod, "the job was scaled down")
	}
	for _, r := range p.replicas {
		if p.settled(r) && !p.isLost(r.Replica) {
			p.delete(r.pod, "it is replaced")
		}
	}
	if p.keepChildren() {
		p.createPods()
	}
	p.heedRefusal()
	p.noteRunning()
}

// createPods creates what is missing. No pod of this attempt is made while one of an earlier attempt may run, and that
// none does must be seen past the cache once: before the first.
func (p *pass) createPods() {
	s := p.next()
	if len(p.outdated) > 0 || !s.Finishing.IsZero() {
		return
	}
	if p.Now.Before(s.NotBefore) {
		p.lookAt(s.NotBefore)
		return
	}
	present := false
	for _, r := range p.replicas {
		present = present || r.pod != nil
		if r.pod == nil && p.due(r.Replica) && p.awaits(r.role) == "" {
			p.CreatePods = append(p.CreatePods, r.Replica)
		}
	}
	if s.Attempt > 0 && len(p.CreatePods) > 0 && !present {
		p.Ask.Pods = p.Ask.Pods || !p.Live
	}
}

// due tells whether a replica without a pod should get one now.
func (p *pass) due(r Replica) bool {
	if p.done(r) || p.strangers[p.Job.PodName(r)] {
		return false
	}
	rec := p.next().record(r)
	if rec == nil {
		return true
	}
	if !rec.Lost && p.Now.Before(rec.NotBefore) {
		p.lookAt(rec.NotBefore)
		return false
	}
	return !rec.Lost
}

// trains tells whether every role has as many replicas at work, or done, as it needs, but for those whose turn comes after the
// training.
func (p *pass) trains() bool {
	atWork := map[string]int32{}
	someone := false
	for _, r := range p.replicas {
		runs := r.pod != nil && r.running && r.pod.DeletionTimestamp == nil && !p.settled(r)
		if runs || p.done(r.Replica) {
			atWork[r.Role]++
		}
		someone = someone || runs
	}
	for _, role := range p.Job.Roles {
		if atWork[role.Name] < p.required(role) && !p.Job.follows(role.Name, p.Job.Trains) {
			return false
		}
	}
	return someone
}

// noteRunning reports that the job runs, and how long that took.
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

// restarts reports the restart, and that the job does not run as a whole any more if so.
func (p *pass) restarts(why string) {
	message := "is restarting: " + why
	if p.trains() {
		p.say(true, p.reason(Restarting), message)
		return
	}
	p.next().unset(Running)
	if p.next().Is(Restarting) {
		p.say(true, p.reason(Restarting), message)
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

// delete asks a pod to go, unless that was asked already.
func (p *pass) delete(pod *corev1.Pod, why string) {
	if pod.DeletionTimestamp == nil {
		p.DeletePods = append(p.DeletePods, Deletion{Pod: pod, Why: why})
	}
}
