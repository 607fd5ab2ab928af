package bootstrap

import (
	"bytes"
	"context"
	"encoding/hex"
	"sync"

	"goshmem/gocore/status"
)

// Rendezvous is one PE's membership in a job that has come together. Its methods may be called from any goroutine; the exchange
// calls are collective and run one after the other.
type Rendezvous struct {
	Me, N  int
	Method string // the method that applied
	Reason string // why, for shmem.info()

	secret []byte
	c      *client // nil for a single PE
	h      *host   // where this process is the host
	turn   chan struct{}
	round  uint32 // guarded by turn
	failed error  // guarded by turn; once set, stays
	closed sync.Once
}

// Secret is the secret of this world alone: derived from the job's secret and a nonce the host drew, so two worlds of one job
// do not share it. At least MinSecret bytes; the caller must not change them.
func (r *Rendezvous) Secret() []byte { return r.secret }

// Allgather gives every PE's blob to every PE, indexed by PE. Blobs may differ in size, up to MaxBlob. Collective. Blocks until all
// have contributed or ctx ends; the error then names the PEs that had not.
func (r *Rendezvous) Allgather(ctx context.Context, blob []byte) ([][]byte, error) {
	if len(blob) > MaxBlob {
		return nil, status.New(status.InvalidArgument, roundName(roundAllgather), "%d bytes, at most %d can be exchanged", len(blob), MaxBlob)
	}
	return r.exchange(ctx, roundAllgather, blob)
}

// Barrier returns when all PEs have called it, or ctx ends. Collective.
func (r *Rendezvous) Barrier(ctx context.Context) error {
	_, err := r.exchange(ctx, roundBarrier, nil)
	return err
}

// Close leaves. The others can finish the exchange calls they are in if this PE has contributed to them. The host waits, a second at
// most, until its members have what was sent to them. Closing twice is fine. It never fails.
func (r *Rendezvous) Close() error {
	r.closed.Do(func() {
		if r.c != nil {
			r.c.close()
		}
		if r.h != nil {
			r.h.close()
		}
	})
	return nil
}

func (r *Rendezvous) exchange(ctx context.Context, kind byte, blob []byte) ([][]byte, error) {
	if r.c == nil {
		if ctx.Err() != nil {
			return nil, waitError(ctx, roundName(kind), nil)
		}
		return [][]byte{bytes.Clone(blob)}, nil
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, waitError(ctx, roundName(kind), nil)
	}
	if r.failed != nil {
		return nil, r.failed
	}
	blobs, err := r.run(ctx, kind, blob)
	r.failed = err
	r.round++
	return blobs, err
}

// run does one round; the turn is held.
func (r *Rendezvous) run(ctx context.Context, kind byte, blob []byte) ([][]byte, error) {
	op := roundName(kind)
	if err := r.c.write(ctx, encodeContribution(r.round, kind, blob)); err != nil {
		if refusal := r.lastWords(op); refusal != nil {
			return nil, refusal
		}
		return nil, &status.Error{Code: status.PeerDead, Op: op, PE: 0, Detail: "the host of the rendezvous cannot be reached", Err: err}
	}
	f, err := r.c.await(ctx, op, frameResult)
	if err != nil {
		return nil, err
	}
	round, blobs, err := decodeResult(f, r.N)
	if err != nil || round != r.round {
		return nil, status.Wrap(status.Internal, op, err, "the host answered with round %d, not %d", round, r.round)
	}
	return blobs, nil
}

// lastWords is what the host said before its connection ended, nil when it said nothing.
func (r *Rendezvous) lastWords(op string) error {
	for f := range r.c.inbox {
		if f.kind == frameRefuse {
			return decodeStatus(f, op)
		}
	}
	return nil
}

// newRendezvous finishes a join: the welcome has come.
func newRendezvous(choice Choice, c *client, h *host, secret, session []byte) (*Rendezvous, error) {
	mine, err := DeriveSecret(secret, "session/"+hex.EncodeToString(session))
	if err != nil {
		return nil, status.Wrap(status.Internal, opJoin, err, "cannot derive the world's secret")
	}
	return &Rendezvous{Me: choice.Me, N: choice.N, Method: choice.Method, Reason: choice.Reason, secret: mine, c: c, h: h,
		turn: make(chan struct{}, 1)}, nil
}
