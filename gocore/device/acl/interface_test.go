package acl

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInterfaceAgrees compiles our declarations beside the emulator's, which its own tests compare with the vendor's headers.
func TestInterfaceAgrees(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("there is no g++")
	}
	compile := func(source string) ([]byte, error) {
		return exec.Command("g++", "-std=c++17", "-fsyntax-only", "-I", filepath.Join(root, "tests/acl_emulator/interface"), source).CombinedOutput()
	}
	out, err := compile("testdata/agrees.cpp")
	require.NoError(t, err, string(out))

	// The comparison must be able to fail: the same with one parameter of another size.
	entries, err := os.ReadFile("entries.def")
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "testdata"), 0o700))
	broken := regexp.MustCompile(`\(int32_t device\)`).ReplaceAllLiteral(entries, []byte("(int64_t device)"))
	require.NotEqual(t, entries, broken)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "entries.def"), broken, 0o600))
	for _, name := range []string{"interface.h", "testdata/agrees.cpp"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	out, err = compile(filepath.Join(folder, "testdata/agrees.cpp"))
	assert.Error(t, err)
	assert.Contains(t, string(out), "aclrtSetDevice")
}

// TestReleasesAgree compares the release of every entry point with the emulator's table.
func TestReleasesAgree(t *testing.T) {
	theirs, err := os.ReadFile(filepath.Join(root, "tests/acl_emulator/interface/functions.def"))
	require.NoError(t, err)
	since := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^ACL_FUNCTION\((\w+), [^,]+, (\w+),`).FindAllStringSubmatch(string(theirs), -1) {
		since[m[2]] = m[1]
	}
	ours, err := os.ReadFile("entries.def")
	require.NoError(t, err)
	names := map[string]string{"8.1.RC1": "8_1", "8.5.0": "8_5"}
	found := regexp.MustCompile(`(?m)^ENTRY\((?:REQUIRED|OPTIONAL), "([^"]+)", (\w+), `).FindAllStringSubmatch(string(ours), -1)
	assert.Greater(t, len(found), 50)
	for _, m := range found {
		assert.Equal(t, since[m[2]], names[m[1]], m[2])
	}
}
