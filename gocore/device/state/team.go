package state

import (
	"encoding/binary"

	"goshmem/gocore/status"
)

// Offsets in a team's block: the struct, then the flags and the counter of the barrier among its blocks, then its stop words.
const (
	teamCore  = (tmBytes + line - 1) / line * line
	teamStop  = teamCore + coreSyncBytes + line
	teamBlock = teamStop + teamStopBytes
)

// SetTeam implements [device.State]. An entry that is set already is replaced, and its barriers begin anew.
func (s *State) SetTeam(index int, members []int, me int) error {
	const op = "set device team"
	if index < 0 || index >= maxTeams {
		return status.New(status.InvalidArgument, op, "index %d; kernels know %d teams", index, maxTeams)
	}
	if len(members) == 0 || len(members) > s.o.N || me < -1 || me >= len(members) {
		return status.New(status.InvalidArgument, op, "rank %d of %d members in a world of %d PEs", me, len(members), s.o.N)
	}
	for rank, pe := range members {
		if pe < 0 || pe >= s.o.N || rank == me && pe != s.o.Me {
			return status.New(status.InvalidPE, op, "rank %d of team %d is PE %d; this is PE %d of %d", rank, index, pe, s.o.Me, s.o.N)
		}
	}
	return s.locked(op, func() error { return s.setLocked(index, members, me) })
}

// setLocked writes the description before the entry that leads to it. Needs mu.
func (s *State) setLocked(index int, members []int, me int) error {
	if me < 0 {
		return s.clearLocked(index)
	}
	at, known := s.teams[index]
	if !known {
		var err error
		if at, err = s.d.Alloc(teamBlock); err != nil {
			return err
		}
		s.teams[index] = at
	}
	for _, area := range []struct {
		at uintptr
		n  uint64
	}{
		{at + teamCore, teamBlock - teamCore},
		{s.own + ownCounters + uintptr(index*line), line},
		{s.pool() + uintptr(index*teamSyncBytes), teamSyncBytes},
	} {
		if err := s.d.Clear(area.at, area.n, s.side); err != nil {
			return err
		}
	}
	if err := s.put(at, encodeTeam(index, members, me, at)); err != nil {
		return err
	}
	return s.enter(index, at)
}

// enter makes an entry lead to a description, or nowhere.
func (s *State) enter(index int, at uintptr) error {
	return s.put(s.at+uintptr(stTeams+8*index), binary.LittleEndian.AppendUint64(nil, uint64(at)))
}

// ClearTeam implements [device.State]. An entry that is not set stays so.
func (s *State) ClearTeam(index int) error {
	const op = "clear device team"
	if index < 0 || index >= maxTeams {
		return status.New(status.InvalidArgument, op, "index %d; kernels know %d teams", index, maxTeams)
	}
	return s.locked(op, func() error { return s.clearLocked(index) })
}

func (s *State) clearLocked(index int) error {
	at, known := s.teams[index]
	if !known {
		return nil
	}
	if err := s.enter(index, 0); err != nil {
		return err
	}
	delete(s.teams, index)
	return s.d.Free(at)
}

// StopTeam implements [device.State]. It goes by the same stream as Abort.
func (s *State) StopTeam(index int, signals bool) error {
	return s.locked("stop device team", func() error {
		at, known := s.teams[index]
		if !known {
			return nil
		}
		words := []byte{1, 0, 0, 0, 1, 0, 0, 0}
		if !signals {
			words = words[:4]
		}
		return s.put(at+teamStop, words)
	})
}

// TeamStopped implements [device.State].
func (s *State) TeamStopped(index int) (stopped bool, err error) {
	err = s.locked("look at device team", func() error {
		at, known := s.teams[index]
		if !known {
			return nil
		}
		if err := s.d.Copy(s.stage, at+teamStop+line, 8, s.side); err != nil {
			return err
		}
		if err := s.wait(); err != nil {
			return err
		}
		stopped = wordAt(s.stage) != 0
		return nil
	})
	return stopped, err
}

// encodeTeam is a gshmem_team_state_t whose block is at an address. Stride is 0 where the members are not evenly spaced; kernels go by the mapping.
func encodeTeam(index int, members []int, me int, at uintptr) []byte {
	b := make([]byte, tmBytes)
	i32 := func(at, v int) { binary.LittleEndian.PutUint32(b[at:], uint32(int32(v))) }
	i32(tmMe, me)
	i32(tmStart, members[0])
	i32(tmStride, stride(members))
	i32(tmN, len(members))
	i32(tmIndex, index)
	binary.LittleEndian.PutUint64(b[tmCoreSync:], uint64(at+teamCore))
	binary.LittleEndian.PutUint64(b[tmStop:], uint64(at+teamStop))
	for i := range 2 * maxPEs {
		i32(tmMapping+4*i, -1)
	}
	for rank, pe := range members {
		i32(tmMapping+4*rank, pe)
		i32(tmMapping+4*(maxPEs+pe), rank)
	}
	return b
}

func stride(members []int) int {
	if len(members) == 1 {
		return 1
	}
	step := members[1] - members[0]
	for i := 2; i < len(members); i++ {
		if members[i]-members[i-1] != step {
			return 0
		}
	}
	return step
}
