package world

import (
	"fmt"
	"time"

	"goshmem/gocore/hot"
	"goshmem/gocore/status"
)

// waiting is a wait of this PE for a word of its own memory to be changed by whoever.
type waiting struct {
	w        *World
	word     uintptr
	width    int
	cmp      hot.Cmp
	value    uint64
	state    hot.Wait
	began    int64
	timeout  int64
	deadline int64
	since    int // deaths before it began
}

var cmpNames = [...]string{"==", "!=", ">", ">=", "<", "<="}

// CheckWord refuses a word that cannot be waited for.
func (w *World) CheckWord(op string, word uintptr, width, cmp int) error {
	if err := checkWidth(op, width); err != nil {
		return err
	}
	if cmp < 0 || cmp >= len(cmpNames) {
		return status.New(status.InvalidArgument, op, "comparison %d is none of GSHMEM_CMP_EQ to GSHMEM_CMP_LE", cmp)
	}
	if x := w.device(); x.symmetric(word, 0) {
		if _, err := x.twin(op, word, uint64(width), w.me); err != nil {
			return err
		}
	} else if _, err := w.addr(op, word, uint64(width), w.me); err != nil {
		return err
	}
	if word%uintptr(width) != 0 {
		return status.New(status.Misaligned, op, "address %#x is not a multiple of %d", word, width)
	}
	return nil
}

// WaitUntil waits until the word compares. Result word 0 is the value seen.
func (w *World) WaitUntil(word uintptr, width int, signed bool, cmp int, value uint64, timeout int64, slice time.Duration) (*Request, error) {
	if err := w.enter("wait_until"); err != nil {
		return nil, err
	}
	defer w.exit()
	if err := w.CheckWord("wait_until", word, width, cmp); err != nil {
		return nil, err
	}
	if timeout == Default {
		timeout = int64(w.timeout)
	}
	m := &waiting{w: w, word: word, width: width, cmp: hot.Cmp(cmp), value: value, began: hot.Now(), timeout: timeout,
		deadline: deadlineAfter(timeout), since: w.deathsSoFar()}
	if signed {
		m.cmp |= hot.Signed
	}
	if x := w.device(); x.symmetric(word, 0) {
		m.value = widen(value, width, signed)
		return w.startLoose(&lookout{waiting: *m, x: x, pause: firstPause}, How{}, slice), nil
	}
	m.state.Reset(m.deadline)
	return w.startLoose(m, How{}, slice), nil
}

// deadlineAfter is when a timeout ends on the hot clock; a negative one never does.
func deadlineAfter(timeout int64) int64 {
	if timeout < 0 {
		return hot.Forever
	}
	now := hot.Now()
	if timeout > hot.Forever-now {
		return hot.Forever
	}
	return now + timeout
}

func (m *waiting) run(until int64) (bool, error) {
	for {
		switch r := m.w.hot.WaitUntilAt(addressOf(m.word), m.width, m.cmp, m.value, &m.state, until); r {
		case hot.OK:
			return true, nil
		case hot.Slow:
			if err := m.w.disturbed("wait_until", m.since); err != nil {
				return true, err
			}
		case hot.Pending:
			if err := m.w.disturbed("wait_until", m.since); err != nil {
				return true, err
			}
			if hot.Now() >= m.state.Deadline() {
				return true, m.late()
			}
			return false, nil
		default:
			return true, status.New(r.Code(), "wait_until", "address %#x, width %d", m.word, m.width)
		}
	}
}

// disturbed says why a wait for an unknown writer must end: an abort, a death nobody was told of, the end of the world.
func (w *World) disturbed(op string, since int) error {
	if err := w.checkAbort(); err != nil {
		return err
	}
	if err := w.usable(op); err != nil {
		return err
	}
	if pe, err := w.freshDeath(since); err != nil {
		return status.At(status.PeerDead, op, pe, "%v; it may be the one that was waited for", err)
	}
	return nil
}

func (m *waiting) late() error {
	return status.New(status.Timeout, "wait_until", "the word at %#x is %d, waited for %s %d for %v (limit %v); some PE of world %s has not written it%s",
		m.word, m.state.Seen(), cmpNames[m.cmp&^hot.Signed], m.value, time.Duration(hot.Now()-m.began).Round(time.Millisecond), time.Duration(m.timeout), m.w.label, m.w.whoLeft())
}

// whoLeft names the PEs that have left, for the words of a wait that nobody ended.
func (w *World) whoLeft() string {
	var left []int
	for pe := range w.n {
		if pe != w.me && w.left(pe) {
			left = append(left, pe)
		}
	}
	if left == nil {
		return ""
	}
	return fmt.Sprintf("; PEs %v have left", left)
}

func (m *waiting) giveUp() {}

func (m *waiting) words() [4]uint64 { return [4]uint64{m.state.Seen()} }

// startLoose starts an operation that stands in no team's lane: many of them may be under way at once.
func (w *World) startLoose(m machine, how How, slice time.Duration) *Request {
	l := &lane{known: how.Async, gauge: func(int) {}}
	if how.Async {
		w.teamMu.Lock()
		w.loose[l] = true
		w.teamMu.Unlock()
		l.gauge = func(n int) {
			if n == 0 {
				w.forgetLoose(l)
			}
		}
	}
	return w.start(l, m, how, slice)
}

func (w *World) forgetLoose(l *lane) {
	w.teamMu.Lock()
	defer w.teamMu.Unlock()
	delete(w.loose, l)
}

func (w *World) logf(format string, args ...any) {
	if w.cfg.Log == "off" || w.cfg.Log == "error" {
		return
	}
	logLine(fmt.Sprintf("PE %d: ", w.me) + fmt.Sprintf(format, args...))
}
