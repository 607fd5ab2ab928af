package acl

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"goshmem/gocore/device"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// chips are the emulator's.
var chips = []string{"910B1", "910_93", "950"}

// setting is what a test runs over.
type setting struct {
	chip    string
	release string // "" is 8.5; or a folder of the emulator's build
	n       int    // processes
	seed    int
	fail    string // ACLEMU_FAIL
	env     []string
	bare    bool // without kernels
}

func (s setting) String() string {
	return strings.Trim(strings.Join([]string{s.chip, s.release, strconv.Itoa(s.n), s.fail}, " "), " ")
}

// build makes what the tests run over, in a folder of the build, when a source is newer than the last build's end; one at a time of
// all processes of the machine that ask. It skips where there is no compiler.
func build(t *testing.T, compiler, folder string, sources []string, command ...string) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join(root, "build", folder))
	require.NoError(t, err)
	if fresh(t, filepath.Join(folder, "built"), sources) {
		return folder
	}
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skip("there is no " + compiler)
	}
	require.NoError(t, os.MkdirAll(folder, 0o755))
	args := append([]string{filepath.Join(folder, "lock")}, command...)
	cmd := exec.Command("flock", append(args, folder)...)
	cmd.Dir = root
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	return folder
}

func fresh(t *testing.T, product string, sources []string) bool {
	info, err := os.Stat(product)
	if err != nil {
		return false
	}
	newer := false
	for _, folder := range sources {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(_ string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			source, err := e.Info()
			newer = newer || err == nil && source.ModTime().After(info.ModTime())
			return err
		}))
	}
	return !newer
}

func emulator(t *testing.T) string {
	if folder := os.Getenv("ACLEMU_BUILD"); folder != "" {
		return folder
	}
	sources := []string{"tests/acl_emulator/runtime", "tests/acl_emulator/interface"}
	return build(t, "g++", "acl_emulator", sources, "tests/acl_emulator/build.sh")
}

func kernelFolder(t *testing.T) string {
	if folder := os.Getenv("GSHMEM_KERNELS"); folder != "" {
		return folder
	}
	compiler := "clang++"
	if _, err := exec.LookPath(compiler); err != nil {
		compiler = "clang++-14"
	}
	sources := []string{"kernels/include", "kernels/cpu_model", "kernels/rma", "kernels/coll", "kernels/fused"}
	return build(t, compiler, "kernels", sources, "sh", "-c", `exec make -s -C kernels OUT="$0"`)
}

// pe is one process of a test.
type pe struct {
	t     *testing.T
	me, n int
	in    *bufio.Reader
	out   *os.File

	device func(me int) int // which one it opens
}

// over runs the body of a test in fresh processes over the emulator. In them it gives the process' part; in the parent it runs them
// and gives nil.
func over(t *testing.T, s setting) *pe {
	t.Helper()
	if os.Getenv("ACL_TEST") == t.Name() {
		me, err := strconv.Atoi(os.Getenv("ACL_TEST_ME"))
		require.NoError(t, err)
		return &pe{t, me, s.n, bufio.NewReader(os.NewFile(3, "in")), os.NewFile(4, "out"), func(me int) int { return me }}
	}
	if os.Getenv("ACL_TEST") != "" {
		t.SkipNow() // a sibling of the one that this process is for
	}
	env := environment(t, s)
	var all []*process
	for me := range s.n {
		all = append(all, startProcess(t, append(env, fmt.Sprintf("ACL_TEST_ME=%d", me))))
	}
	relay(all)
	for me, p := range all {
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%v, PE %d: %v\n%s", s, me, err, p.text.String())
		}
		if !strings.Contains(p.text.String(), "--- PASS: "+t.Name()) {
			t.Errorf("%v: PE %d did not run this test", s, me)
		}
		if testing.Verbose() {
			t.Log(p.text.String())
		}
	}
	return nil
}

func environment(t *testing.T, s setting) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ACLEMU_") && !strings.HasPrefix(v, "ASCEND_") && !strings.HasPrefix(v, "LOCAL_RANK") {
			env = append(env, v)
		}
	}
	env = append(env, "ACL_TEST="+t.Name(), "LD_LIBRARY_PATH="+filepath.Join(emulator(t), s.release), "ACLEMU_SOC="+s.chip,
		fmt.Sprintf("ACLEMU_DEVICES=%d", max(s.n, 2)), fmt.Sprintf("ACLEMU_SEED=%d", s.seed+1), "ACLEMU_FAIL="+s.fail)
	if !s.bare {
		env = append(env, "ACL_TEST_KERNELS="+kernelFolder(t))
	}
	return append(env, s.env...)
}

// process is one child, and the two pipes by which it meets the others.
type process struct {
	cmd  *exec.Cmd
	text strings.Builder
	to   *os.File
	from *bufio.Reader
}

func startProcess(t *testing.T, env []string) *process {
	name := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	p := &process{cmd: exec.Command(os.Args[0], "-test.run="+name, "-test.v", "-test.timeout=100s")}
	inR, inW, err := os.Pipe()
	require.NoError(t, err)
	outR, outW, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Env, p.cmd.ExtraFiles = env, []*os.File{inR, outW}
	p.cmd.Stdout, p.cmd.Stderr = &p.text, &p.text
	p.to, p.from = inW, bufio.NewReader(outR)
	require.NoError(t, p.cmd.Start())
	require.NoError(t, inR.Close())
	require.NoError(t, outW.Close())
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _, _ = p.to.Close(), outR.Close() })
	return p
}

// relay gives everybody's line to everybody, until somebody is gone.
func relay(all []*process) {
	for {
		var lines strings.Builder
		for _, p := range all {
			line, err := p.from.ReadString('\n')
			if err != nil { // that one has ended; the others see their end of the pipe close
				for _, q := range all {
					_ = q.to.Close()
				}
				return
			}
			lines.WriteString(line)
		}
		for _, p := range all {
			_, _ = io.WriteString(p.to, lines.String())
		}
	}
}

// meet waits for all PEs and gives what each said.
func (p *pe) meet(word []byte) [][]byte {
	p.t.Helper()
	_, err := fmt.Fprintln(p.out, hex.EncodeToString(word))
	require.NoError(p.t, err)
	all := make([][]byte, p.n)
	for i := range all {
		line, err := p.in.ReadString('\n')
		require.NoError(p.t, err, "a peer has left")
		all[i], err = hex.DecodeString(strings.TrimSpace(line))
		require.NoError(p.t, err)
	}
	return all
}

// open opens this PE's device; it is closed, and nothing is left, when the test ends.
func (p *pe) open() *Device {
	p.t.Helper()
	d, err := Open(Options{Device: p.device(p.me), Kernels: os.Getenv("ACL_TEST_KERNELS")})
	require.NoError(p.t, err)
	p.t.Cleanup(func() {
		assert.NoError(p.t, d.Close())
		for kind, n := range Held() {
			assert.Zero(p.t, n, "left behind: %s", kind)
		}
	})
	return d
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// buffer is pinned memory of a test.
func buffer(t *testing.T, d *Device, n int) ([]byte, uintptr) {
	at, err := d.AllocHost(uint64(max(n, 1)))
	require.NoError(t, err)
	return bytesOf(at, n), at
}

func read(t *testing.T, d *Device, at uintptr, n int) []byte {
	t.Helper()
	b, host := buffer(t, d, n)
	require.NoError(t, d.Copy(host, at, uint64(n), device.Own))
	require.NoError(t, d.Wait(soon(t), device.Own))
	out := append([]byte{}, b...)
	require.NoError(t, d.FreeHost(host))
	return out
}

func write(t *testing.T, d *Device, at uintptr, b []byte) {
	t.Helper()
	mem, host := buffer(t, d, len(b))
	copy(mem, b)
	require.NoError(t, d.Copy(at, host, uint64(len(b)), device.Own))
	require.NoError(t, d.Wait(soon(t), device.Own))
	require.NoError(t, d.FreeHost(host))
}

func pattern(pe, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(pe*37 + i*11 + i>>8 + 1)
	}
	return b
}

// parallel runs f for each, two at a time.
func parallel[T any](t *testing.T, all []T, f func(t *testing.T, one T)) {
	var wait sync.WaitGroup
	room := make(chan struct{}, 2)
	for _, one := range all {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			t.Run(fmt.Sprint(one), func(t *testing.T) { f(t, one) })
		})
	}
	wait.Wait()
}
