package acl

// Place is a device that a thread has set, and its context there.
type Place struct {
	Device  int
	Context uintptr
}

// Here is what the calling thread has set, for an [Open] on another thread. ok is false when it has set nothing, or nobody has loaded the
// runtime in this process. It loads nothing itself.
func Here(o Options) (p Place, ok bool) {
	for _, path := range []string{o.Library, libraryName} {
		if path == "" {
			continue
		}
		library, _ := open(path, true)
		if library == nil {
			continue
		}
		b := bind(library)
		device, f := b.getDevice()
		if f != nil {
			return Place{}, false
		}
		context, f := b.context()
		if f != nil {
			context = 0
		}
		return Place{device, context}, true
	}
	return Place{}, false
}
