package controller

import (
	"cmp"

	"github.com/trainyard/trainyard/internal/manifest"
)

// placeTogether lets a scheduler place the job's replicas together. A runtime may name one. Otherwise it is the one that the operator's
// flag names, for every job; without the flag it is, for jobs that ask for one, the first whose kind of pod groups the cluster serves. A
// later pass may find another one: pods that exist stay as they are, and only later ones are placed by it. If the API server does not
// say what it serves, the pass fails: pods that were placed one by one by mistake could block those of another job for ever.
func (p *pass) placeTogether() (err error) {
	serves := func(scheduler manifest.GangScheduler) bool {
		served, askErr := p.serves(scheduler)
		err = cmp.Or(err, askErr)
		return served
	}
	asks := p.manifest.Placement
	if asks != nil {
		p.manifest.Job.ScheduleTimeoutSeconds = asks.ScheduleTimeoutSeconds
	}
	switch {
	case p.gangScheduler == None || p.manifest.Job.Missing != "" || p.manifest.Job.Invalid != "":
	case asks != nil && asks.Scheduler != "" && (p.gangScheduler == "" || serves(manifest.GangSchedulerNamed(asks.Scheduler))):
		p.manifest.PlaceTogether(manifest.GangSchedulerNamed(asks.Scheduler))
	case p.gangScheduler != "":
		p.manifest.PlaceTogether(manifest.GangSchedulerNamed(p.gangScheduler))
	case asks != nil:
		for _, scheduler := range manifest.GangSchedulers {
			if serves(scheduler) {
				p.manifest.PlaceTogether(scheduler)
				return err
			}
		}
	}
	return err
}

// serves reports whether the cluster serves the scheduler's kind of pod groups.
func (p *pass) serves(scheduler manifest.GangScheduler) (bool, error) {
	for _, kind := range p.childKinds.optional {
		if kind.ChildKind.ChildKind == scheduler.Group.ChildKind {
			return kind.isServed(p.childKinds, p.at)
		}
	}
	return false, nil
}
