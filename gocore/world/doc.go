// Package world owns a PE's life in a job: it comes up, holds everything, and goes down.
//
//	          New                 Finalize              members gone or timed out
//	(nothing) ───▶ coming up ──▶ up ──────────▶ closing ─────────────────────▶ closed
//	                   │          │ Abort: every blocked call ends, the world stays up for Finalize
//	                   └─ error ──┴──────────────────────────────────────────▶ closed
//
// A closed world stays closed and closing it twice is fine. Several worlds may live in one process; nothing here is
// global. Pages stay mapped after closing while a block is still held, so a tensor that outlives its world can be read.
//
// A world may have a device (accelerator): a second symmetric heap on it, one-sided access to it, and operations in the order of its streams. The
// device_*.go files hold that: opening it together, access, waits, streams, collectives by kernels, and the watch over kernels that wait.
//
// Operations that need other PEs are requests in a lane: one lane per team, first in, first out. A lane's head is driven either by
// the thread that waits for it or, when it was started asynchronously, by the world's one engine.
package world
