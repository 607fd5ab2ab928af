package fabric

import "goshmem/gocore/status"

// SignalUpdate is a signal operation as the atomic update of its word.
func SignalUpdate(op SignalOp, value uint64) (Atomic, error) {
	switch op {
	case SignalSet:
		return Atomic{Op: Set, Width: 8, Operand: value, NoReply: true}, nil
	case SignalAdd:
		return Atomic{Op: Add, Width: 8, Operand: value, NoReply: true}, nil
	}
	return Atomic{}, status.New(status.InvalidArgument, "put_signal", "there is no signal operation %d", op)
}
