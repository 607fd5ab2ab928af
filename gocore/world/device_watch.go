package world

import "time"

// watch looks for an abort of the job while something waits on the device, because kernels cannot. Guarded by the accelerator's mu.
type watch struct {
	running bool
	inside  int // threads in a wait
}

const (
	watchEvery  = 20 * time.Millisecond
	watchLinger = 50 // looks for nothing before it ends
)

func (v *watch) startLocked(x *accelerator) {
	if !v.running {
		v.running = true
		go v.loop(x)
	}
}

func (v *watch) enter(x *accelerator) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v.inside++
	v.startLocked(x)
}

func (v *watch) exit(x *accelerator) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v.inside--
}

func (v *watch) loop(x *accelerator) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for idle := 0; !v.over(x, &idle); {
		select {
		case <-x.w.ctx.Done(): // aborted, which is known then, or ended
		case <-tick.C:
			if x.w.gate.enter() {
				_ = x.w.checkAbort() // it tells the device
				x.w.gate.exit()
			}
		}
	}
}

// over ends the watch when nothing has waited for a while, or the world has ended.
func (v *watch) over(x *accelerator, idle *int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	*idle++
	if v.inside > 0 {
		*idle = 0
	}
	for _, t := range x.tails {
		if t.waits {
			*idle = 0
		}
	}
	v.running = *idle < watchLinger && x.w.ctx.Err() == nil
	return !v.running
}
