package segment

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Machine reads the real limits: /proc/meminfo, and the memory cgroups (version 2 or 1) from this process' own up to the
// root of what is mounted here. Where they are is found once.
type Machine struct {
	root  string
	trees []hierarchy
}

// NewMachine finds the cgroups of this process. root is put before every path, for tests; empty is the real file system.
func NewMachine(root string) *Machine {
	m := &Machine{root: root}
	m.trees = m.hierarchies()
	return m
}

// Limits implements Budget. The machine comes first; cgroups follow from the innermost to the outermost.
func (m *Machine) Limits() []Limit {
	var out []Limit
	info := m.table("/proc/meminfo")
	if free, ok := info["MemAvailable:"]; ok {
		out = append(out, Limit{
			Name: "free memory of the machine (MemAvailable)", Size: info["MemTotal:"] * 1024, Free: free * 1024,
			Knob: "free memory on this host or allocate less",
		})
	}
	for _, h := range m.trees {
		out = append(out, h.limits(m)...)
	}
	return out
}

// hierarchy is one mounted cgroup tree that can limit memory.
type hierarchy struct {
	mount string // where it is mounted
	rel   string // this process' cgroup below the mount
	v2    bool
}

// hierarchies joins /proc/self/cgroup (which cgroup) with /proc/self/mountinfo (where its tree is visible).
func (m *Machine) hierarchies() []hierarchy {
	v1, v2 := "", ""
	for _, line := range m.lines("/proc/self/cgroup") {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[1] == "" {
			v2 = f[2]
		} else if hasWord(f[1], "memory") {
			v1 = f[2]
		}
	}
	var out []hierarchy
	for _, line := range m.lines("/proc/self/mountinfo") {
		f := strings.Fields(line)
		sep := index(f, "-")
		if sep < 5 || len(f) < sep+4 {
			continue
		}
		root, mount, kind, options := f[3], f[4], f[sep+1], f[sep+3]
		if kind == "cgroup2" && v2 != "" {
			out = append(out, hierarchy{mount, below(v2, root), true})
		}
		if kind == "cgroup" && v1 != "" && hasWord(options, "memory") {
			out = append(out, hierarchy{mount, below(v1, root), false})
		}
	}
	return out
}

// below is cgroup path p relative to the mounted root. A path outside the root (another namespace's view) is the root itself.
func below(p, root string) string {
	if root == "/" {
		root = ""
	}
	rest, ok := strings.CutPrefix(p, root)
	if !ok || strings.HasPrefix(rest, "/..") || (rest != "" && rest[0] != '/') {
		return "/"
	}
	return path.Clean("/" + rest)
}

// limits walks from the process' own cgroup to the mounted root and lists those that have a limit.
func (h hierarchy) limits(m *Machine) []Limit {
	var out []Limit
	for rel := h.rel; ; rel = path.Dir(rel) {
		if l, ok := h.limit(m, rel); ok {
			out = append(out, l)
		}
		if rel == "/" {
			return out
		}
	}
}

func (h hierarchy) limit(m *Machine, rel string) (Limit, bool) {
	dir := filepath.Join(h.mount, rel)
	limit, usage, cold := "memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "total_active_file"}
	if h.v2 {
		limit, usage, cold = "memory.max", "memory.current", []string{"inactive_file", "active_file"}
	}
	size, ok := m.number(filepath.Join(dir, limit))
	if !ok || size >= math.MaxInt64-(1<<20) { // version 1 writes "no limit" as the largest page-aligned int64
		return Limit{}, false
	}
	used, ok := m.number(filepath.Join(dir, usage))
	if !ok {
		return Limit{}, false
	}
	stat := m.table(filepath.Join(dir, "memory.stat"))
	for _, name := range cold { // page cache is counted as used, but the kernel drops it before it refuses
		used -= min(used, stat[name])
	}
	return Limit{
		Name: "memory cgroup " + dir, Size: size, Free: size - min(size, used),
		Knob: "raise the container's memory limit (" + limit + ") or allocate less",
	}, true
}

func (m *Machine) read(name string) []byte {
	b, err := os.ReadFile(m.root + name)
	if err != nil {
		return nil // unreadable is unknown; Limits promises to skip those
	}
	return b
}

func (m *Machine) number(name string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(string(m.read(name))), 10, 64)
	return n, err == nil
}

func (m *Machine) lines(name string) []string {
	return strings.Split(strings.TrimSpace(string(m.read(name))), "\n")
}

// table reads "name number ..." lines.
func (m *Machine) table(name string) map[string]uint64 {
	out := map[string]uint64{}
	for sc := bufio.NewScanner(bytes.NewReader(m.read(name))); sc.Scan(); {
		f := strings.Fields(sc.Text())
		if len(f) < 2 {
			continue
		}
		if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
			out[f[0]] = n
		}
	}
	return out
}

func hasWord(list, word string) bool { return index(strings.Split(list, ","), word) >= 0 }

func index(list []string, word string) int {
	for i, w := range list {
		if w == word {
			return i
		}
	}
	return -1
}
