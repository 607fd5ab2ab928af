package segment

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"goshmem/gocore/status"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var secret = []byte("the secret of these tests")

// The test binary is also the other process: it owns a segment, prints its card, and waits to be killed.
func TestMain(m *testing.M) {
	dir, ok := os.LookupEnv("OWNER_DIR")
	if !ok {
		os.Exit(m.Run())
	}
	if os.Getenv("OWNER_LIMITED") != "" {
		limited()
		return
	}
	refuse := Refuse{Pidfd: os.Getenv("OWNER_NO_PIDFD") != ""}
	s, err := Create(Options{Me: 1, N: 2, Scratch: 1 << 20, Heap: 4 << 20, Dir: dir, Refuse: refuse})
	if err != nil {
		panic(err)
	}
	if err := s.Commit(s.Geo.HeapOff, 100); err != nil {
		panic(err)
	}
	copy(s.Bytes()[s.Geo.HeapOff:], "written by the owner")
	card, err := s.Share(secret)
	if err != nil {
		panic(err)
	}
	fmt.Println(hex.EncodeToString(card.Encode()))
	time.Sleep(time.Minute)
}

// owner starts the other process and gives its card.
func owner(t *testing.T, env ...string) (*exec.Cmd, *Card) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	raw, err := hex.DecodeString(strings.TrimSpace(line))
	require.NoError(t, err)
	card, err := DecodeCard(raw)
	require.NoError(t, err)
	return cmd, card
}

func TestAnotherProcessIsMappedAndItsDeathLeavesTheMappingAndNothingElse(t *testing.T) {
	for name, tc := range map[string]struct {
		env    []string
		refuse Refuse
		pidfd  bool
	}{
		"socket":          {env: []string{"OWNER_DIR="}, pidfd: true},
		"socket no pidfd": {env: []string{"OWNER_DIR=", "OWNER_NO_PIDFD=1"}},
		"proc":            {env: []string{"OWNER_DIR="}, refuse: Refuse{Socket: true}, pidfd: true},
		"proc no pidfd":   {env: []string{"OWNER_DIR="}, refuse: Refuse{Socket: true, Pidfd: true}},
		"file":            {env: []string{"OWNER_DIR=" + t.TempDir()}, refuse: Refuse{Socket: true, Proc: true}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, card := owner(t, tc.env...)
			peer, how, err := Open(context.Background(), card, OpenOptions{Secret: secret, Refuse: tc.refuse})
			require.NoError(t, err)
			t.Log(how)
			const text = "written by the owner"
			require.Equal(t, text, string(peer.Bytes()[peer.Geo.HeapOff:][:len(text)]))
			require.ErrorIs(t, peer.Commit(0, 1), status.Finalized)
			pidfd := peer.TakePidfd()
			require.Equal(t, tc.pidfd, pidfd >= 0)
			if pidfd >= 0 {
				defer unix.Close(pidfd)
			}
			alive, done := peer.TakeProbe()
			require.Equal(t, tc.pidfd, alive == nil)
			if alive != nil {
				defer done()
				require.True(t, alive())
			}
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait()
			if alive != nil {
				require.False(t, alive())
			}
			require.Equal(t, text, string(peer.Bytes()[peer.Geo.HeapOff:][:len(text)]), "the pages stay while they are mapped")
			require.NoError(t, peer.Close())
			_, _, err = Open(context.Background(), card, OpenOptions{Secret: secret, Refuse: Refuse{Socket: true, Proc: true}})
			if card.Path == "" {
				require.ErrorIs(t, err, status.PeerUnreachable)
			}
		})
	}
}

func TestAFileOfADeadOwnerIsSweptAndOthersAreNot(t *testing.T) {
	dir := t.TempDir()
	dead, _ := owner(t, "OWNER_DIR="+dir)
	_, live := owner(t, "OWNER_DIR="+dir)
	require.NoError(t, dead.Process.Kill())
	_ = dead.Wait()
	strange := filepath.Join(dir, "goshmem-1-notours.segment")
	public := filepath.Join(dir, fileName(1, [NonceSize]byte{1}))
	require.NoError(t, os.WriteFile(strange, nil, 0o600))
	require.NoError(t, os.WriteFile(public, nil, 0o644))
	sweep(dir)
	require.Len(t, list(t, dir), 4, "all are too young to be judged")
	sweepOlder(dir, -time.Second)
	require.ElementsMatch(t, []string{filepath.Base(strange), filepath.Base(public), filepath.Base(live.Path)}, list(t, dir))
}

func list(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestUnsharingAndClosingLeaveNoFileNoDescriptorNoGoroutine(t *testing.T) {
	dir := t.TempDir()
	before := descriptors(t)
	for range 50 {
		own, err := Create(Options{N: 1, Heap: 1 << 20, Dir: dir})
		require.NoError(t, err)
		card, err := own.Share(secret)
		require.NoError(t, err)
		_, err = own.Share(secret)
		require.Error(t, err, "shared twice")
		peer, _, err := Open(context.Background(), card, OpenOptions{Secret: secret})
		require.NoError(t, err)
		require.NoError(t, own.Unshare())
		require.NoError(t, own.Unshare())
		require.Empty(t, list(t, dir))
		_, _, err = Open(context.Background(), card, OpenOptions{Secret: secret, Refuse: Refuse{Proc: true}})
		require.ErrorIs(t, err, status.PeerUnreachable)
		require.NoError(t, peer.Close())
		require.NoError(t, peer.Close())
		require.NoError(t, own.Close())
		require.NoError(t, own.Close())
	}
	fewer(t, before+2, "")
}

func descriptors(t *testing.T) int { return len(list(t, "/proc/self/fd")) }

// fewer waits until at most so many descriptors are open: who served a peer closes its connection a moment after the peer has all it asked for.
func fewer(t *testing.T, most int, why string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); descriptors(t) > most && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	require.LessOrEqual(t, descriptors(t), most, why)
}

func TestStrangersGetNothing(t *testing.T) {
	own := newOwn(t, Options{Me: 2, N: 3, Heap: 1 << 20})
	card, err := own.Share(secret)
	require.NoError(t, err)
	_, _, err = Open(context.Background(), card, OpenOptions{Secret: []byte("guessed"), Refuse: Refuse{Proc: true}})
	require.ErrorIs(t, err, status.PeerUnreachable)
	require.ErrorContains(t, err, "PE 2")

	conn, err := net.Dial("unix", "@"+card.Socket)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.CopyN(conn, strings.NewReader(strings.Repeat("x", 1<<20)), 1<<20)
	if err == nil {
		_, err = io.ReadAll(conn)
	}
	t.Logf("a stranger's end: %v", err)

	wrong := *card
	wrong.Nonce[0]++
	_, _, err = Open(context.Background(), &wrong, OpenOptions{Secret: secret})
	require.ErrorIs(t, err, status.PeerUnreachable)
	wrong = *card
	wrong.Size += own.Geo.Page
	_, _, err = Open(context.Background(), &wrong, OpenOptions{Secret: secret})
	require.ErrorContains(t, err, "not the segment")
	wrong = *card
	wrong.PE = 1
	_, _, err = Open(context.Background(), &wrong, OpenOptions{Secret: secret})
	require.ErrorContains(t, err, "belongs to PE 2")

	peer, _, err := Open(context.Background(), card, OpenOptions{Secret: secret})
	require.NoError(t, err, "the owner still serves its own")
	require.NoError(t, peer.Close())
}

func TestAnImpostorsDescriptorsAreNotMapped(t *testing.T) {
	own := newOwn(t, Options{N: 2, Heap: 1 << 20})
	card, err := own.Share(secret)
	require.NoError(t, err)
	name := "goshmem-test-impostor-" + hex.EncodeToString(own.Nonce[:])
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + name, Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	fd := own.fd
	go func() {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Write(make([]byte, challengeSize))
		_, _ = io.ReadFull(conn, make([]byte, challengeSize+32))
		_, _, _ = conn.WriteMsgUnix(make([]byte, 32), unix.UnixRights(fd), nil)
	}()
	before := descriptors(t)
	card.Socket = name
	_, _, err = Open(context.Background(), card, OpenOptions{Secret: secret, Refuse: Refuse{Proc: true}})
	require.ErrorContains(t, err, errStranger.Error())
	fewer(t, before+1, "its descriptors are closed")
}

func TestABadCardIsRefused(t *testing.T) {
	c := Card{PE: 1, Socket: "s", Path: "/p"}
	b := c.Encode()
	back, err := DecodeCard(b)
	require.NoError(t, err)
	require.Equal(t, c, *back)
	for i := range b {
		_, err := DecodeCard(b[:i])
		require.ErrorIs(t, err, status.VersionSkew, "cut at %d", i)
	}
	_, err = DecodeCard(append(b, 0))
	require.ErrorIs(t, err, status.VersionSkew)
	_, err = DecodeCard(append(b, make([]byte, 10000)...))
	require.ErrorIs(t, err, status.VersionSkew)
}

// Sixty-four PEs in this process, each opening all others, with the descriptors that `ulimit -n 256` leaves per PE.
func TestSixtyFourPeersNeedFewDescriptors(t *testing.T) {
	own := newOwn(t, Options{N: 64, Heap: 1 << 20})
	card, err := own.Share(secret)
	require.NoError(t, err)
	before := descriptors(t)
	var wg sync.WaitGroup
	peers := make([]*Segment, 63)
	for i := range peers {
		wg.Go(func() {
			s, _, err := Open(context.Background(), card, OpenOptions{Secret: secret})
			if err != nil {
				t.Error(err)
				return
			}
			peers[i] = s
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	fewer(t, before+63+2, "a mapped peer costs its pidfd and nothing else")
	for _, s := range peers {
		require.NoError(t, s.Close())
	}
}
