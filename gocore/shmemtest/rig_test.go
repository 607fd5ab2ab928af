package shmemtest

import (
	"testing"

	"goshmem/gocore/coll"
	"goshmem/gocore/world"

	"github.com/stretchr/testify/require"
)

func TestBarrier(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		Run(t, n, world.Options{}, func(w *world.World) error {
			r, err := w.WorldTeam().Collective(coll.Call{Op: coll.Barrier, Root: -1}, world.How{}, world.Default, -1)
			require.NoError(t, err)
			_, err = r.Wait(-1)
			return err
		})
	}
}
