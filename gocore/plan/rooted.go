package plan

// The rooted operations stream chunks between the root and the others through rootPlaces places of staging. Phase c+1 of who
// gives says that chunk c is there, of who takes that it is taken.
const rootPlaces = 4

// stagedBroadcast: the root stages, the others copy.
func (b *builder) stagedBroadcast() error {
	per, count, err := b.chunks(b.Len, chunkBytes/2, b.Stage/rootPlaces)
	if err != nil {
		return err
	}
	at := func(c int) Place { return here(Stage, b.Root, uint64(c%rootPlaces)*per) }
	for c := range count {
		off, n := clip(uint64(c)*per, per, b.Len)
		if b.Me == b.Root {
			b.free(c)
			b.copy(n, here(In, b.Me, off), at(c))
			b.notify(uint32(c+1), All)
			b.copy(n, here(In, b.Me, off), here(Out, b.Me, off))
			continue
		}
		b.await(uint32(c+1), b.Root)
		b.copy(n, at(c), here(Out, b.Me, off))
		b.notify(uint32(c+1), b.Root)
	}
	b.last(count)
	return nil
}

// free waits until every other member has taken the chunk whose place chunk c needs.
func (b *builder) free(c int) {
	if c >= rootPlaces {
		b.await(uint32(c-rootPlaces+1), All)
	}
}

// last: the root leaves when everybody has taken everything.
func (b *builder) last(count int) {
	if b.Me == b.Root && count > 0 {
		b.await(uint32(count), All)
	}
}

// stagedFromRoot: Scatter. The root's own piece is copied last: in place it overwrites another's.
func (b *builder) stagedFromRoot() error {
	n := uint64(b.N)
	per, count, err := b.chunks(b.Len, chunkBytes/n, b.Stage/(rootPlaces*n))
	if err != nil {
		return err
	}
	at := func(c, r int) Place { return here(Stage, b.Root, (uint64(c%rootPlaces)*n+uint64(r))*per) }
	for c := range count {
		off, n := clip(uint64(c)*per, per, b.Len)
		if b.Me == b.Root {
			b.free(c)
			for _, r := range b.others() {
				b.copy(n, here(In, b.Me, uint64(r)*b.Pitch+off), at(c, r))
			}
			b.notify(uint32(c+1), All)
			continue
		}
		b.await(uint32(c+1), b.Root)
		b.copy(n, at(c, b.Me), here(Out, b.Me, off))
		b.notify(uint32(c+1), b.Root)
	}
	if b.Me == b.Root {
		b.copy(b.Len, here(In, b.Me, uint64(b.Me)*b.Pitch), here(Out, b.Me, 0))
	}
	b.last(count)
	return nil
}

// stagedToRoot: Gather. The root's own piece is copied first: in place it lies where another's goes.
func (b *builder) stagedToRoot() error {
	per, count, err := b.chunks(b.Len, chunkBytes/2, b.Stage/rootPlaces)
	if err != nil {
		return err
	}
	at := func(c, r int) Place { return here(Stage, r, uint64(c%rootPlaces)*per) }
	if b.Me == b.Root {
		b.copy(b.Len, here(In, b.Me, 0), here(Out, b.Me, uint64(b.Me)*b.Pitch))
	}
	for c := range count {
		off, n := clip(uint64(c)*per, per, b.Len)
		if b.Me == b.Root {
			for _, r := range b.others() {
				b.await(uint32(c+1), r)
				b.copy(n, at(c, r), here(Out, b.Me, uint64(r)*b.Pitch+off))
			}
			b.notify(uint32(c+1), All)
			continue
		}
		if c >= rootPlaces {
			b.await(uint32(c-rootPlaces+1), b.Root)
		}
		b.copy(n, here(In, b.Me, off), at(c, b.Me))
		b.notify(uint32(c+1), b.Root)
	}
	if b.Me != b.Root && count > 0 {
		b.await(uint32(count), b.Root)
	}
	return nil
}

// stagedAllToAllV runs every pair by itself: only the two of a pair know their sizes. In round k of a pair, phase 2k+1 says that chunk k
// of what I give you is there (if there is one), 2k+2 that I have taken yours. A pair has as many rounds as its longer direction.
func (b *builder) stagedAllToAllV() error {
	n := b.N
	give, from, take, to := b.Counts[:n], b.Counts[n:2*n], b.Counts[2*n:3*n], b.Counts[3*n:4*n]
	per, _, err := b.chunks(0, chunkBytes/uint64(n), b.Stage/(2*uint64(n)))
	if err != nil {
		return err
	}
	rounds, most := make([]int, n), 0
	for _, r := range b.others() {
		rounds[r] = int((max(give[r], take[r]) + per - 1) / per)
		most = max(most, rounds[r])
	}
	at := func(k, rank, r int) Place { return here(Stage, rank, (uint64(k%2)*uint64(n)+uint64(r))*per) }
	b.copy(give[b.Me], here(In, b.Me, from[b.Me]), here(Out, b.Me, to[b.Me]))
	for k := range most {
		for _, r := range b.others() {
			if k >= rounds[r] {
				continue
			}
			if k >= 2 {
				b.await(uint32(2*(k-2)+2), r)
			}
			off, n := clip(uint64(k)*per, per, give[r])
			b.copy(n, here(In, b.Me, from[r]+off), at(k, b.Me, r))
			b.notify(uint32(2*k+1), r)
		}
		for _, r := range b.others() {
			if k >= rounds[r] {
				continue
			}
			b.await(uint32(2*k+1), r)
			off, n := clip(uint64(k)*per, per, take[r])
			b.copy(n, at(k, r, b.Me), here(Out, b.Me, to[r]+off))
			b.notify(uint32(2*k+2), r)
		}
	}
	for _, r := range b.others() {
		if rounds[r] > 0 {
			b.await(uint32(2*rounds[r]), r)
		}
	}
	return nil
}
