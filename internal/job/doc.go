// Package job knows how a training job lives, and nothing else.
//
// [Decide] takes everything there is to know about one job at one moment ([Observed]: the job, its last status, its
// pods and services, the time) and answers with what to do ([Decision]: the status to record, the pods to delete and
// to create, the events to send, when to decide again). It has no client, no context, no logger, no clock and no
// randomness: deciding twice on the same facts gives the same answer, and every rule can be tested by writing facts down.
//
// The engine that carries a decision out keeps one order: record, then act. The new status is written first, on the
// resource version it was decided on; only when that write succeeded are pods deleted, then created. Whatever crashes
// in between, the next pass reads what was recorded and carries on. Three marks make that exact:
//
//   - Every pod is labelled with its attempt. Restarting the whole gang is recorded by raising Status.Attempt; from then
//     on a pod of an older attempt is garbage to be removed, never proof of another failure.
//   - Where one replica restarts alone, its [Record] names the pod whose failures are charged, and how many.
//   - A replica whose training was seen to run is in RoleStatus.Started; if its pod is missing it has vanished;
//     otherwise its pod was never created.
//
// Caches lag, and a new leader's cache may be behind what the old one recorded. So before a failure is charged, and
// before the first pod of a further attempt is made, the decision asks for a look at the API server itself ([Ask]).
//
// Each policy of the API is one file named after its field; decide.go has the order in which they apply.
package job
