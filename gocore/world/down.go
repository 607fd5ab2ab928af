package world

import (
	"context"
	"errors"
	"time"

	"goshmem/gocore/fabric"
	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// Finalize leaves the world: it ends what is still running, flushes, and waits until every living PE leaves too, so that
// nobody loses memory under its feet; after the timeout (Default: the world's) it leaves alone and says for whom it had waited.
// In every case the world is closed afterwards. Repeating it waits for the first and answers the same.
func (w *World) Finalize(timeout time.Duration) error {
	w.lifeMu.Lock()
	if w.closing {
		w.lifeMu.Unlock()
		<-w.closed
		return w.ended
	}
	w.closing = true
	w.lifeMu.Unlock()
	if timeout == Default {
		timeout = w.timeout
	}
	w.endRequests()
	if x := w.device(); x != nil {
		x.finish(timeout)
		if x.undone() {
			w.undone = leftUndone
		}
	}
	err := w.leave(timeout)
	w.tearDown()
	w.ended = err
	close(w.closed)
	return err
}

// endRequests gives up everything that has not finished, so that peers that wait for it are told.
func (w *World) endRequests() {
	for _, l := range w.lanes() {
		for _, r := range l.all() {
			r.end(w.finalized(""))
		}
	}
}

// leave flushes, tells all living PEs, and waits until they have told us.
func (w *World) leave(timeout time.Duration) error {
	ctx, cancel := context.WithCancel(context.Background())
	deadline := int64(hot.Forever)
	if timeout >= 0 {
		deadline = hot.Now() + int64(timeout)
		ctx, cancel = context.WithTimeout(ctx, timeout+time.Second) // a peer's runtime answers at once or not at all
	}
	defer cancel()
	if w.hasAborted() == nil {
		switch err := w.net.Quiet(ctx); status.Of(err) {
		case status.OK, status.PeerDead, status.PeerLeft: // who is gone, in whichever way, needs nothing of ours any more
		default:
			w.logf("finalize: %v", err)
		}
	}
	hot.HeaderAt(w.seg.Bytes()).SetClosing()
	for pe := range w.n {
		if w.monitor.Dead(pe) == nil {
			w.tellLeaving(ctx, pe)
		}
	}
	return w.awaitLeaving(deadline, timeout)
}

func (w *World) tellLeaving(ctx context.Context, pe int) {
	at := fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, w.peers[pe].Leave+8*uint64(w.me))}
	if _, err := w.net.Atomic(ctx, at, fabric.Atomic{Op: fabric.Set, Width: 8, Operand: 1 | w.undone}); err != nil {
		return // it is gone, or will find us gone
	}
	w.alarm(ctx, pe)
}

// alarm makes a peer's waiters look what happened.
func (w *World) alarm(ctx context.Context, pe int) {
	if w.segs[pe] != nil {
		w.hot.RaisePE(pe)
		return
	}
	at := fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, layout.HdrAlarm)}
	_, _ = w.net.Atomic(ctx, at, fabric.Atomic{Op: fabric.Inc, Width: 4}) // a lost peer needs no alarm
}

func (w *World) left(pe int) bool {
	return loadWord(w.leaves[8*pe:]) != 0
}

// awaitLeaving waits until each PE has left or died.
func (w *World) awaitLeaving(deadline int64, timeout time.Duration) error {
	var turn hot.Wait
	turn.Reset(deadline)
	for {
		var missing []int
		for pe := range w.n {
			if !w.left(pe) && w.monitor.Dead(pe) == nil {
				missing = append(missing, pe)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if w.hot.Turn(&turn, deadline) == hot.Pending && hot.Now() >= deadline {
			return status.At(status.Timeout, "finalize", missing[0], "PEs %v have not finalized within %v; this PE has left alone, and its memory is gone for them", missing, timeout)
		}
	}
}

// tearDown closes what was opened, in reverse, whatever was reached. Blocks that are still held keep the mappings.
func (w *World) tearDown() {
	w.cancel(status.New(status.Finalized, "", "world %s was finalized", w.label))
	if w.hot != nil {
		w.engine.stop()
		w.hot.Close(-1) // C callers come out and go no further
		w.vacate()      // and so do Go's
		w.completed.close()
		w.closeTeams()
	}
	if w.monitor != nil {
		w.monitor.Close()
	}
	if w.net != nil {
		if err := w.net.Close(); err != nil && !errors.Is(err, context.Canceled) {
			w.logf("closing the network: %v", err)
		}
	}
	if w.hot != nil {
		w.hot.Free()
	}
	w.blocks.mu.Lock()
	w.blocks.closed = true
	idle := w.blocks.held == 0
	w.blocks.mu.Unlock()
	if idle {
		w.unmap()
	}
}

// unmap gives the mappings back. It runs once: when the world is closed and no block is held.
func (w *World) unmap() {
	if x := w.device(); x != nil {
		x.close()
	}
	for _, s := range w.segs {
		if s != nil {
			_ = s.Close() // unmapping our own ranges cannot fail in a way anybody could mend
		}
	}
}

// Abort ends the job: every blocked operation of every member fails naming this PE. The world stays up for Finalize.
func (w *World) Abort(code int32) {
	if !w.gate.enter() {
		return // it is over anyhow
	}
	defer w.exit()
	if code == 0 {
		code = -1
	}
	hot.HeaderAt(w.seg.Bytes()).Abort(code, int32(w.me))
	w.noteAbort(code, w.me)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for pe := range w.n {
		if pe != w.me && w.monitor.Dead(pe) == nil {
			w.tellAbort(ctx, pe, code)
		}
	}
}

func (w *World) tellAbort(ctx context.Context, pe int, code int32) {
	if s := w.segs[pe]; s != nil {
		hot.HeaderAt(s.Bytes()).Abort(code, int32(w.me))
		return
	}
	by := fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, layout.HdrAbortBy)}
	at := fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, layout.HdrAbortCode)}
	_, err := w.net.Atomic(ctx, by, fabric.Atomic{Op: fabric.Set, Width: 4, Operand: uint64(w.me) + 1})
	if err == nil {
		_, err = w.net.Atomic(ctx, at, fabric.Atomic{Op: fabric.Set, Width: 4, Operand: uint64(uint32(code))})
	}
	if err == nil {
		w.alarm(ctx, pe)
	}
}

// noteAbort makes the abort this process' own: contexts end, waits end, later operations are refused.
func (w *World) noteAbort(code int32, by int) error {
	err := status.At(status.Aborted, "", by, "it called abort(%d); finalize, then init anew to go on", code)
	w.lifeMu.Lock()
	first := w.aborted == nil
	if first {
		w.aborted = err
	}
	err, _ = w.aborted.(*status.Error)
	w.lifeMu.Unlock()
	if first {
		w.cancel(err)
		w.hot.Refuse() // calls of C come to Go from now on, and hear of it
	}
	if x := w.device(); x != nil {
		x.fail(err)
	}
	return err
}

// hasAborted is the abort that this PE knows of.
func (w *World) hasAborted() error {
	w.lifeMu.Lock()
	defer w.lifeMu.Unlock()
	return w.aborted
}

// checkAbort looks whether any PE has aborted the job.
func (w *World) checkAbort() error {
	code, by := hot.HeaderAt(w.seg.Bytes()).Aborted()
	if code == 0 {
		return nil
	}
	return w.noteAbort(code, int(by))
}
