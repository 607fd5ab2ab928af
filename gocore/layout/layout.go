// Package layout holds the byte layout of everything that processes share: magic, version, offsets.
//
// The C side has the same numbers as structs (gocore/hot/hot.h); a test of package hot compares them. Shared state is
// offsets from the start of a segment, never pointers.
package layout

// Identity of a segment.
const (
	Magic   uint64 = 0x314d454d48534f47 // "GOSHMEM1" as little-endian bytes
	Version uint32 = 2
	Line           = 128 // stride of everything two PEs write: x86 prefetches pairs of lines, Kunpeng's last level has 128 bytes
)

// Offsets within a segment's header.
const (
	HdrMagic      = 0
	HdrVersion    = 8
	HdrMe         = 12
	HdrN          = 16
	HdrLine       = 20
	HdrNonce      = 24
	HdrSize       = 40
	HdrPage       = 48
	HdrScratchOff = 56
	HdrScratchLen = 64
	HdrHeapOff    = 72
	HdrHeapLen    = 80
	HdrWaiters    = 128
	HdrBell       = 132
	HdrAlarm      = 256
	HdrAbortCode  = 260
	HdrAbortBy    = 264
	HdrClosing    = 268
	HeaderSize    = 512
)

// Arrival line (one per member and parity) within a team's control block.
const (
	ArrFlag     = 0
	ArrInRef    = 8
	ArrOutRef   = 16
	ArrStageRef = 24
	ArrInline   = 32
	InlineBytes = 96
)

// Private marks a buffer that is not in symmetric memory.
const Private = ^uint64(0)

// Arrival is the offset of the line that rank src writes for operations of this parity, in a block for n members.
func Arrival(n, parity, src int) uint64 { return (uint64(parity)*uint64(n) + uint64(src)) * Line }

// Progress is the offset of the progress word that rank src writes.
func Progress(n, src int) uint64 { return (2*uint64(n) + uint64(src)) * Line }

// Poison is the offset of the poison line.
func Poison(n int) uint64 { return 3 * uint64(n) * Line }

// Desc is the offset of the owner's description of its operation of this parity.
func Desc(n, parity int) uint64 { return (3*uint64(n) + 1 + uint64(parity)) * Line }

// SaidNumber is the offset of the operation's number within the line of a description.
const SaidNumber = 32

// Caster is the offset of the owner's line about its one-way broadcasts, CasterSaid of the description in it.
func Caster(n int) uint64 { return (3*uint64(n) + 3) * Line }

// CasterSaid is the offset of the description within the line at Caster.
const CasterSaid = 8

// Casts is how many one-way broadcasts a root may be ahead of the slowest member.
const Casts = 64

// ControlSize is the bytes of the control block of a team of n.
func ControlSize(n int) uint64 { return (3*uint64(n) + 4 + Casts) * Line }
