package host

import (
	"context"
	"sync"

	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// task is one piece of work of a stream; done is closed when it was run or dropped.
type task struct {
	run  func() error
	done chan struct{}
}

// stream runs tasks in order on a goroutine of its own.
type stream struct {
	device *Device
	exited chan struct{}

	mu     sync.Mutex // guards what follows
	wake   *sync.Cond // of mu
	queue  []task
	ending bool // no more work is taken
	drop   bool // what is queued is not run
	err    error
}

// mark is a point in a stream.
type mark struct{ reached chan struct{} }

func (d *Device) startStream() *stream {
	s := &stream{device: d, exited: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	go s.loop()
	return s
}

func (s *stream) loop() {
	defer close(s.exited)
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.ending {
			s.wake.Wait()
		}
		if len(s.queue) == 0 {
			s.mu.Unlock()
			return
		}
		t, drop := s.queue[0], s.drop
		s.queue = s.queue[1:]
		s.mu.Unlock()
		if !drop {
			s.device.delay()
			s.note(t.run())
		}
		close(t.done)
	}
}

func (s *stream) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

func (s *stream) add(run func() error) (<-chan struct{}, bool) {
	t := task{run, make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return nil, false
	}
	s.queue = append(s.queue, t)
	s.wake.Signal()
	return t.done, true
}

func (s *stream) takeError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.err
	s.err = nil
	return err
}

// end takes no more work; drop leaves out what is queued.
func (s *stream) end(drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending, s.drop = true, s.drop || drop
	s.wake.Signal()
}

func (d *Device) find(op string, h device.Stream) (*stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.streams[h]
	if s == nil {
		what := "there is no stream %#x"
		if d.closed {
			what = "the device of stream %#x is closed"
		}
		return nil, status.New(status.StaleHandle, op, what, h)
	}
	return s, nil
}

// give queues work; the channel closes when it was done.
func (d *Device) give(op string, h device.Stream, run func() error) (<-chan struct{}, error) {
	s, err := d.find(op, h)
	if err != nil {
		return nil, err
	}
	done, ok := s.add(run)
	if !ok {
		return nil, status.New(status.StaleHandle, op, "stream %#x is ending", h)
	}
	return done, nil
}

// Call implements [device.Device].
func (d *Device) Call(s device.Stream, f func()) error {
	_, err := d.give("stream call", s, func() error { f(); return nil })
	return err
}

// Wait implements [device.Device].
func (d *Device) Wait(ctx context.Context, h device.Stream) error {
	s, err := d.find("stream wait", h)
	if err != nil {
		return err
	}
	done, ok := s.add(func() error { return nil })
	if !ok {
		return status.New(status.StaleHandle, "stream wait", "stream %#x is ending", h)
	}
	select {
	case <-done:
		return s.takeError()
	case <-d.ending:
		return status.New(status.StaleHandle, "stream wait", "the device was closed meanwhile")
	case <-ctx.Done():
		return device.GaveUp(ctx, "stream wait")
	}
}

// NewStream implements [device.Device].
func (d *Device) NewStream() (device.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, status.New(status.StaleHandle, "new stream", "the device is closed")
	}
	d.next++
	h := device.Stream(d.next)
	d.streams[h] = d.startStream()
	return h, nil
}

// FreeStream implements [device.Device]. Work that is queued still runs.
func (d *Device) FreeStream(h device.Stream) error {
	s, err := d.find("free stream", h)
	if err != nil {
		return err
	}
	if h == device.Own {
		return status.New(status.InvalidArgument, "free stream", "the library's own stream ends with the device")
	}
	d.mu.Lock()
	delete(d.streams, h)
	d.mu.Unlock()
	s.end(false)
	return nil
}

// Record implements [device.Device].
func (d *Device) Record(h device.Stream) (device.Mark, error) {
	m := &mark{make(chan struct{})}
	if _, err := d.give("record", h, func() error { close(m.reached); return nil }); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, status.New(status.StaleHandle, "record", "the device is closed")
	}
	d.next++
	d.marks[device.Mark(d.next)] = m
	return device.Mark(d.next), nil
}

// WaitFor implements [device.Device].
func (d *Device) WaitFor(s device.Stream, h device.Mark) error {
	d.mu.Lock()
	m := d.marks[h]
	d.mu.Unlock()
	if m == nil {
		return status.New(status.StaleHandle, "stream waits for mark", "there is no mark %#x", h)
	}
	_, err := d.give("stream waits for mark", s, func() error {
		select {
		case <-m.reached:
		case <-d.ending:
		}
		return nil
	})
	return err
}

// FreeMark implements [device.Device]. Streams that wait for it already still do.
func (d *Device) FreeMark(h device.Mark) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.marks[h] == nil {
		return status.New(status.StaleHandle, "free mark", "there is no mark %#x", h)
	}
	delete(d.marks, h)
	return nil
}
