package segment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryRouteMapsTheSameMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		create, open Refuse
		dir          bool
		how          string
	}{
		"socket":      {how: "shared memory by socket"},
		"proc":        {create: Refuse{Socket: true}, how: "shared memory by proc"},
		"proc opener": {open: Refuse{Socket: true}, how: "shared memory by proc"},
		"file":        {create: Refuse{Socket: true}, open: Refuse{Proc: true}, dir: true, how: "shared memory by file"},
		"file socket": {dir: true, how: "shared memory by socket"},
		"no memfd":    {create: Refuse{Memfd: true}, open: Refuse{Socket: true, Proc: true}, how: "shared memory by file"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Me: 3, N: 5, Scratch: 1 << 20, Heap: 3<<20 + 1, Refuse: tc.create}
			if tc.dir {
				o.Dir = t.TempDir()
			}
			own, err := Create(o)
			require.NoError(t, err)
			defer own.Close()
			card, err := own.Share(secret)
			require.NoError(t, err)
			card, err = DecodeCard(card.Encode())
			require.NoError(t, err)
			peer, how, err := Open(context.Background(), card, OpenOptions{Secret: secret, Refuse: tc.open})
			require.NoError(t, err)
			defer peer.Close()
			require.Equal(t, tc.how, how)
			require.Equal(t, 3, peer.Me)
			require.Equal(t, 5, peer.N)
			own.Bytes()[own.Geo.HeapOff+12345] = 77
			require.EqualValues(t, 77, peer.Bytes()[own.Geo.HeapOff+12345])
			peer.Bytes()[own.Size()-1] = 78
			require.EqualValues(t, 78, own.Bytes()[own.Size()-1])
		})
	}
}
