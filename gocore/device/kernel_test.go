package device

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"regexp"
	"strings"
	"testing"

	"goshmem/gocore/status"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tableSource is kernel_table.go as kernel_table.def says it.
func tableSource(t *testing.T) []byte {
	def, err := os.ReadFile("../../kernels/include/kernel_table.def")
	require.NoError(t, err)
	var b bytes.Buffer
	b.WriteString("// Code generated from kernels/include/kernel_table.def (KERNEL_TABLE=write go test ./gocore/device). DO NOT EDIT.\n\n")
	b.WriteString("package device\n\nvar kernelTable = []Kernel{\n")
	argument := regexp.MustCompile(`[GUI]\((\w+)\)`)
	for _, m := range regexp.MustCompile(`(?m)^GSHMEM_KERNEL\((\w+),(.*)\)$`).FindAllStringSubmatch(string(def), -1) {
		var names []string
		for _, a := range argument.FindAllStringSubmatch(m[2], -1) {
			names = append(names, fmt.Sprintf("%q", a[1]))
		}
		require.NotEmpty(t, m[1])
		fmt.Fprintf(&b, "{%q, []string{%s}},\n", m[1], strings.Join(names, ", "))
	}
	b.WriteString("}\n")
	out, err := format.Source(b.Bytes())
	require.NoError(t, err)
	return out
}

func TestKernelTableIsTheSharedOne(t *testing.T) {
	want := tableSource(t)
	if os.Getenv("KERNEL_TABLE") == "write" {
		require.NoError(t, os.WriteFile("kernel_table.go", want, 0o644))
	}
	have, err := os.ReadFile("kernel_table.go")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(have), "kernel_table.def has changed: KERNEL_TABLE=write go test ./gocore/device")
	assert.Greater(t, len(kernelTable), 20)
}

func TestKernelArgumentsAreCounted(t *testing.T) {
	put, ok := FindKernel("gshmem_k_put")
	require.True(t, ok)
	assert.NoError(t, put.Check(make([]uint64, 5)))
	err := put.Check(make([]uint64, 4))
	assert.ErrorIs(t, err, status.InvalidArgument)
	assert.ErrorContains(t, err, "dst_sym, src, bytes, pe")
	_, ok = FindKernel("gshmem_k_pu")
	assert.False(t, ok)
}

func TestBlocksFollowTheBytes(t *testing.T) {
	blocks := func(name string, cores int, args ...uint64) int {
		k, ok := FindKernel(name)
		require.True(t, ok, name)
		require.NoError(t, k.Check(args))
		return k.Blocks(args, cores)
	}
	for _, c := range []struct {
		bytes uint64
		want  int
	}{{0, 1}, {1, 1}, {64 << 10, 1}, {64<<10 + 1, 2}, {1 << 20, 16}, {1 << 62, 16}, {^uint64(0), 16}} {
		assert.Equal(t, c.want, blocks("gshmem_k_put", 48, 1, 2, 3, c.bytes, 0), "%d bytes", c.bytes)
	}
	assert.Equal(t, 5, blocks("gshmem_k_put", 5, 1, 2, 3, 1<<30, 0), "no more than cores")
	assert.Equal(t, 1, blocks("gshmem_k_put", 0, 1, 2, 3, 1<<30, 0))
	assert.Equal(t, 1, blocks("gshmem_k_barrier", 48, 1, 7))
	assert.Equal(t, 2, blocks("gshmem_k_allreduce_one_shot", 48, 1, 0, 2, 3, 16<<10+1, 0, 0), "elements count 4 bytes")
	assert.Equal(t, 16, blocks("gshmem_k_put_strided", 48, 1, 2, 3, 1<<40, 1, 1, 1<<40, 0), "a product that overflows")
	assert.Equal(t, 1, blocks("gshmem_k_put_strided", 48, 1, 2, 3, 1<<40, 1, 1, 0, 0), "nothing of something large")
}
