package world

import (
	"time"

	"goshmem/gocore/bootstrap"
	"goshmem/gocore/device/acl"
)

// Options says which PE of which world to become. Zero values mean: from the environment, else the default.
type Options struct {
	Me, N     int // -1, -1: from the environment or the method
	HeapBytes uint64
	Timeout   time.Duration // for coming up and default of the world's operations; 0: SHMEM_TIMEOUT; negative: none
	Method    string
	UID       []byte
	Endpoint  string
	Secret    string
	Transport string
	Interface string
	Label     string
	Device    string     // "none", "npu", "npu:2", "auto", "host"
	At        *acl.Place // what Here found on the caller's thread
	// DeviceBytes is the size of the symmetric heap on the device.
	DeviceBytes uint64
	// FindOffer finds the sockets behind a unique id made in this process; nil when there are none.
	FindOffer func(uid []byte) *bootstrap.Offer
}
