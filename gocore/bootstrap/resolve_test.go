package bootstrap

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/status"
)

func TestResolve(t *testing.T) {
	o, err := NewOffer("127.0.0.1")
	require.NoError(t, err)
	defer o.Close()
	secret := "0123456789abcdef"
	type env = map[string]string
	cases := []struct {
		name   string
		o      Options
		env    env
		method string
		me, n  int
		words  string // of the reason, or of the error when method is ""
	}{
		{"nothing", Options{Me: -1, N: -1}, nil, Single, 0, 1, "single PE"},
		{"one of one", Options{Me: 0, N: 1}, nil, Single, 0, 1, "single"},
		{"no meeting point", Options{Me: 1, N: 2}, nil, "", 0, 0, "SHMEM_RENDEZVOUS"},
		{"half a rank", Options{Me: 1, N: -1}, nil, "", 0, 0, "go together"},
		{"rank too large", Options{Me: 2, N: 2, UID: o.UID}, nil, "", 0, 0, "PE 2 of 2"},
		{"uid", Options{Me: 1, N: 2, UID: o.UID}, nil, UID, 1, 2, "unique id was given"},
		{"uid, slurm rank", Options{Me: -1, N: -1, UID: o.UID}, env{"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_ID": "0"}, UID, 3, 4, "SLURM_PROCID"},
		{"slurm outside a step", Options{Me: -1, N: -1}, env{"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}, Single, 0, 1, "single"},
		{"uid damaged", Options{Me: 1, N: 2, UID: append([]byte("x"), o.UID[1:]...)}, nil, "", 0, 0, "unique id"},
		{"uid without rank", Options{Me: -1, N: -1, UID: o.UID}, nil, "", 0, 0, "SHMEM_RANK"},
		{"env uid", Options{Me: -1, N: -1}, env{"SHMEM_RANK": "1", "SHMEM_SIZE": "2", "SHMEM_UNIQUE_ID": o.Hex()}, Env, 1, 2, "SHMEM_UNIQUE_ID"},
		{"env endpoint", Options{Me: -1, N: -1}, env{"SHMEM_RANK": "1", "SHMEM_SIZE": "2", "SHMEM_RENDEZVOUS": "10.0.0.1:77", "SHMEM_SECRET": secret}, Env, 1, 2, "endpoint"},
		{"env file", Options{Me: -1, N: -1}, env{"SHMEM_RANK": "1", "SHMEM_SIZE": "2", "SHMEM_RENDEZVOUS": "/x/y"}, Env, 1, 2, "file"},
		{"mpi ranks", Options{Me: -1, N: -1}, env{"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "SHMEM_RENDEZVOUS": "/x/y"}, Env, 5, 8, "OMPI"},
		{"pmi ranks", Options{Me: -1, N: -1}, env{"PMI_RANK": "5", "PMI_SIZE": "8", "SHMEM_RENDEZVOUS": "/x/y"}, Env, 5, 8, "PMI"},
		{"mpi without a place", Options{Me: -1, N: -1}, env{"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8"}, "", 0, 0, "OMPI_COMM_WORLD_RANK"},
		{"not a number", Options{Me: -1, N: -1}, env{"SHMEM_RANK": "one", "SHMEM_SIZE": "2"}, "", 0, 0, `"one"`},
		{"half an environment", Options{Me: -1, N: -1}, env{"SHMEM_RANK": "1"}, "", 0, 0, "SHMEM_SIZE"},
		{"open endpoint without secret", Options{Me: 0, N: 2, Endpoint: "10.0.0.1:77"}, nil, "", 0, 0, "SHMEM_SECRET"},
		{"short secret", Options{Me: 0, N: 2, Endpoint: "10.0.0.1:77", Secret: "short"}, nil, "", 0, 0, "at least 16"},
		{"loopback without secret", Options{Me: 0, N: 2, Endpoint: "[::1]:77"}, nil, Endpoint, 0, 2, "private file"},
		{"no port", Options{Me: 0, N: 2, Endpoint: "localhost"}, nil, "", 0, 0, `"localhost"`},
		{"port 0", Options{Me: 0, N: 2, Endpoint: "localhost:0"}, nil, "", 0, 0, "fixed port"},
		{"file", Options{Me: 0, N: 2, Endpoint: "file:meet"}, nil, File, 0, 2, "file"},
		{"unknown method", Options{Me: 0, N: 2, Method: "magic"}, nil, "", 0, 0, `"magic"`},
		{"torchrun", Options{Me: -1, N: -1}, env{"WORLD_SIZE": "2", "RANK": "0"}, "", 0, 0, "torch.distributed"},
		{"torchrun but single", Options{Me: -1, N: -1, Method: Single}, env{"WORLD_SIZE": "2"}, Single, 0, 1, "single"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.o.LookupEnv = envOf(c.env)
			got, err := Resolve(c.o)
			if c.method == "" {
				require.Error(t, err)
				require.ErrorContains(t, err, c.words)
				require.Contains(t, []status.Code{status.BadConfig, status.InvalidArgument}, status.Of(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.method, got.Method)
			require.Equal(t, []int{c.me, c.n}, []int{got.Me, got.N})
			require.Contains(t, got.Reason, c.words)
		})
	}
}

func TestUIDDamageIsDetected(t *testing.T) {
	o, err := NewOffer("")
	require.NoError(t, err)
	defer o.Close()
	for i := range o.UID {
		b := append([]byte(nil), o.UID...)
		b[i] ^= 0x10
		_, err := decodeUID(b)
		require.Error(t, err, "byte %d", i)
		require.NotContains(t, err.Error(), strings.ToLower(o.Hex()[24:88]))
	}
	_, err = decodeUID(o.UID[:100])
	require.Error(t, err)
}

func TestCandidates(t *testing.T) {
	lo, err := Candidates("127.0.0.1")
	require.NoError(t, err)
	require.Len(t, lo, 1)
	byPrefix, err := Candidates("127.0.0.0/8")
	require.NoError(t, err)
	require.Contains(t, byPrefix, lo[0])
	all, err := Candidates("")
	require.NoError(t, err)
	require.True(t, all[0].IsLoopback())
	_, err = Candidates("no-such-interface0")
	require.ErrorIs(t, err, status.BadConfig)
	require.ErrorContains(t, err, "127.0.0.1")
}
