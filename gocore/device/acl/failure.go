package acl

import (
	"fmt"

	"goshmem/gocore/status"
)

// failure is a call that the runtime refused, or work of which it says later that it failed.
type failure struct {
	call string
	code int
	text string
}

// Codes of our own wrappers (runtime.h).
const (
	codeAbsent    = -1
	codeNoContext = -2
	codeRefused   = -3
)

// Codes of the runtime that this package decides by.
const (
	codeRepeatInit  = 100002
	codeSyncTimeout = 507046
)

// meaning is what one of the runtime's codes means to us.
type meaning struct {
	code status.Code
	name string
	cure string
}

var meanings = map[int]meaning{
	codeAbsent:    {status.Unsupported, "no such entry point", "use a newer release of CANN"},
	codeNoContext: {status.System, "context lost", "somebody has reset the device or destroyed its context; reset it after shmem's finalize"},
	codeRefused:   {status.Unsupported, "no such kernel", "build the kernels of this version of shmem (./build.sh kernels) and point SHMEM_KERNELS at them"},
	100000:        {status.InvalidArgument, "invalid parameter", ""},
	100001:        {status.System, "not initialized", "somebody has called aclFinalize; do that after shmem's finalize"},
	100039:        {status.BadConfig, "stub library", "LD_LIBRARY_PATH names the stubs of CANN's development kit; source CANN's set_env.sh, or name the real library by SHMEM_ACL_LIBRARY"},
	107000:        {status.InvalidArgument, "invalid parameter", ""},
	107001:        {status.InvalidArgument, "invalid device", "ASCEND_RT_VISIBLE_DEVICES limits what a process sees"},
	107002:        {status.System, "no context on this thread", ""},
	107003:        {status.StaleHandle, "stream of another context", "pass a stream of the device that shmem uses"},
	107008:        {status.Misaligned, "address not aligned", ""},
	107017:        {status.StaleHandle, "invalid handle", ""},
	107019:        {status.Timeout, "wait timed out", ""},
	107020:        {status.Timeout, "task timed out", ""},
	107022:        {status.System, "device tasks aborted", "the process cannot use this device any more; start it again"},
	107023:        {status.System, "stream aborted", "the stream cannot be used any more; make another"},
	200000:        {status.NoMemory, "out of memory", "free memory of the host"},
	200001:        {status.Unsupported, "not supported", "this chip or driver lacks it"},
	200002:        {status.InvalidArgument, "invalid device", "ASCEND_RT_VISIBLE_DEVICES limits what a process sees"},
	200006:        {status.Unsupported, "not supported", "this chip or driver lacks it"},
	207000:        {status.Unsupported, "not supported", "this chip or driver lacks it"},
	207001:        {status.NoMemory, "out of device memory", "lower SHMEM_DEVICE_SIZE, or free memory of the device (npu-smi info shows who has it)"},
	207004:        {status.Unsupported, "no device", "npu-smi info lists the devices that the driver sees"},
	207005:        {status.NoMemory, "out of resources", "end other processes on the device (npu-smi info shows them)"},
	207006:        {status.PeerUnreachable, "no permission", "the devices must be allowed to reach each other (hccn_tool, containers need all devices of the server)"},
	207007:        {status.NoMemory, "out of events", "free marks that are done with"},
	207008:        {status.NoMemory, "out of streams", "free streams that are done with"},
	207018:        {status.NoMemory, "out of device memory", "lower SHMEM_DEVICE_SIZE, or free memory of the device (npu-smi info shows who has it)"},
	207020:        {status.Timeout, "timed out", ""},
	207021:        {status.Unsupported, "kind of link not supported", "this chip or driver lacks it"},
	507010:        {status.System, "heartbeat lost", "the device or its driver hangs: npu-smi info -t health shows it; the process must be started again"},
	507014:        {status.Timeout, "kernel ran over the time limit", "a wait in a kernel never ended; raise the limit (aclrtSetOpExecuteTimeOut) only when it was right to wait so long"},
	507015:        {status.Internal, "kernel trapped", "the device log (~/ascend/log) names the place"},
	507022:        {status.PeerUnreachable, "memory of another process", "its owner has ended or freed it"},
	507027:        {status.Unsupported, "no such kernel", "build the kernels of this version of shmem (./build.sh kernels) and point SHMEM_KERNELS at them"},
	507034:        {status.Timeout, "kernel ran over the time limit", "a wait in a kernel never ended; raise the limit (aclrtSetOpExecuteTimeOut) only when it was right to wait so long"},
	507035:        {status.Internal, "kernel trapped", "the device log (~/ascend/log) names the place"},
	507046:        {status.Timeout, "stream still has work", ""},
	507047:        {status.Timeout, "event not reached", ""},
	507053:        {status.System, "device memory error", "a copy or kernel touched memory that was not there, or the memory is broken: npu-smi info -t health tells which"},
	507054:        {status.System, "uncorrectable memory error", "the device must be replaced or isolated; npu-smi info -t ecc shows it"},
	507056:        {status.System, "link error", "a link to another device is down: hccn_tool and npu-smi info -t topo show it"},
	507899:        {status.System, "driver error", "the driver's log (dmesg, ~/ascend/log) says more; out of memory and exhausted handles also show like this"},
}

// unsupported says whether the chip, driver or release lacks what was asked, so that another way may be tried.
func (f *failure) unsupported() bool { return f != nil && meanings[f.code].code == status.Unsupported }

// words are the call, the code with its name, the runtime's own text and what to do.
func (f *failure) words() string {
	m := meanings[f.code]
	s := fmt.Sprintf("%s gave %d", f.call, f.code)
	if m.name != "" {
		s += " (" + m.name + ")"
	}
	if f.text != "" {
		s += ": " + f.text
	}
	if m.cure != "" {
		s += "; " + m.cure
	}
	return s
}

// as is the failure of an operation. pe is -1 when no peer is concerned.
func (f *failure) as(op string, pe int) error {
	code := meanings[f.code].code
	if code == status.OK {
		code = status.System
	}
	return status.At(code, op, pe, "%s", f.words())
}
