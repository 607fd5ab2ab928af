package acl

// mapped is physical memory at reserved addresses. Zero fields were not reached.
type mapped struct {
	at      uintptr
	handle  uintptr
	visible bool // the handle is mapped at at
}

// hugePage is what the size of mapped memory is rounded to where the runtime does not say more.
const hugePage = 2 << 20

// page is the granularity of mapped memory.
func (d *Device) page() uint64 {
	if g, f := d.b.granularity(d.id); f == nil && g > hugePage {
		return g
	}
	return hugePage
}

// pages rounds a size up to it.
func (d *Device) pages(bytes uint64) uint64 {
	unit := d.page()
	return (bytes + unit - 1) / unit * unit
}

// reserve takes addresses for n bytes. Releases differ in what they call the flag for huge pages, so both are tried.
func (d *Device) reserve(n uint64, want uintptr) (uintptr, *failure) {
	at, f := d.b.reserve(n, want, true)
	if f != nil && f.code == codeParam {
		if again, g := d.b.reserve(n, want, false); g == nil {
			return again, nil
		}
	}
	return at, f
}

const codeParam = 107000

// mapNew makes n zero bytes of this device, at want or anywhere. Nothing is left behind when it fails.
func (d *Device) mapNew(n uint64, want uintptr) (mapped, *failure) {
	at, f := d.reserve(n, want)
	if f != nil {
		return mapped{}, f
	}
	m := mapped{at: at}
	if m.handle, f = d.b.mallocPhysical(n, d.id); f == nil {
		if f = d.b.mapMemory(at, n, m.handle); f == nil {
			m.visible = true
			f = d.b.clearNow(at, n)
		}
	}
	if f != nil {
		_ = d.undo(m) // the first failure is the one to report
		return mapped{}, f
	}
	return m, nil
}

// mapImported maps a peer's memory, whose handle it owns from here on, whatever happens.
func (d *Device) mapImported(n uint64, handle uintptr) (mapped, *failure) {
	m := mapped{handle: handle}
	var f *failure
	if m.at, f = d.reserve(n, 0); f == nil {
		if f = d.b.mapMemory(m.at, n, handle); f == nil {
			m.visible = true
			return m, nil
		}
	}
	_ = d.undo(m) // as above
	return mapped{}, f
}

// unmapAll ends memory that is mapped.
func (d *Device) unmapAll(m mapped) *failure {
	m.visible = true
	return d.undo(m)
}

// undo takes back what was reached, in the reverse order, and gives the first failure.
func (d *Device) undo(m mapped) *failure {
	var first *failure
	note := func(f *failure) {
		if first == nil {
			first = f
		}
	}
	if m.visible {
		note(d.b.unmapMemory(m.at))
	}
	if m.handle != 0 {
		note(d.b.freePhysical(m.handle))
	}
	if m.at != 0 {
		note(d.b.release(m.at))
	}
	return first
}
