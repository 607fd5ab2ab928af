// Package coll runs the collectives of a team.
//
// A [Team] joins a team's table in C memory, its control blocks and its staging. [Team.Start] begins a collective and gives a [Request];
// [Request.Run] drives it until a time, as often as wanted; it is over when Run says so, or after [Request.GiveUp]. One request
// of a team runs at a time: a second one waits for the first. Where every member's memory is mapped the C executor of package hot works;
// otherwise the same plans (package plan) run here over a [fabric.Transport].
//
// A failure after the arrival ends the team: every member's block is marked with the reason, and every later operation of it is refused.
//
// Obligations of the caller: all members create the team with the same Config values where these say "same"; control blocks are zero
// when the team is made; buffers stay until the request is over; a BARRIER's own quiet (of what is not mapped) is done before Start.
package coll
