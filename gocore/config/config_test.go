package config

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"goshmem/gocore/status"

	"github.com/stretchr/testify/require"
)

func env(pairs map[string]string) Lookup {
	return func(name string) (string, bool) { v, ok := pairs[name]; return v, ok }
}

func TestOptionBeatsEnvironmentBeatsDefault(t *testing.T) {
	c, err := Read(map[string]string{"SHMEM_EAGER": "8k"}, env(map[string]string{"SHMEM_EAGER": "1k", "SHMEM_TIMEOUT": "2.5", "SHMEM_DIR": "  "}))
	require.NoError(t, err)
	require.EqualValues(t, 8192, c.Eager)
	require.Equal(t, 2500*time.Millisecond, c.Timeout)
	require.EqualValues(t, 1<<30, c.SymmetricSize)
	require.Equal(t, "", c.Dir)
	from := map[string]Origin{}
	for _, o := range c.Origins() {
		from[o.Name] = o
	}
	require.Equal(t, Origin{"SHMEM_EAGER", "8k", FromOption}, from["SHMEM_EAGER"])
	require.Equal(t, Origin{"SHMEM_TIMEOUT", "2.5", FromEnvironment}, from["SHMEM_TIMEOUT"])
	require.Equal(t, FromDefault, from["SHMEM_DIR"].Source)
	require.Len(t, from, len(Settings()))
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "17": 17, "1k": 1024, "1K": 1024, "3m": 3 << 20, "2G": 2 << 30, "1t": 1 << 40, "1.5g": 3 << 29, "512MiB": 512 << 20,
		"64kb": 65536, " 7 b ": 7, "8191t": 8191 << 40,
	} {
		n, err := ParseBytes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"", "k", "-1", "1kk", "1.2.3", "9999999999999g", "8388608t", "0x10", "1 k k", "nan", "1e3"} {
		_, err := ParseBytes(text)
		require.Error(t, err, text)
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"30": 30 * time.Second, "0.25": 250 * time.Millisecond, "1h30m": 90 * time.Minute, "-1": -1} {
		d, err := ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, d, text)
	}
	for _, text := range []string{"", "0", "-2", "-1s", "soon", "nan", "1e300"} {
		_, err := ParseDuration(text)
		require.Error(t, err, text)
	}
}

func TestErrorsQuoteTheValueAndNameTheSetting(t *testing.T) {
	for name, value := range map[string]string{
		"SHMEM_SYMMETRIC_SIZE": "lots", "SHMEM_TIMEOUT": "soon", "SHMEM_TRANSPORT": "carrier pigeon", "SHMEM_RANK": "one",
		"SHMEM_SCRATCH_SIZE": "4k", "SHMEM_EAGER": "1g", "SHMEM_REFUSE": "memfd,luck", "SHMEM_LOG": "loud",
	} {
		_, err := Read(nil, env(map[string]string{name: value}))
		require.ErrorIs(t, err, status.BadConfig)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, value)
	}
	_, err := Read(nil, env(map[string]string{"SHMEM_RANK": "4", "SHMEM_SIZE": "4"}))
	require.ErrorContains(t, err, "SHMEM_RANK=4")
	_, err = Read(map[string]string{"SHMEM_TYPO": "1"}, env(nil))
	require.ErrorContains(t, err, "SHMEM_TYPO")
}

func TestSecretsAreNeverShown(t *testing.T) {
	c, err := Read(nil, env(map[string]string{"SHMEM_SECRET": "hunter2", "SHMEM_UNIQUE_ID": "hunter2"}))
	require.NoError(t, err)
	require.Equal(t, "hunter2", c.Secret)
	for _, o := range c.Origins() {
		require.NotContains(t, o.Value, "hunter2")
	}
}

func TestEveryRowHasAFieldOfItsOwnAndAHelp(t *testing.T) {
	base, err := Read(nil, env(nil))
	require.NoError(t, err)
	other := map[Type]string{Text: "x", Bytes: "2m", Duration: "3", Integer: "7"}
	for _, s := range Settings() {
		text := other[s.Type]
		if len(s.Choices) > 0 {
			text = s.Choices[len(s.Choices)-1]
		}
		if s.Name == "SHMEM_EAGER" {
			text = "9k"
		}
		c, err := Read(nil, env(map[string]string{s.Name: text}))
		require.NoError(t, err, s.Name)
		changed := 0
		a, b := reflect.ValueOf(*base), reflect.ValueOf(*c)
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
				changed++
			}
		}
		require.Equal(t, 1, changed, s.Name)
		require.NotEmpty(t, s.Help)
		require.Contains(t, Markdown(), "`"+s.Name+"`")
	}
	var rows []map[string]any
	require.NoError(t, json.Unmarshal(JSON(), &rows))
	require.Len(t, rows, len(Settings()))
}

func TestTheDocumentationIsTheTable(t *testing.T) {
	const path = "../../docs/settings.md"
	want := "# Settings\n\nEach is an environment variable; options of `init` of the same meaning win over it. Made from gocore/config/settings.go:\n" +
		"`UPDATE_DOCS=1 go test ./gocore/config` writes this file anew.\n\n" + Markdown()
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run UPDATE_DOCS=1 go test ./gocore/config")
}

func TestTypingMistakesAreFound(t *testing.T) {
	got := Unknown([]string{"PATH=/bin", "SHMEM_TRANSPROT=tcp", "SHMEM_EAGER=1", "OTHER_SHMEM_X=1"})
	require.Len(t, got, 1)
	require.Contains(t, got[0], "did you mean SHMEM_TRANSPORT")
}
