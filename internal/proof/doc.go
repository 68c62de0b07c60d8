// Package proof attacks the real controller on the real API server. It has tests only.
//
// A history is the life of one job. The test plays everything that is not the controller: the user, the scheduler, the kubelets, the node
// controller and the garbage collector. The controller is the one that is shipped, with the rights that are shipped: its watches, its
// predicates, its queue and its requests. Four things around it are in the test's hands: its clock, when its queue gives out a job,
// what its caches have received so far, and what becomes of each of its requests. So a history is a sequence of steps that a seed
// repeats, an hour passes in no time, and a crash can be at any request.
//
// The oracle reads the API server's own history, by a watch, and knows what truly happened to each pod. It checks the nine invariants of
// docs/design.md. docs/proof.md says what has been run and what was found.
package proof
