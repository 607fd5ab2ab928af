package segment

// Retain adds a reference to the mapping. It reports false when the mapping is already gone.
func (s *Segment) Retain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs == 0 {
		return false
	}
	s.refs++
	return true
}

// Release drops a reference taken by Retain; the last one unmaps. Releasing more than was retained panics: the pages would
// vanish under somebody else.
func (s *Segment) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked()
}

// releaseLocked drops one reference; s.mu is held.
func (s *Segment) releaseLocked() {
	if s.refs <= 0 {
		panic("segment: released more often than retained")
	}
	s.refs--
	if s.refs > 0 {
		return
	}
	if s.mem != nil && !s.goHeap {
		_ = unmap(s.mem) // it cannot fail for a range this package mapped
	}
	s.mem = nil
}

// References is how many hold the mapping, for leak checks.
func (s *Segment) References() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refs
}

// Close ends the opener's use: sharing stops, descriptors and the file's name go, the first reference is dropped. Mappings that
// others retained stay readable and writable, but nothing more can be committed. Closing twice is fine.
func (s *Segment) Close() error {
	err := s.Unshare()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return err
	}
	s.closed = true
	closeFd(&s.fd)
	closeFd(&s.pidfd)
	closeFd(&s.lockFd)
	s.releaseLocked()
	return err
}
