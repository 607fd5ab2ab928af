package world

import (
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/hot"
	"goshmem/gocore/status"
)

// calm is the quiet before a barrier or an allocation, as a part of a driven operation: it keeps to the slice and to the
// operation's deadline, also while a peer that is reached by a network does not answer.
type calm struct {
	w    *World
	end  chan struct{} // nil until begun; closed when err is there
	err  error
	stop func()
}

func (c *calm) run(op string, until, deadline int64) (done bool, err error) {
	if c.end == nil && c.w.net.tcp == nil && !c.w.device().hasWork(device.Own) {
		return true, c.w.Quiet(c.w.ctx, Default) // nothing is outstanding
	}
	if c.end == nil {
		if err := c.begin(op, deadline); err != nil {
			return true, err
		}
	}
	var late <-chan time.Time
	if left := until - hot.Now(); until != hot.Forever {
		timer := time.NewTimer(time.Duration(max(left, 0)))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-c.end:
		return true, c.err
	default:
	}
	select {
	case <-c.end:
		return true, c.err
	case <-late:
		return false, nil
	}
}

func (c *calm) begin(op string, deadline int64) error {
	if err := c.w.enter(op); err != nil {
		return err
	}
	timeout := int64(-1)
	if deadline != hot.Forever {
		timeout = max(deadline-hot.Now(), 0)
	}
	ctx, stop := c.w.bounded(c.w.ctx, timeout)
	c.end, c.stop = make(chan struct{}), stop
	go func() {
		defer c.w.exit()
		if err := c.w.quietAll(ctx, op); err != nil {
			c.err = status.Wrap(status.Of(err), op, err, "what was put before it has not arrived; it has not begun")
		}
		stop()
		close(c.end)
		c.w.hot.RingSelf()
	}()
	return nil
}

func (c *calm) giveUp() {
	if c.stop != nil {
		c.stop()
	}
}
