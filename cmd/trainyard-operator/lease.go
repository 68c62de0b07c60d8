package main

import (
	"cmp"
	"flag"
	"os"
	"time"
)

// leaseTimes say how fast a standby replaces a leader that was killed, and how long an outage of the API server a leader survives.
//
// A standby looks at the lease every retryPeriod to 2.2 × retryPeriod (client-go's jitter). It sees the last renewal one look late,
// waits for duration, and acts at its next look: after duration + 4.4 × retryPeriod at most, which is 4.8 s with the defaults.
// A leader that cannot renew exits retryPeriod + renewDeadline after its last renewal, 2.4 s, which must be less than duration. Its last
// request, to release the lease, may add a second.
type leaseTimes struct {
	duration, renewDeadline, retryPeriod time.Duration
}

func (l *leaseTimes) register(flags *flag.FlagSet) {
	flags.DurationVar(&l.duration, "leader-election-lease-duration", 3*time.Second,
		"How long a standby waits for a renewal of the lease before it leads. Whole seconds.")
	flags.DurationVar(&l.renewDeadline, "leader-election-renew-deadline", 2*time.Second,
		"How long the leader tries to renew the lease before it exits.")
	flags.DurationVar(&l.retryPeriod, "leader-election-retry-period", 400*time.Millisecond,
		"How long to wait between two tries to renew or to get the lease.")
}

// leaseNamespace is the namespace of the lease. In a cluster it is the operator's own; elsewhere it is the namespace whose jobs the
// operator runs.
func leaseNamespace(o options) string {
	if own, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return string(own)
	}
	return cmp.Or(o.namespace, "default")
}
