// Package torchrun is what kinds whose replicas run torchrun tell it alike.
package torchrun

// What torchrun is told where nobody says otherwise. Its own values are for jobs of a fixed size: when a worker leaves, and
// often when one comes, the processes of the others fail on their next collective, and with no restart left torchrun
// gives up for good; and a new round would wait half a minute for workers that nobody asked for.
const (
	MaxRestarts     = 30
	LastCallTimeout = 10 // seconds
)
