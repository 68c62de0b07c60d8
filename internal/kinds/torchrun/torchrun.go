// Package torchrun has the settings of torchrun that all kinds which run it share.
package torchrun

// Our defaults for torchrun. Its own are for jobs of a fixed size: when a worker leaves, and often when one joins, the processes
// of the others fail on their next collective. Without a restart left torchrun then ends. A new round would also wait half a
// minute for workers that are not coming.
const (
	MaxRestarts     = 30
	LastCallTimeout = 10 // seconds
)
