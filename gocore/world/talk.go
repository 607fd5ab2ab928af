package world

// exchange is one all-gather of at most sayBytes among a team, as package coll gives it.
type exchange interface {
	Run(until int64) (done bool, err error)
	Replies() [][]byte // by team rank, after a successful end
	GiveUp()
}

const sayBytes = 96 // what travels inline with an arrival

// talk is a conversation of a team: exchanges with a local step between two. Every member gets the same replies, so
// every member takes the same turn; that is what makes an outcome (also a failure) the same everywhere.
type talk struct {
	open func(say []byte) (exchange, error)
	calm *calm // before the first exchange; nil: not needed
	// first gives what is said first. next is told the replies and gives what to say next; nil: the talk is over.
	first  func() []byte
	next   func(replies [][]byte) (say []byte, err error)
	undo   func() // takes back local effects when the talk fails from outside
	result func() [4]uint64

	t        *Team
	op       string
	began    int64
	deadline int64
	say      []byte
	cur      exchange
}

func (k *talk) run(until int64) (bool, error) {
	if k.calm != nil {
		done, err := k.calm.run(k.op, until, k.deadline)
		if !done || err != nil {
			return done, err
		}
		k.calm = nil
	}
	if k.first != nil {
		k.say, k.first = k.first(), nil
	}
	for {
		if k.cur == nil {
			ex, err := k.open(k.say)
			if err != nil {
				k.undo()
				return true, err
			}
			k.cur = ex
		}
		done, err := k.cur.Run(until)
		if !done {
			return false, nil
		}
		replies := k.cur.Replies()
		k.cur = nil
		if err != nil {
			k.undo()
			return true, err
		}
		if k.say, err = k.next(replies); err != nil || k.say == nil {
			return true, err
		}
	}
}

func (k *talk) due() int64 { return k.deadline }

func (k *talk) overdue() error { return k.t.overdue(k.op, k.began) }

func (k *talk) giveUp() {
	if k.calm != nil {
		k.calm.giveUp()
	}
	if k.cur != nil {
		k.cur.GiveUp()
		k.cur = nil
	}
	k.undo()
}

func (k *talk) words() [4]uint64 {
	if k.result == nil {
		return [4]uint64{}
	}
	return k.result()
}
