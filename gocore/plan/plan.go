package plan

import "fmt"

// Chunk targets: small enough to stay in a core's L2 together with what is read, large enough that waiting is rare.
const (
	chunkBytes        = 256 << 10
	crowdedChunkBytes = 1 << 20
)

// align is what slices and chunks are rounded to: a cache line, and a multiple of every element.
const align = 64

// builder collects steps.
type builder struct {
	Params
	steps  []Step
	phases uint32
}

// Make computes the plan. It fails for an operation that has none and for staging too small to hold a chunk.
func Make(p Params) (Plan, error) {
	b := &builder{Params: p}
	var err error
	switch p.Mode {
	case Direct:
		err = b.direct()
	case Staged:
		err = b.staged()
	case Slab:
		err = b.slab()
	default:
		err = fmt.Errorf("plan: no mode %d", p.Mode)
	}
	return Plan{b.steps, b.phases}, err
}

func here(buf Buf, rank int, off uint64) Place { return Place{buf, rank, off} }

func (b *builder) copy(n uint64, src, dst Place) {
	if n > 0 {
		b.steps = append(b.steps, Step{Kind: Copy, Len: n, Src: src, Dst: dst})
	}
}

// fold reduces n bytes; src is the place at every other rank.
func (b *builder) fold(n uint64, src, own, dst, dst2 Place) {
	if n > 0 {
		b.steps = append(b.steps, Step{Kind: Fold, Len: n, Src: src, Own: own, Dst: dst, Dst2: dst2})
	}
}

func (b *builder) notify(phase uint32, peer int) {
	b.phases = max(b.phases, phase)
	if b.N > 1 {
		b.steps = append(b.steps, Step{Kind: Notify, Phase: phase, Peer: peer})
	}
}

func (b *builder) await(phase uint32, peer int) {
	b.phases = max(b.phases, phase)
	if b.N > 1 {
		b.steps = append(b.steps, Step{Kind: Await, Phase: phase, Peer: peer})
	}
}

// meet is the end of a plan in which members touch each other's memory both ways.
func (b *builder) meet(phase uint32) {
	b.notify(phase, All)
	b.await(phase, All)
}

// others is every other rank, beginning after me, so that members do not all read from the same one.
func (b *builder) others() []int {
	rs := make([]int, 0, b.N-1)
	for i := 1; i < b.N; i++ {
		rs = append(rs, (b.Me+i)%b.N)
	}
	return rs
}

func up(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// slice is the part of n bytes that rank r works on.
func (b *builder) slice(n uint64, r int) (off, length uint64) {
	per := up((n + uint64(b.N) - 1) / uint64(b.N))
	return clip(uint64(r)*per, per, n)
}

// clip cuts [off, off+length) to [0, n).
func clip(off, length, n uint64) (uint64, uint64) {
	if off >= n {
		return n, 0
	}
	return off, min(length, n-off)
}

// chunks cuts n bytes into equal chunks of at most the target, at most most bytes each: bytes of one, and how many.
func (b *builder) chunks(n, target, most uint64) (size uint64, count int, err error) {
	if b.Crowded {
		target = target * crowdedChunkBytes / chunkBytes
	}
	target = min(target, most) &^ (align - 1)
	if target == 0 {
		return 0, 0, fmt.Errorf("plan: %d bytes of staging are too few for %d members", b.Stage, b.N)
	}
	if n == 0 {
		return target, 0, nil
	}
	count = int((n + target - 1) / target)
	size = up((n + uint64(count) - 1) / uint64(count))
	return size, int((n + size - 1) / size), nil
}
