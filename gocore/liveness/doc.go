// Package liveness knows who is dead.
//
// A local peer is watched by its pidfd, which its owner opened and passed along with its segment (so it works across PID
// namespaces), or, where pidfds are denied, by the record lock its owner holds. Both end with the process and with nothing else: a
// stopped process is alive, a zombie is dead, a forked child does not keep its parent alive. End-of-file on a socket is never
// taken for death, and there are no heartbeats on one host. Peers reached by a network are reported lost by their transport.
//
// Pidfds wait in the Go runtime's poller, so watching costs no thread and no time; death is known within milliseconds.
package liveness
