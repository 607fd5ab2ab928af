package world

import (
	"encoding/binary"

	"goshmem/gocore/json"
	"goshmem/gocore/status"
)

// rounds are what all PEs of a world do about their devices together: each does a step of its own, all tell each other how it went, and so
// on. Whoever is in trouble says so, and all take their steps back and fail with the same reason.
type rounds struct {
	w      *World
	op     string
	failed string // "could not open its device"
	steps  []func() (say []byte, err error)
	undo   func()

	own  error // what went wrong here
	post *post
	step int
}

// mapped is what a PE tells of a step.
type mapped struct {
	Kernels bool   `json:"kernels,omitempty"`
	Near    []bool `json:"near,omitempty"` // by PE: mapped here
	Trouble string `json:"trouble,omitempty"`
	Code    int32  `json:"code,omitempty"`
}

func (o *rounds) tell(v any) []byte {
	o.post = newPost(o.w.n, v)
	return o.post.say()
}

func (o *rounds) next(replies [][]byte) ([]byte, error) {
	if !o.post.take(replies) {
		return o.post.say(), nil
	}
	o.step++
	say, err := o.steps[o.step-1]()
	if err != nil {
		o.undo()
	}
	return say, err
}

// result words how a step went here.
func (o *rounds) result(err error) mapped {
	o.own = err
	if err == nil {
		return mapped{}
	}
	return mapped{Trouble: err.Error(), Code: int32(status.Of(err))}
}

// results is what all said, or the first trouble in it.
func (o *rounds) results() ([]mapped, error) {
	all := make([]mapped, o.w.n)
	for pe := range all {
		if err := o.post.read(pe, &all[pe]); err != nil {
			return nil, err
		}
		if all[pe].Trouble != "" {
			return nil, o.word(pe, all[pe].Code, all[pe].Trouble)
		}
	}
	return all, nil
}

func (o *rounds) word(pe int, code int32, trouble string) error {
	if pe == o.w.me {
		return o.own
	}
	return status.At(status.Code(code), o.op, pe, "it %s: %s", o.failed, trouble)
}

// post is an all-gather of words of any length over the rounds of a talk. Each piece begins with how long the whole is.
type post struct {
	mine []byte
	all  [][]byte
	want []uint32
	sent int
}

const postHead = 4

func newPost(n int, v any) *post {
	return &post{mine: marshal(v), all: make([][]byte, n), want: make([]uint32, n)}
}

func (p *post) say() []byte {
	say := make([]byte, sayBytes)
	binary.LittleEndian.PutUint32(say, uint32(len(p.mine)))
	p.sent += copy(say[postHead:], p.mine[min(p.sent, len(p.mine)):])
	return say
}

// take notes a round; true when everybody's words are complete, which all find in the same round.
func (p *post) take(replies [][]byte) bool {
	done := true
	for pe, r := range replies {
		p.want[pe] = binary.LittleEndian.Uint32(r)
		left := int(p.want[pe]) - len(p.all[pe])
		p.all[pe] = append(p.all[pe], r[postHead:postHead+min(left, len(r)-postHead)]...)
		done = done && len(p.all[pe]) >= int(p.want[pe])
	}
	return done
}

func (p *post) read(pe int, v any) error {
	if err := json.Unmarshal(p.all[pe], v); err != nil {
		return &status.Error{Code: status.Internal, Op: "device_open", PE: pe, Detail: "its words cannot be read", Err: err}
	}
	return nil
}
