package world

import (
	"fmt"
	"time"

	"goshmem/gocore/config"
	"goshmem/gocore/device"
	"goshmem/gocore/json"
)

// The JSON of gshmem_info: what is in use and why, for shmem.info(), bug reports and `shmem-config --diagnose`.
type infoWorld struct {
	Version   string          `json:"version"`
	Label     string          `json:"label"`
	Me        int             `json:"me"`
	N         int             `json:"n"`
	State     string          `json:"state"`
	Bootstrap infoBootstrap   `json:"bootstrap"`
	Timeout   float64         `json:"timeout_s"`
	Crowded   bool            `json:"crowded"`
	Heap      infoHeap        `json:"heap"`
	Device    infoDevice      `json:"device"`
	Scratch   uint64          `json:"scratch_used"`
	Peers     []infoPeer      `json:"peers"`
	Teams     []infoTeam      `json:"teams"`
	Settings  []config.Origin `json:"settings"`
}

type infoBootstrap struct {
	Method  string  `json:"method"`
	Reason  string  `json:"reason"`
	Seconds float64 `json:"seconds"`
}

type infoHeap struct {
	Bytes       uint64 `json:"bytes"`
	Used        uint64 `json:"used"`
	LargestHole uint64 `json:"largest_hole"`
	Blocks      uint64 `json:"blocks"`
	Dropped     uint64 `json:"dropped"`
	Memory      string `json:"memory"`
}

// infoDevice is the device of a world, or why it has none.
type infoDevice struct {
	Kind   string        `json:"kind"` // "none", "npu", "host"
	Reason string        `json:"reason,omitempty"`
	State  string        `json:"state,omitempty"`
	Facts  *device.Facts `json:"facts,omitempty"`
	Heap   *infoHeap     `json:"heap,omitempty"`
	Far    []string      `json:"not_mapped,omitempty"` // peers whose device memory is out of reach, and why

	Host    bool     `json:"reaches_host"`               // kernels reach symmetric host memory
	HostFar []string `json:"host_not_reached,omitempty"` // peers whose host memory they do not reach then, and why

	Scratch uint64 `json:"group_scratch,omitempty"` // what a process group may take of that heap: SHMEM_DEVICE_SCRATCH in bytes
}

type infoPeer struct {
	PE        int    `json:"pe"`
	Host      string `json:"host"`
	Pid       int    `json:"pid"`
	Transport string `json:"transport"`
	Mapped    bool   `json:"mapped"`
	Encrypted bool   `json:"encrypted"`
	Reason    string `json:"reason"`
	Watched   string `json:"watched_by"`
	State     string `json:"state"`
}

type infoTeam struct {
	PEs      string `json:"pes"`
	Me       int    `json:"rank"`
	Executor string `json:"executor"`
	Health   string `json:"health"`
}

type infoLibrary struct {
	Version string           `json:"version"`
	Table   []config.Setting `json:"settings"`
	Worlds  []infoWorld      `json:"worlds"`
}

// LibraryInfo is the library and the given worlds as JSON.
func LibraryInfo(ws []*World) []byte {
	all := infoLibrary{Version: Version, Table: config.Settings(), Worlds: []infoWorld{}}
	for _, w := range ws {
		all.Worlds = append(all.Worlds, w.info())
	}
	return marshal(all)
}

// Info is this world as JSON.
func (w *World) Info() []byte { return marshal(w.info()) }

func marshal(v any) []byte { return json.Marshal(v) }

func (w *World) info() infoWorld {
	if !w.gate.enter() {
		return infoWorld{Version: Version, Label: w.label, Me: w.me, N: w.n, State: "closed"}
	}
	defer w.exit()
	s := w.HeapStats()
	out := infoWorld{Version: Version, Label: w.label, Me: w.me, N: w.n, State: w.state(), Crowded: w.crowded,
		Bootstrap: infoBootstrap{w.method, w.reason, w.upAfter.Seconds()}, Timeout: seconds(w.timeout),
		Heap:     infoHeap{s.Bytes, s.Used, s.LargestHole, s.Blocks, s.Dropped, w.seg.How()},
		Scratch:  w.scratch.Used(),
		Settings: w.cfg.Origins()}
	out.Device = w.infoDevice()
	for pe := range w.n {
		out.Peers = append(out.Peers, w.infoPeer(pe))
	}
	w.teamMu.Lock()
	var teams []*Team
	for t := range w.teams {
		teams = append(teams, t)
	}
	w.teamMu.Unlock()
	for _, t := range teams {
		it := infoTeam{PEs: t.set.String(), Me: t.me, Executor: t.coll.Executor(), Health: "ok"}
		if err := t.Health(); err != nil {
			it.Health = err.Error()
		}
		out.Teams = append(out.Teams, it)
	}
	return out
}

func (w *World) infoDevice() infoDevice {
	x := w.device()
	if x == nil {
		return infoDevice{Kind: "none", Reason: w.whyNoDevice()}
	}
	s := w.statsOf(x.arena)
	facts := x.facts
	out := infoDevice{Kind: x.kind, State: "up", Facts: &facts, Heap: &infoHeap{s.Bytes, s.Used, s.LargestHole, s.Blocks, s.Dropped, facts.Sharing},
		Scratch: w.cfg.DeviceScratch}
	if err := x.health(); err != nil {
		out.State = "broken: " + err.Error()
	}
	for pe, why := range x.far {
		if why != "" {
			out.Far = append(out.Far, fmt.Sprintf("PE %d: %s", pe, why))
		}
	}
	if h := x.hosted.Load(); h != nil {
		out.Host = true
		for pe, why := range h.why {
			if why != "" {
				out.HostFar = append(out.HostFar, fmt.Sprintf("PE %d: %s", pe, why))
			}
		}
	}
	return out
}

func (w *World) infoPeer(pe int) infoPeer {
	p := infoPeer{PE: pe, Host: w.peers[pe].Host, Pid: w.peers[pe].Pid, Transport: w.net.Of(pe), Mapped: w.segs[pe] != nil,
		Encrypted: w.segs[pe] == nil, Reason: w.net.Reason(pe), Watched: w.monitor.How(pe), State: "up"}
	switch {
	case w.monitor.Dead(pe) != nil:
		p.State = "dead: " + w.monitor.Dead(pe).Error()
	case w.left(pe):
		p.State = "left"
	}
	return p
}

func (w *World) state() string {
	w.lifeMu.Lock()
	defer w.lifeMu.Unlock()
	switch {
	case w.closing:
		return "closing"
	case w.aborted != nil:
		return "aborted: " + w.aborted.Error()
	}
	return "up"
}

func seconds(d time.Duration) float64 {
	if d < 0 {
		return -1
	}
	return d.Seconds()
}
