package device

import (
	"sort"
	"sync"
)

// Ranges is a set of address ranges that do not overlap, each with a value that says what it is. The zero value is empty.
// All methods may be called from any goroutine.
type Ranges[V any] struct {
	mu  sync.RWMutex // guards all
	all []span[V]    // by address
}

type span[V any] struct {
	at    uintptr
	n     uint64
	value V
}

// Add puts [at, at+n) into the set. The caller knows that nothing of it is there already.
func (r *Ranges[V]) Add(at uintptr, n uint64, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.afterLocked(at)
	r.all = append(r.all, span[V]{})
	copy(r.all[i+1:], r.all[i:])
	r.all[i] = span[V]{at, n, value}
}

// Remove takes out the range that begins at at; ok is false when none does.
func (r *Ranges[V]) Remove(at uintptr) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.afterLocked(at) - 1
	if i < 0 || r.all[i].at != at {
		return value, false
	}
	value = r.all[i].value
	r.all = append(r.all[:i], r.all[i+1:]...)
	return value, true
}

// Find gives the range that holds at: where it begins, how many bytes of it begin at at, and its value.
func (r *Ranges[V]) Find(at uintptr) (base uintptr, left uint64, value V, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	i := r.afterLocked(at) - 1
	if i < 0 || uint64(at-r.all[i].at) >= r.all[i].n {
		return 0, 0, value, false
	}
	s := r.all[i]
	return s.at, s.n - uint64(at-s.at), s.value, true
}

// Each calls f for every range, in the order of addresses. f must not change the set.
func (r *Ranges[V]) Each(f func(at uintptr, n uint64, value V)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range r.all {
		f(s.at, s.n, s.value)
	}
}

// afterLocked is the index of the first range that begins above at. Needs mu.
func (r *Ranges[V]) afterLocked(at uintptr) int {
	return sort.Search(len(r.all), func(i int) bool { return r.all[i].at > at })
}
