package config

import (
	"strconv"
	"time"
)

// Type is how the text of a setting is read.
type Type string

// The types of settings.
const (
	Text     Type = "text"
	Bytes    Type = "bytes"    // 1024-based suffixes: 64, 64k, 1.5g, 2T, 512MiB
	Duration Type = "duration" // seconds, or with a unit: 30, 0.5, 500ms, 30m; -1 for no limit
	Integer  Type = "integer"
	Choice   Type = "choice" // one of Setting.Choices
	Words    Type = "words"  // some of Setting.Choices, separated by commas
)

// Setting is one row of the table.
type Setting struct {
	Name    string // environment variable
	Type    Type
	Default string
	Choices []string
	Min     int64 // for bytes and integers: smallest value allowed
	Max     int64 // largest, 0 for none
	Secret  bool  // never shown
	Help    string
}

// Settings is the table, in the order of the documentation.
func Settings() []Setting {
	return []Setting{
		{Name: "SHMEM_RANK", Type: Integer, Default: "-1", Min: -1, Help: "This process' PE number, 0 to SHMEM_SIZE-1. Set by shmem-run; -1 leaves it to the launcher's own variables or to init's arguments."},
		{Name: "SHMEM_SIZE", Type: Integer, Default: "-1", Min: -1, Help: "Number of PEs of the job. Set by shmem-run; -1 leaves it to the launcher's own variables or to init's arguments."},
		{Name: "SHMEM_UNIQUE_ID", Type: Text, Secret: true, Help: "Unique id of the job as hexadecimal digits, made by one PE and given to all. It contains the job's secret."},
		{Name: "SHMEM_RENDEZVOUS", Type: Text, Help: "Where the PEs meet: host:port or [v6]:port of PE 0, or file:PATH for a file all PEs see."},
		{Name: "SHMEM_SECRET", Type: Text, Secret: true, Help: "The job's secret, the same on all PEs; all traffic is authenticated with it."},
		{Name: "SHMEM_LISTEN_FD", Type: Integer, Default: "-1", Min: -1, Help: "Listening socket that PE 0 inherits from shmem-run; -1 for none."},
		{Name: "SHMEM_SYMMETRIC_SIZE", Type: Bytes, Default: "1g", Min: 0, Max: 1 << 54, Help: "Size of each PE's symmetric heap. It reserves addresses only; memory is used when blocks are allocated."},
		{Name: "SHMEM_SCRATCH_SIZE", Type: Bytes, Default: "256m", Min: 1 << 20, Max: 1 << 40, Help: "Addresses reserved beside the heap for team control blocks and staging. Memory is used as needed, in normal use at most 8 MiB."},
		{Name: "SHMEM_TRANSPORT", Type: Choice, Default: "auto", Choices: []string{"auto", "shm", "tcp"}, Help: "How peers are reached: auto maps the memory of PEs on the same host and uses tcp for others; shm refuses to start when a peer cannot be mapped; tcp maps nobody."},
		{Name: "SHMEM_INTERFACE", Type: Text, Help: "Network interface or address to listen on. Empty: every usable one is offered to peers, loopback included."},
		{Name: "SHMEM_TIMEOUT", Type: Duration, Default: "1800", Help: "How long coming up and each operation may wait before it fails with an error."},
		{Name: "SHMEM_EAGER", Type: Bytes, Default: "4k", Min: 0, Max: 64 << 10, Help: "Messages up to this size are copied and their send finishes at once; larger ones wait for the receiver. The same on all PEs."},
		{Name: "SHMEM_DIR", Type: Text, Help: "Directory, best on tmpfs, in which segments are named files. For PEs that share a host but cannot pass descriptors (separate network and PID namespaces). Empty: anonymous memory."},
		{Name: "SHMEM_DEVICE", Type: Text, Default: "none", Help: "Accelerator of each PE, the same on all: none, npu (an Ascend NPU through CANN; npu:2 names one, else the device set on the calling thread, else LOCAL_RANK), auto (npu when every PE has one, else none), host (host memory posing as a device, for tests)."},
		{Name: "SHMEM_DEVICE_SIZE", Type: Bytes, Default: "1g", Min: 0, Max: 1 << 54, Help: "Size of each PE's symmetric heap on its device, rounded up to what the device allocates. Device memory is used when the heap is made."},
		{Name: "SHMEM_DEVICE_SCRATCH", Type: Bytes, Default: "32m", Min: 0, Max: 1 << 40, Help: "Device memory of each process group, at most a 16th of SHMEM_DEVICE_SIZE, through which kernels serve npu tensors that are not symmetric. Larger tensors go in pieces. 0: such tensors go through host memory. The smallest of the members' counts."},
		{Name: "SHMEM_DEVICE_HOST", Type: Choice, Default: "no", Choices: []string{"no", "yes"}, Help: "Whether kernels and the copies of streams reach the symmetric host memory too, of every PE that has it mapped. All SHMEM_SYMMETRIC_SIZE bytes of it are then there and locked. For the device of init; gshmem_device_reach_host does the same in a running world. The same on all PEs."},
		{Name: "SHMEM_KERNELS", Type: Text, Help: "Library of device kernels, or the folder that holds it. Empty: beside libshmem.so."},
		{Name: "SHMEM_ACL_LIBRARY", Type: Text, Help: "Path of libascendcl.so. Empty: the one already loaded, else where the loader finds it."},
		{Name: "SHMEM_CROWDED", Type: Choice, Default: "auto", Choices: []string{"auto", "yes", "no"}, Help: "Whether waiting gives up the processor at once. auto: when a host has more PEs than cores they may use."},
		{Name: "SHMEM_LOG", Type: Choice, Default: "warn", Choices: []string{"off", "error", "warn", "info", "debug"}, Help: "What is written to standard error."},
		{Name: "SHMEM_REFUSE", Type: Words, Choices: []string{"memfd", "socket", "proc", "pidfd"}, Help: "For tests: system mechanisms to do without, so that the fallbacks are used."},
	}
}

// Config is what a world runs with. It does not change once made; all fields of the table have a place here.
type Config struct {
	Rank, Size    int
	UniqueID      string
	Rendezvous    string
	Secret        string
	ListenFD      int
	SymmetricSize uint64
	ScratchSize   uint64
	Transport     string
	Interface     string
	Timeout       time.Duration // negative: no limit
	Eager         uint64
	Dir           string
	Device        string
	DeviceSize    uint64
	DeviceScratch uint64
	DeviceHost    string
	Kernels       string
	ACLLibrary    string
	Crowded       string
	Log           string
	Refuse        []string

	origins []Origin
}

// assign stores a parsed value in its field.
func (c *Config) assign(name string, v value) {
	switch name {
	case "SHMEM_RANK":
		c.Rank = int(v.n)
	case "SHMEM_SIZE":
		c.Size = int(v.n)
	case "SHMEM_UNIQUE_ID":
		c.UniqueID = v.s
	case "SHMEM_RENDEZVOUS":
		c.Rendezvous = v.s
	case "SHMEM_SECRET":
		c.Secret = v.s
	case "SHMEM_LISTEN_FD":
		c.ListenFD = int(v.n)
	case "SHMEM_SYMMETRIC_SIZE":
		c.SymmetricSize = uint64(v.n)
	case "SHMEM_SCRATCH_SIZE":
		c.ScratchSize = uint64(v.n)
	case "SHMEM_TRANSPORT":
		c.Transport = v.s
	case "SHMEM_INTERFACE":
		c.Interface = v.s
	case "SHMEM_TIMEOUT":
		c.Timeout = time.Duration(v.n)
	case "SHMEM_EAGER":
		c.Eager = uint64(v.n)
	case "SHMEM_DIR":
		c.Dir = v.s
	case "SHMEM_DEVICE":
		c.Device = v.s
	case "SHMEM_DEVICE_SIZE":
		c.DeviceSize = uint64(v.n)
	case "SHMEM_DEVICE_SCRATCH":
		c.DeviceScratch = uint64(v.n)
	case "SHMEM_DEVICE_HOST":
		c.DeviceHost = v.s
	case "SHMEM_KERNELS":
		c.Kernels = v.s
	case "SHMEM_ACL_LIBRARY":
		c.ACLLibrary = v.s
	case "SHMEM_CROWDED":
		c.Crowded = v.s
	case "SHMEM_LOG":
		c.Log = v.s
	case "SHMEM_REFUSE":
		c.Refuse = v.words
	default:
		panic("config: setting " + strconv.Quote(name) + " has no field") // a test visits every row
	}
}
