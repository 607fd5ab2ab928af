package coll

import (
	"unsafe"

	"goshmem/gocore/hot"
)

// Adopt takes over a collective that C callers began (a *hot_coll that holds the team), whatever it has come to.
func (t *Team) Adopt(c unsafe.Pointer) *Request {
	n := &native{t: t, c: hot.AdoptColl(c), begun: true}
	n.call = n.c.Call()
	n.began, n.deadline = n.c.Times()
	return &Request{m: n}
}
