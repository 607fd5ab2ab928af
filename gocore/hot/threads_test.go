package hot

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCastsUnderThreadSanitizer: each release of the one-way broadcasts has its acquire. Weakening any of them makes this fail.
func TestCastsUnderThreadSanitizer(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	sources, err := filepath.Glob("*.c")
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "casts")
	cc := compiler(t)
	args := append(cc[1:], "-O1", "-g", "-fsanitize=thread", "-w", "-D_GNU_SOURCE", "-I../../capi/include", "-o", out, "testdata/threads/casts.c")
	if text, err := exec.Command(cc[0], append(append(args, sources...), "-lpthread")...).CombinedOutput(); err != nil {
		t.Skipf("the compiler has no thread sanitizer: %s", text)
	}
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	text, err := exec.CommandContext(ctx, out).CombinedOutput()
	if strings.Contains(string(text), "FATAL: ThreadSanitizer") {
		t.Skipf("the sanitizer does not run here: %.200s", text)
	}
	require.NoError(t, err, "%s", text)
	require.Equal(t, "0 wrong\n", string(text))
}
