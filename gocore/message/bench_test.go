package message

import (
	"testing"
	"time"
)

// BenchmarkPingPong is the work of one 8-byte round trip, both members driven by one goroutine: no waiting in it.
func BenchmarkPingPong(b *testing.B) {
	g := newRig(&testing.T{}, 2, true)
	out, in := make([]byte, 8), make([]byte, 8)
	for b.Loop() {
		for me := range 2 {
			r, err := g.ms[1-me].Recv(in, me, 1, time.Time{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := g.ms[me].Send(1-me, 1, out, Private, time.Time{}); err != nil {
				b.Fatal(err)
			}
			if done, err := r.Step(); !done {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkStaged moves 16 MiB of ordinary memory.
func BenchmarkStaged(b *testing.B) {
	g := newRig(&testing.T{}, 2, true)
	out, in := make([]byte, 16<<20), make([]byte, 16<<20)
	b.SetBytes(16 << 20)
	for b.Loop() {
		r, _ := g.ms[1].Recv(in, 0, 1, time.Time{})
		s, _ := g.ms[0].Send(1, 1, out, Private, time.Time{})
		for done := false; !done; {
			_, _ = s.Step()
			done, _ = r.Step()
		}
		_, _ = s.Step()
	}
}
