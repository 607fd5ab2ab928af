package device

import (
	"context"
	"errors"

	"goshmem/gocore/status"
)

// GaveUp words the end of a context while op waited: a deadline is a timeout, anything else a cancellation. A cause that is
// a described error passes unchanged.
func GaveUp(ctx context.Context, op string) error {
	cause := context.Cause(ctx)
	var described *status.Error
	if errors.As(cause, &described) {
		return cause
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return status.Wrap(status.Timeout, op, cause, "the stream still has work; it goes on")
	}
	return status.Wrap(status.Canceled, op, cause, "the stream still has work; it goes on")
}
