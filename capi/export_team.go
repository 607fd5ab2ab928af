package main

// #include "internal.h"
import "C"

import (
	"time"
	"unsafe"

	"goshmem/gocore/status"
	"goshmem/gocore/world"
)

//export goshmem_team_split_strided_start
func goshmem_team_split_strided_start(th C.uint64_t, start, stride, size C.int32_t, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "team_split_strided")
		if err != nil {
			return err
		}
		r, made, err := t.SplitStrided(int(start), int(stride), int(size), int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return handWords(newTeams(r, made), out)
	})
}

//export goshmem_team_split_2d_start
func goshmem_team_split_2d_start(th C.uint64_t, xrange C.int32_t, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "team_split_2d")
		if err != nil {
			return err
		}
		r, made, err := t.Split2D(int(xrange), int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return handWords(newTeams(r, made), out)
	})
}

//export goshmem_team_create_start
func goshmem_team_create_start(wh C.uint64_t, pes *C.int32_t, n C.int32_t, key C.uint64_t, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "team_create")
		if err != nil {
			return err
		}
		if n < 1 || int(n) > w.N() || pes == nil {
			where := "a list"
			if pes == nil {
				where = "no list (null)"
			}
			return status.New(status.InvalidArgument, "team_create", "%s of %d PEs; a team has 1 to %d, as many as this world", where, int32(n), w.N())
		}
		list := make([]int, int(n))
		for i, pe := range unsafe.Slice(pes, len(list)) {
			list[i] = int(pe)
		}
		r, made, err := w.CreateTeam(list, uint64(key), int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return handWords(newTeams(r, made), out)
	})
}

// newTeams is a request whose words are handles of new teams, 0 where this PE is no member.
func newTeams(r *world.Request, made func() []*world.Team) *pending {
	return &pending{r: r, finish: func() (words [4]uint64, err error) {
		for i, t := range made() {
			words[i] = all.addTeam(t)
		}
		return words, nil
	}, drop: func([4]uint64) {
		for _, t := range made() {
			if t != nil {
				all.removeTeam(t.Handle())
				_ = t.Destroy() // it is no world team
			}
		}
	}}
}

//export goshmem_team_destroy
func goshmem_team_destroy(th C.uint64_t) C.int32_t {
	return endTeam(th, "team_destroy", (*world.Team).Destroy)
}

//export goshmem_team_abort
func goshmem_team_abort(th C.uint64_t) C.int32_t {
	return endTeam(th, "team_abort", (*world.Team).Abort)
}

func endTeam(th C.uint64_t, op string, end func(*world.Team) error) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), op)
		if err != nil {
			return err
		}
		if err := end(t); err != nil {
			return err
		}
		all.removeTeam(uint64(th))
		return nil
	})
}

//export goshmem_team_number
func goshmem_team_number(th C.uint64_t, what C.int32_t) (n C.int32_t) {
	code := guard(func() error {
		t, err := all.team(uint64(th), "team_my_pe")
		if err != nil {
			return err
		}
		if n = C.int32_t(t.Me()); what == 1 {
			n = C.int32_t(t.N())
		}
		return nil
	})
	if code != C.GSHMEM_OK {
		return code
	}
	return n
}

//export goshmem_team_translate
func goshmem_team_translate(from C.uint64_t, pe C.int32_t, to C.uint64_t, out *C.int32_t) C.int32_t {
	return guard(func() error {
		a, err := all.team(uint64(from), "team_translate")
		if err != nil {
			return err
		}
		b, err := all.team(uint64(to), "team_translate")
		if err != nil {
			return err
		}
		rank, err := a.Translate(int(pe), b)
		if err != nil {
			return err
		}
		*out = C.int32_t(rank)
		return nil
	})
}

//export goshmem_team_set_timeout
func goshmem_team_set_timeout(th C.uint64_t, timeout C.int64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "team_set_timeout")
		if err != nil {
			return err
		}
		return t.SetTimeout(int64(timeout))
	})
}

//export goshmem_team_health
func goshmem_team_health(th C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "team_health")
		if err != nil {
			return err
		}
		return t.Health()
	})
}
