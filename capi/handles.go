package main

import "sync"

// table maps handles to objects. A handle is generation<<32 | index of a slot; a released slot gets a new generation, so
// a stale handle finds nothing. Slots are reused, so the table stays as large as its busiest moment.
type table[T any] struct {
	mu    sync.RWMutex
	slots []slot[T]
	free  []uint32
}

type slot[T any] struct {
	gen  uint32
	live bool
	v    T
}

func (t *table[T]) add(v T) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot[T]{})
	}
	s := &t.slots[i]
	s.gen++
	if s.gen == 0 {
		s.gen = 1
	}
	s.live, s.v = true, v
	return uint64(s.gen)<<32 | uint64(i)
}

func (t *table[T]) get(h uint64) (v T, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i := uint32(h)
	if int(i) >= len(t.slots) {
		return v, false
	}
	s := &t.slots[i]
	if !s.live || s.gen != uint32(h>>32) {
		return v, false
	}
	return s.v, true
}

func (t *table[T]) remove(h uint64) (v T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := uint32(h)
	if int(i) >= len(t.slots) {
		return v, false
	}
	s := &t.slots[i]
	if !s.live || s.gen != uint32(h>>32) {
		return v, false
	}
	v = s.v
	var zero T
	s.live, s.v = false, zero
	t.free = append(t.free, i)
	return v, true
}

// find looks for a live object; for rare calls, it walks the table.
func (t *table[T]) find(is func(T) bool) (uint64, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := range t.slots {
		if s := &t.slots[i]; s.live && is(s.v) {
			return uint64(s.gen)<<32 | uint64(i), true
		}
	}
	return 0, false
}
