package coll

import (
	"goshmem/gocore/hot"
	"goshmem/gocore/status"
)

// ExchangeBytes is the most a member can say in one exchange.
const ExchangeBytes = hot.InlineBytes

// Exchange is one all-gather of a few bytes among a team, in the team's order of operations.
type Exchange struct {
	r       *Request
	n       int
	say     hot.Buffer
	all     hot.Buffer
	replies [][]byte
	freed   bool
}

// Exchange begins to say `say` to every member. kind is a part of what must agree; name is for the messages of this PE.
func (t *Team) Exchange(name string, kind uint64, say []byte, deadline int64) (*Exchange, error) {
	if len(say) > ExchangeBytes {
		return nil, status.New(status.Internal, name, "%d bytes do not fit an exchange of %d", len(say), ExchangeBytes)
	}
	x := &Exchange{n: t.n, say: hot.NewBuffer(ExchangeBytes), all: hot.NewBuffer(t.n * ExchangeBytes)}
	copy(x.say.Bytes(ExchangeBytes), say)
	r, err := t.Start(Call{Op: exchangeOp, RedOp: int(kind), Root: -1, In: x.say.Address(), Out: x.all.Address(), Count: ExchangeBytes}, deadline)
	if err != nil {
		x.free()
		return nil, err
	}
	x.r = r
	return x, nil
}

// Run drives it, as Request.Run.
func (x *Exchange) Run(until int64) (done bool, err error) {
	done, err = x.r.Run(until)
	if !done || x.freed {
		return done, err
	}
	if err == nil {
		for r := range x.n {
			reply := make([]byte, ExchangeBytes)
			copy(reply, x.all.Bytes(x.n * ExchangeBytes)[r*ExchangeBytes:])
			x.replies = append(x.replies, reply)
		}
	}
	x.free()
	return done, err
}

// Replies is what every member said, by rank, ExchangeBytes each; after a successful end.
func (x *Exchange) Replies() [][]byte { return x.replies }

// GiveUp ends it unfinished, as Request.GiveUp.
func (x *Exchange) GiveUp() {
	x.r.GiveUp()
	x.free()
}

func (x *Exchange) free() {
	if !x.freed {
		x.freed = true
		x.say.Free()
		x.all.Free()
	}
}
