package controller

import (
	"slices"

	"github.com/trainyard/trainyard/internal/manifest"
)

// placeTogether lets a scheduler place the job's replicas together. A runtime may name one. Otherwise it is the one that the operator's
// flag names, for every job; without the flag it is, for jobs that ask for one, the first whose kind of pod groups the cluster serves. A
// later pass may find another one: pods that exist stay as they are, and only later ones are placed by it.
func (p *pass) placeTogether() {
	asks := p.manifest.Placement
	switch {
	case p.gangScheduler == None || p.manifest.Job.Missing != "" || p.manifest.Job.Invalid != "":
	case asks != nil && asks.Scheduler != "" && (p.gangScheduler == "" || p.serves(manifest.GangSchedulerNamed(asks.Scheduler))):
		p.manifest.PlaceTogether(manifest.GangSchedulerNamed(asks.Scheduler))
	case p.gangScheduler != "":
		p.manifest.PlaceTogether(manifest.GangSchedulerNamed(p.gangScheduler))
	case asks != nil:
		for _, scheduler := range manifest.GangSchedulers {
			if p.serves(scheduler) {
				p.manifest.PlaceTogether(scheduler)
				return
			}
		}
	}
}

// serves reports whether the cluster serves the scheduler's kind of pod groups.
func (p *pass) serves(scheduler manifest.GangScheduler) bool {
	return slices.ContainsFunc(p.childKinds.optional, func(kind *optionalKind) bool {
		return kind.ChildKind.ChildKind == scheduler.Group.ChildKind && kind.isServed(p.childKinds, p.at)
	})
}
