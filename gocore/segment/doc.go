// Package segment is host memory that a symmetric heap is made of: created, shared, mapped, committed.
//
// Obligations, in order:
//
//   - The owner calls [Create] (or [NewGoHeap] for tests under the race detector), then [Segment.Share], and publishes the
//     [Card] through the authenticated rendezvous.
//   - Every other PE calls [Open] with that card. Success proves that both share the host; failure is an ordinary
//     answer (the peer is then reached by a network transport), and the error lists every route tried.
//   - When all have opened, owners call [Segment.Unshare]: the server and a file's name go away, nothing is left to leak.
//   - Whoever hands out memory of a segment holds a reference ([Segment.Retain], [Segment.Release]); the mapping goes when the last
//     reference does. [Segment.Close] ends the owner's use and drops the first reference.
//
// A segment only reserves addresses. [Segment.Commit] makes pages real after a look at free memory and the cgroup limits,
// so exhaustion is an error there and never a SIGBUS later.
package segment
