package segment

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// limited is the other process of the test below: told to go on, it commits more than its cgroup allows, then what fits.
func limited() {
	_, _ = io.ReadFull(os.Stdin, make([]byte, 1))
	s, err := Create(Options{N: 1, Heap: 1 << 30})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Commit(s.Geo.HeapOff, 200<<20))
	fmt.Println(s.Commit(s.Geo.HeapOff, 20<<20))
}

func TestARealCgroupLimitIsAnErrorNotAKill(t *testing.T) {
	dir, limit := ownCgroup(t)
	defer os.Remove(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, limit), []byte("100000000"), 0o644))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "OWNER_DIR=", "OWNER_LIMITED=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644))
	_, err = in.Write([]byte{1})
	require.NoError(t, err)
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the process was killed")
	require.Contains(t, lines.Text(), "out of memory")
	require.Contains(t, lines.Text(), "memory cgroup "+dir)
	require.Contains(t, lines.Text(), limit)
	require.Contains(t, lines.Text(), "MemAvailable")
	require.True(t, lines.Scan())
	require.Equal(t, "<nil>", lines.Text())
	require.NoError(t, cmd.Wait())
}

// ownCgroup makes a child of this process' memory cgroup, or skips where that is not allowed.
func ownCgroup(t *testing.T) (dir, limit string) {
	for _, h := range NewMachine("").trees {
		dir = filepath.Join(h.mount, h.rel, "goshmem-test-"+strconv.Itoa(os.Getpid()))
		limit = "memory.limit_in_bytes"
		if h.v2 {
			limit = "memory.max"
		}
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, limit)); err == nil {
			return dir, limit
		}
		_ = os.Remove(dir)
	}
	t.Skip("no memory cgroup can be made here")
	return "", ""
}
