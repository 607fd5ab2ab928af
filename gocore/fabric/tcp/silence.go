package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	silencePeriod = 2 * time.Second
	silenceTries  = 6 // retransmissions (some 12 s) or window probes without any acknowledgement; Transport.tries
)

// watchSilence finds hosts that vanished while data were under way, where keepalive does not look and the kernel would try for a
// quarter of an hour. It counts what the peer's kernel left unanswered, so that a stopped process, whose kernel answers, is not taken for dead;
// that is also why TCP_USER_TIMEOUT is not used, which gives up on a closed window.
func (t *Transport) watchSilence() {
	t.watch.Do(func() {
		t.wg.Add(1)
		go func() {
			defer t.wg.Done()
			tick := time.NewTicker(silencePeriod)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					t.checkSilence()
				case <-t.ctx.Done():
					return
				}
			}
		}()
	})
}

func (t *Transport) checkSilence() {
	for i := range t.links {
		l := t.links[i].Load()
		if l == nil || l.failure() != nil {
			continue
		}
		var info *unix.TCPInfo
		err := l.out.rc.Control(func(fd uintptr) { info, _ = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
		if err == nil && info != nil && max(info.Retransmits, info.Probes) >= t.tries {
			l.fail(errSilent)
		}
	}
}
