package world

import (
	"os"
	"runtime"
	"strings"

	"goshmem/gocore/json"
	"goshmem/gocore/segment"
	"goshmem/gocore/status"

	"golang.org/x/sys/unix"
)

// intro is what each PE tells all others while the world comes up. It travels through the authenticated rendezvous.
type intro struct {
	Pid       int      `json:"pid"`
	Host      string   `json:"host"`    // for people only; locality is proved by mapping
	Machine   string   `json:"machine"` // boot id: groups PEs of one kernel for the crowding decision and messages
	Cores     int      `json:"cores"`
	Heap      uint64   `json:"heap"`
	Scratch   uint64   `json:"scratch"`
	Page      uint64   `json:"page"`
	Card      []byte   `json:"card,omitempty"`
	Net       []string `json:"net,omitempty"` // where the network transport listens
	Leave     uint64   `json:"leave"`         // offset of the words that say who has left
	Control   uint64   `json:"control"`       // offset of the world team's control block
	Trouble   string   `json:"trouble,omitempty"`
	Code      int32    `json:"code,omitempty"`
	Transport string   `json:"transport"`
}

func selfIntro(transport string) intro {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return intro{Pid: os.Getpid(), Host: host, Machine: bootID(), Cores: cores(), Page: uint64(os.Getpagesize()), Transport: transport}
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// cores is how many processors this process may use.
func cores() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err == nil {
		return set.Count()
	}
	return runtime.NumCPU()
}

func (in intro) encode() []byte { return json.Marshal(in) }

func decodeIntros(blobs [][]byte) ([]intro, error) {
	all := make([]intro, len(blobs))
	for pe, b := range blobs {
		if err := json.Unmarshal(b, &all[pe]); err != nil {
			return nil, &status.Error{Code: status.Internal, Op: "init", PE: pe, Detail: "its introduction cannot be read", Err: err}
		}
	}
	return all, nil
}

// agree checks what must be equal everywhere and passes on the trouble of any PE, so that all fail together.
func agree(all []intro) error {
	for pe, in := range all {
		if in.Trouble != "" {
			return status.At(status.Code(in.Code), "init", pe, "it could not come up: %s", in.Trouble)
		}
	}
	for pe, in := range all {
		if in.Heap != all[0].Heap {
			return status.At(status.BadConfig, "init", pe, "its symmetric heap is %d bytes, PE 0's is %d; give every PE the same SHMEM_SYMMETRIC_SIZE", in.Heap, all[0].Heap)
		}
		if in.Scratch != all[0].Scratch {
			return status.At(status.BadConfig, "init", pe, "its SHMEM_SCRATCH_SIZE is %d bytes, PE 0's is %d; make them equal", in.Scratch, all[0].Scratch)
		}
		if in.Transport != all[0].Transport {
			return status.At(status.BadConfig, "init", pe, "its SHMEM_TRANSPORT is %q, PE 0's is %q; make them equal", in.Transport, all[0].Transport)
		}
	}
	return nil
}

// crowded says whether the PEs of some machine outnumber the cores they may use. It is computed from what all know, so all agree.
func crowded(all []intro) bool {
	type place struct{ pes, cores int }
	at := map[string]*place{}
	for _, in := range all {
		p := at[in.Machine]
		if p == nil {
			p = &place{}
			at[in.Machine] = p
		}
		p.pes++
		p.cores = max(p.cores, in.Cores)
	}
	for _, p := range at {
		if p.pes > p.cores {
			return true
		}
	}
	return false
}

// card unpacks the segment card of an intro.
func (in intro) card() (*segment.Card, error) { return segment.DecodeCard(in.Card) }
