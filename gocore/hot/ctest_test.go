package hot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// compiler is the C compiler that cgo uses, or any other there is.
func compiler(t *testing.T) []string {
	t.Helper()
	for _, c := range []string{os.Getenv("CC"), "gcc", "clang", "cc"} {
		if f := strings.Fields(c); len(f) > 0 {
			if _, err := exec.LookPath(f[0]); err == nil {
				return f
			}
		}
	}
	t.Skip("no C compiler")
	return nil
}

// buildC compiles the hot path with its C tests, and nothing else.
func buildC(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	sources, err := filepath.Glob("*.c")
	require.NoError(t, err)
	tests, err := filepath.Glob("testdata/*.c")
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "hot_test")
	cc := compiler(t)
	args := append(cc[1:], flags...)
	args = append(args, "-g", "-Wall", "-Wextra", "-I../../capi/include", "-o", out)
	args = append(append(args, sources...), tests...)
	text, err := exec.Command(cc[0], append(args, "-lpthread")...).CombinedOutput()
	if err != nil {
		t.Logf("%s", text)
	} else {
		require.Empty(t, string(text), "the compiler warns")
	}
	return out, err
}

func runC(t *testing.T, program string) {
	t.Helper()
	cmd := exec.Command(program)
	cmd.WaitDelay = time.Second
	timer := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	text, err := cmd.CombinedOutput()
	t.Logf("%s", text)
	require.NoError(t, err)
	require.Contains(t, string(text), " 0 failed")
}

func TestCProgram(t *testing.T) {
	program, err := buildC(t, "-O2")
	require.NoError(t, err)
	runC(t, program)
}

func TestCProgramSanitized(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	asked := os.Getenv("SHMEM_C_SANITIZE") // of `build.sh asan`: then their absence is a failure
	kinds := asked
	if kinds == "" {
		kinds = "address,undefined"
	}
	program, err := buildC(t, "-O1", "-fsanitize="+kinds, "-fno-sanitize-recover=all")
	if err != nil {
		require.Empty(t, asked, "the compiler has no sanitizers: use another one (CC)")
		t.Skip("the compiler has no sanitizers; CC chooses another one")
	}
	runC(t, program)
}
