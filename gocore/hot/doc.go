// Package hot is the Go face of the C hot path: tables of mapped memory, waiting, copying, reducing.
//
// A [World] is made, filled with segments and the peers' mappings, and published; from then on C callers find it by its
// handle and move bytes without entering Go. Whoever unmaps memory that a World names first calls [World.Close], which
// returns when no thread is inside any more. The layout of shared memory is in hot.h and in package layout; a test compares them.
package hot
