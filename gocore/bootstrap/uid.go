package bootstrap

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"

	"goshmem/gocore/status"
)

// UIDBytes is the size of a unique id.
const UIDBytes = 128

// Layout of a unique id: magic 4, version 1, number of addresses 1, zero 2, checksum 4, secret 32, then the addresses:
// family (4 or 6), the address's bytes, port (big endian).
const (
	uidMagic      = "GSUI"
	uidVersion    = 1
	uidSum        = 8
	uidSecret     = 12
	uidAddresses  = 44
	secretBytes   = 32
	maxCandidates = 12
)

// ticket is what a member needs to reach a host: where it listens, and the job's secret.
type ticket struct {
	addrs  []string
	secret []byte
}

func newSecret() []byte {
	s := make([]byte, secretBytes)
	_, _ = rand.Read(s) // never fails: crypto/rand ends the process instead
	return s
}

// encodeUID packs a secret and as many addresses as fit, in their order.
func encodeUID(secret []byte, addrs []netip.AddrPort) ([]byte, error) {
	b := make([]byte, uidAddresses, UIDBytes)
	copy(b, uidMagic)
	b[4] = uidVersion
	copy(b[uidSecret:], secret)
	for _, a := range addrs {
		raw := a.Addr().Unmap().AsSlice()
		if len(b)+1+len(raw)+2 > UIDBytes || b[5] == maxCandidates {
			break
		}
		family := byte(4)
		if len(raw) == 16 {
			family = 6
		}
		b = append(append(b, family), raw...)
		b = binary.BigEndian.AppendUint16(b, a.Port())
		b[5]++
	}
	if b[5] == 0 {
		return nil, status.New(status.Rendezvous, "unique id", "there is no address to publish")
	}
	b = append(b, make([]byte, UIDBytes-len(b))...)
	copy(b[uidSum:], uidChecksum(b))
	return b, nil
}

func uidChecksum(b []byte) []byte {
	c := bytes.Clone(b)
	clear(c[uidSum:uidSecret])
	sum := sha256.Sum256(c)
	return sum[:4]
}

// decodeUID unpacks and checks a unique id; the errors never show the secret.
func decodeUID(b []byte) (ticket, error) {
	bad := func(format string, args ...any) (ticket, error) {
		return ticket{}, status.New(status.InvalidArgument, "unique id", format, args...)
	}
	switch {
	case len(b) != UIDBytes:
		return bad("it has %d bytes, not %d", len(b), UIDBytes)
	case string(b[:4]) != uidMagic:
		return bad("it does not begin like one; hand over the %d bytes unchanged", UIDBytes)
	case b[4] != uidVersion:
		return ticket{}, status.New(status.VersionSkew, "unique id", "it has format %d, this library knows %d: all PEs must use one version of shmem", b[4], uidVersion)
	case !bytes.Equal(uidChecksum(b), b[uidSum:uidSecret]):
		return bad("its checksum is wrong: it was damaged on the way")
	}
	t := ticket{secret: bytes.Clone(b[uidSecret:uidAddresses])}
	rest := b[uidAddresses:]
	for range b[5] {
		size := map[byte]int{4: 4, 6: 16}[rest[0]]
		if size == 0 || len(rest) < 1+size+2 {
			return bad("its address list is malformed")
		}
		ip, _ := netip.AddrFromSlice(rest[1 : 1+size])
		port := binary.BigEndian.Uint16(rest[1+size:])
		t.addrs = append(t.addrs, netip.AddrPortFrom(ip, port).String())
		rest = rest[1+size+2:]
		if len(rest) == 0 {
			rest = []byte{0}
		}
	}
	if len(t.addrs) == 0 {
		return bad("it holds no address")
	}
	return t, nil
}

// ParseUID reads a unique id from its hexadecimal form, as SHMEM_UNIQUE_ID has it.
func ParseUID(text string) ([]byte, error) {
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, status.New(status.BadConfig, "unique id", "SHMEM_UNIQUE_ID is not hexadecimal (%d characters, %d wanted)", len(text), 2*UIDBytes)
	}
	if _, err := decodeUID(b); err != nil {
		return nil, err
	}
	return b, nil
}
