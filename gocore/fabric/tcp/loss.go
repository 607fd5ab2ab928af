package tcp

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"goshmem/gocore/status"
)

// errClosed is the reason of connections that this process closed itself.
var errClosed = status.New(status.Finalized, "tcp", "the transport is closed")

// errSilent is the reason of connections whose other host stopped acknowledging.
var errSilent = errors.New("its host has not acknowledged anything for too long; check the network")

// lossOf words why a peer can no longer be reached.
func lossOf(pe int, cause error, bye bool) error {
	var known *status.Error
	if errors.As(cause, &known) {
		return known
	}
	if bye {
		return status.At(status.PeerLeft, "tcp", pe, "it closed its end")
	}
	for _, gone := range []error{unix.ETIMEDOUT, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, errSilent} {
		if errors.Is(cause, gone) {
			return &status.Error{Code: status.PeerUnreachable, Op: "tcp", PE: pe, Detail: "the connection to it was lost", Err: cause}
		}
	}
	if errors.Is(cause, io.EOF) || errors.Is(cause, unix.ECONNRESET) || errors.Is(cause, unix.EPIPE) || errors.Is(cause, io.ErrUnexpectedEOF) {
		return &status.Error{Code: status.PeerDead, Op: "tcp", PE: pe, Detail: "its connection ended without a goodbye", Err: cause}
	}
	return &status.Error{Code: status.PeerUnreachable, Op: "tcp", PE: pe, Detail: "the connection to it failed", Err: cause}
}

// giveUp words the end of a caller's patience.
func giveUp(ctx context.Context, pe int) error {
	cause := context.Cause(ctx)
	var known *status.Error
	if errors.As(cause, &known) {
		return known
	}
	code := status.Canceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = status.Timeout
	}
	return &status.Error{Code: code, Op: "tcp", PE: pe, Detail: "stopped waiting for it", Err: cause}
}
