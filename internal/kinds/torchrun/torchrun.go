// Package torchrun has the settings of torchrun that all kinds which run it share.
package torchrun

import (
	"fmt"

	"github.com/trainyard/trainyard/internal/job"
)

// Our defaults for torchrun. Its own are for jobs of a fixed size: when a worker leaves, and often when one joins, the processes
// of the others fail on their next collective. Without a restart left torchrun then ends. A new round would also wait half a
// minute for workers that are not coming.
const (
	MaxRestarts     = 30
	LastCallTimeout = 10 // seconds
)

// RendezvousID is the name under which the replicas of an attempt meet. It carries the attempt, so that a process that still runs
// on a node that was cut off cannot join the next. That of the first attempt is the job's UID alone, which jobs had before: replicas
// that join a running job after an upgrade meet the others.
func RendezvousID(j job.Job, attempt int32) string {
	if attempt == 0 {
		return string(j.UID)
	}
	return fmt.Sprintf("%s-%d", j.UID, attempt)
}
