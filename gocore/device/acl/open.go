package acl

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// Options say which device to open.
type Options struct {
	// Device is the number of the device as this process sees it. -1 takes the one that the calling thread has set; where it has
	// set none, the one of LOCAL_RANK, else the first.
	Device int
	// At is what the thread that asks has set, when Open runs on another one; see [Here].
	At *Place
	// Library names the runtime (SHMEM_ACL_LIBRARY); empty looks for it.
	Library string
	// Kernels is the library of kernels, or the folder where it is (SHMEM_KERNELS); empty looks beside this library.
	Kernels string
	// Getenv reads the environment; nil is the process'.
	Getenv func(string) string
}

const libraryName = "libascendcl.so"

// Open opens the runtime and one of its devices. Collective: no. Blocks: while the runtime loads, a second or so. It fails with
// [status.Unsupported] when there is no runtime or no device here.
func Open(o Options) (*Device, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	b, path, err := load(o)
	if err != nil {
		return nil, err
	}
	d := &Device{b: b, streams: map[device.Stream]bool{}, heaps: map[*Heap]struct{}{}, peers: map[int]bool{}, ending: make(chan struct{})}
	d.facts.Library = path
	if err := d.start(o); err != nil {
		d.abandon()
		return nil, err
	}
	return d, nil
}

// load finds and opens the runtime and checks that it has what is required.
func load(o Options) (*binding, string, error) {
	var tried []string
	for _, c := range candidates(o) {
		library, why := open(c.path, c.already)
		if library == nil {
			if !slices.Contains(tried, why) {
				tried = append(tried, why)
			}
			continue
		}
		b := bind(library)
		path := origin(b.symbol("aclInit"))
		if other := otherRuntime(path); other != "" {
			return nil, "", status.New(status.BadConfig, "open device", "the process has loaded %s already, and SHMEM_ACL_LIBRARY names %s; two runtimes cannot serve one device", other, path)
		}
		if err := b.complete(path); err != nil {
			return nil, "", err
		}
		return b, path, nil
	}
	return nil, "", status.New(status.Unsupported, "open device", "%s was not found (%s); install CANN and source its set_env.sh, or name the library by SHMEM_ACL_LIBRARY", libraryName, strings.Join(tried, "; "))
}

// candidate is one place where the runtime may be.
type candidate struct {
	path    string
	already bool // only if the process has loaded it
}

func candidates(o Options) []candidate {
	if o.Library != "" {
		return []candidate{{o.Library, false}}
	}
	all := []candidate{{libraryName, true}, {libraryName, false}}
	for _, name := range []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"} {
		if home := o.Getenv(name); home != "" {
			all = append(all, candidate{filepath.Join(home, "lib64", libraryName), false})
		}
	}
	return all
}

// otherRuntime is the runtime that the process had loaded, when it is not the one at path.
func otherRuntime(path string) string {
	library, _ := open(libraryName, true)
	if library == nil {
		return ""
	}
	loaded := origin(symbol(library, "aclInit"))
	if a, err := os.Stat(loaded); err == nil {
		if b, err := os.Stat(path); err == nil && os.SameFile(a, b) {
			return ""
		}
	}
	if loaded == path {
		return ""
	}
	return loaded
}

// complete fails when a required entry point is missing, and names all that are.
func (b *binding) complete(path string) error {
	var missing []string
	for _, e := range b.entries() {
		if e.required && !e.present {
			missing = append(missing, fmt.Sprintf("%s (CANN %s; needed for %s)", e.name, e.since, e.lost))
		}
	}
	if missing == nil {
		return nil
	}
	return status.New(status.Unsupported, "open device", "%s is %s and lacks %s; install CANN 8.1.RC1 or newer, 8.5.0 for everything", path, b.version(), strings.Join(missing, ", "))
}

// version is the release of the runtime, as well as it can be told.
func (b *binding) version() string {
	if v, f := b.packageVersion("runtime"); f == nil && v != "" {
		return "CANN " + v
	}
	if v, f := b.interfaceVersion(); f == nil {
		return fmt.Sprintf("a CANN before 8.5.0 (interface %d.%d.%d)", v[0], v[1], v[2])
	}
	return "a CANN of unknown version"
}

// lacks lists the optional entry points that are not there.
func (b *binding) lacks() []string {
	missing := []string{}
	for _, e := range b.entries() {
		if !e.present {
			missing = append(missing, fmt.Sprintf("%s (CANN %s): %s", e.name, e.since, e.lost))
		}
	}
	return missing
}

// start initialises the runtime, chooses the device and makes what every device has.
func (d *Device) start(o Options) error {
	if f := d.b.init(); f != nil && f.code != codeRepeatInit {
		return f.as("open device", -1)
	}
	if err := d.choose(o); err != nil {
		return err
	}
	if err := d.takeContext(o.At); err != nil {
		return err
	}
	d.learn()
	own, f := d.b.createStream()
	if f != nil {
		return f.as("open device", -1)
	}
	d.own = own
	d.kernels = d.findKernels(o)
	d.facts.Kernels = d.kernels.where
	return nil
}

// choose decides which device it is.
func (d *Device) choose(o Options) error {
	n, f := d.b.deviceCount()
	if f != nil {
		return f.as("open device", -1)
	}
	if n == 0 {
		return status.New(status.Unsupported, "open device", "%s sees no device; npu-smi info lists what the driver sees, ASCEND_RT_VISIBLE_DEVICES limits it", d.facts.Library)
	}
	if o.Device >= n {
		return status.New(status.InvalidArgument, "open device", "device %d; this process sees %d (ASCEND_RT_VISIBLE_DEVICES)", o.Device, n)
	}
	d.id, d.count = o.Device, n
	if o.Device >= 0 {
		return nil
	}
	if o.At != nil {
		d.id = o.At.Device
		return nil
	}
	if set, f := d.b.getDevice(); f == nil {
		d.id = set
		return nil
	}
	d.id = 0
	if rank, err := strconv.Atoi(o.Getenv("LOCAL_RANK")); err == nil && rank >= 0 {
		d.id = rank % n
	}
	return nil
}

// takeContext finds the context of the device: the caller's, when its thread has one of this device, so that streams of the
// caller's own fit; else the device's own. The thread keeps what it had.
func (d *Device) takeContext(at *Place) error {
	runtime.LockOSThread() // a device is set for a thread: between that and asking for its context a busy machine moves goroutines
	defer runtime.UnlockOSThread()
	if at != nil && at.Device == d.id && at.Context != 0 {
		d.b.use(at.Context)
		return nil
	}
	before, f := d.b.context()
	if f != nil {
		before = 0
	}
	if before != 0 {
		if set, f := d.b.getDevice(); f == nil && set == d.id {
			d.b.use(before)
			return nil
		}
	}
	if f := d.b.setDevice(d.id); f != nil {
		return f.as("open device", -1)
	}
	d.reset = true
	own, f := d.b.context()
	if f == nil && before != 0 {
		f = d.b.setContext(before)
	}
	if f != nil {
		return f.as("open device", -1)
	}
	d.b.use(own)
	return nil
}

// learn fills the facts.
func (d *Device) learn() {
	f := &d.facts
	f.Name, f.ID, f.Runtime, f.Missing = d.b.socName(), d.id, d.b.version(), d.b.lacks()
	f.Emulated = d.b.symbol("aclemu_live") != 0
	f.Arch = arch(f.Name)
	f.Atomics = f.Arch == "3510"
	f.Cores = 40 // the fewest that a chip of these families has
	if n, failed := d.b.vectorCores(d.id); failed == nil && n > 0 {
		f.Cores = n
	}
	f.Cores = min(f.Cores, mostCores)
	f.Fixed = "not tried"
	f.Sharing = "no heap yet"
}

// mostCores is what the synchronisation blocks of kernels have room for (GSHMEM_MAX_CORES).
const mostCores = 48

// arch is the architecture of kernels for a chip, "" for one that is not known.
func arch(soc string) string {
	switch {
	case strings.HasPrefix(soc, "Ascend910B"), strings.HasPrefix(soc, "Ascend910_93"):
		return "2201"
	case strings.HasPrefix(soc, "Ascend950"):
		return "3510"
	}
	return ""
}

// fabric says whether the chip has handles that work between servers.
func (d *Device) fabric() bool { return strings.HasPrefix(d.facts.Name, "Ascend910_93") }

// printable keeps the text of a file of unknown origin out of messages.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
}
