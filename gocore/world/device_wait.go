package world

import (
	"encoding/binary"
	"time"

	"goshmem/gocore/hot"
	"goshmem/gocore/status"
)

// lookout is a wait of this PE for a word of its own device memory: the host looks at it by small copies on a stream of their own, more
// and more seldom.
type lookout struct {
	waiting
	x     *accelerator
	pause time.Duration
	seen  uint64
}

const (
	firstPause = 20 * time.Microsecond
	lastPause  = time.Millisecond
)

func (l *lookout) run(until int64) (bool, error) {
	for {
		v, err := l.x.look(l.word, l.width, l.cmp&hot.Signed != 0)
		if err != nil {
			return true, err
		}
		l.seen = v
		if compares(l.cmp, v, l.value) {
			return true, nil
		}
		if err := l.w.disturbed("wait_until", l.since); err != nil {
			return true, err
		}
		now := hot.Now()
		if now >= l.deadline {
			return true, l.lateOnDevice()
		}
		if now >= until {
			return false, nil
		}
		time.Sleep(min(l.pause, time.Duration(min(until, l.deadline)-now)))
		l.pause = min(l.pause*3/2, lastPause)
	}
}

func (l *lookout) lateOnDevice() error {
	return status.New(status.Timeout, "wait_until", "the word at device address %#x is %d, waited for %s %d for %v (limit %v); some PE of world %s has not written it%s",
		l.word, l.seen, cmpNames[l.cmp&^hot.Signed], l.value, time.Duration(hot.Now()-l.began).Round(time.Millisecond), time.Duration(l.timeout), l.w.label, l.w.whoLeft())
}

func (l *lookout) words() [4]uint64 { return [4]uint64{l.seen} }

// look reads a word of own device memory, widened as it is compared.
func (x *accelerator) look(word uintptr, width int, signed bool) (uint64, error) {
	x.lookMu.Lock()
	defer x.lookMu.Unlock()
	if err := x.dev.Copy(x.slot, word, uint64(width), x.aside); err != nil {
		return 0, err
	}
	ctx, stop := x.w.bounded(x.w.ctx, Default)
	defer stop()
	if err := x.dev.Wait(ctx, x.aside); err != nil {
		return 0, err
	}
	var b [8]byte
	copy(b[:], memoryAt(x.slot, uint64(width)))
	return widen(binary.LittleEndian.Uint64(b[:]), width, signed), nil
}

func widen(v uint64, width int, signed bool) uint64 {
	shift := 64 - 8*width
	if signed {
		return uint64(int64(v<<shift) >> shift)
	}
	return v << shift >> shift
}

// compares is the comparison of the hot path (hot_inline.h: hot_compare).
func compares(cmp hot.Cmp, a, b uint64) bool {
	less := a < b
	if cmp&hot.Signed != 0 {
		less = int64(a) < int64(b)
	}
	switch cmp &^ hot.Signed {
	case 0:
		return a == b
	case 1:
		return a != b
	case 2:
		return a != b && !less
	case 3:
		return !less
	case 4:
		return less
	}
	return less || a == b
}

// Test says whether a word of own symmetric memory compares now.
func (w *World) Test(word uintptr, width int, signed bool, cmp int, value uint64) (bool, error) {
	if err := w.enter("test"); err != nil {
		return false, err
	}
	defer w.exit()
	if err := w.CheckWord("test", word, width, cmp); err != nil {
		return false, err
	}
	c := hot.Cmp(cmp)
	if signed {
		c |= hot.Signed
	}
	if x := w.device(); x.symmetric(word, uint64(width)) {
		v, err := x.look(word, width, signed)
		return err == nil && compares(c, v, widen(value, width, signed)), err
	}
	return compares(c, widen(loadNarrow(word, width), width, signed), widen(value, width, signed)), nil
}
