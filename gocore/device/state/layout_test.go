package state

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const header = "../../../kernels/include/device/shmem_state.h"

// numbers pairs what C says with what layout.go says.
var numbers = []struct {
	c    string
	here uint64
}{
	{"GSHMEM_MAX_PES", maxPEs},
	{"GSHMEM_MAX_TEAMS", maxTeams},
	{"GSHMEM_STATE_MAGIC", magic},
	{"GSHMEM_FIXED_STATE_ADDR", fixedAddress},
	{"GSHMEM_FIXED_STATE_BYTES", fixedBytes},
	{"GSHMEM_SYNC_LINE", line},
	{"GSHMEM_TEAM_SYNC_BYTES", teamSyncBytes},
	{"GSHMEM_CORE_SYNC_BYTES", coreSyncBytes},
	{"GSHMEM_TEAM_STOP_BYTES", teamStopBytes},
	{"GSHMEM_TOPO_MTE", topoMTE},
	{"sizeof(gshmem_device_state_t)", stBytes},
	{"sizeof(gshmem_ub_config_t)", ubBytes},
	{"sizeof(gshmem_team_state_t)", tmBytes},
	{"offsetof(gshmem_device_state_t, version)", stVersion},
	{"offsetof(gshmem_device_state_t, mype)", stMe},
	{"offsetof(gshmem_device_state_t, npes)", stN},
	{"offsetof(gshmem_device_state_t, heap_base)", stHeapBase},
	{"offsetof(gshmem_device_state_t, p2p_device_heap_base)", stPeers},
	{"offsetof(gshmem_device_state_t, host_heap_base)", stHostBase},
	{"offsetof(gshmem_device_state_t, p2p_host_heap_base)", stHostPeers},
	{"offsetof(gshmem_device_state_t, host_heap_size)", stHostSize},
	{"offsetof(gshmem_device_state_t, host_heap_address)", stHostAddress},
	{"offsetof(gshmem_device_state_t, topo_list)", stTopo},
	{"offsetof(gshmem_device_state_t, heap_size)", stHeapSize},
	{"offsetof(gshmem_device_state_t, team_pools)", stTeams},
	{"offsetof(gshmem_device_state_t, sync_pool)", stSyncPool},
	{"offsetof(gshmem_device_state_t, sync_counter)", stSyncCounter},
	{"offsetof(gshmem_device_state_t, core_sync_pool)", stCoreSyncPool},
	{"offsetof(gshmem_device_state_t, core_sync_counter)", stCoreSyncCounter},
	{"offsetof(gshmem_device_state_t, is_initialized)", stInitialized},
	{"offsetof(gshmem_device_state_t, is_created)", stCreated},
	{"offsetof(gshmem_device_state_t, mte_config)", stMTE},
	{"offsetof(gshmem_device_state_t, udma_config)", stMTE + 3*ubBytes},
	{"offsetof(gshmem_device_state_t, magic)", stMagic},
	{"offsetof(gshmem_device_state_t, abort_addr)", stAbort},
	{"offsetof(gshmem_ub_config_t, ub)", ubAt},
	{"offsetof(gshmem_ub_config_t, ub_size)", ubSize},
	{"offsetof(gshmem_ub_config_t, sync_id)", ubEvent},
	{"offsetof(gshmem_team_state_t, mype)", tmMe},
	{"offsetof(gshmem_team_state_t, start)", tmStart},
	{"offsetof(gshmem_team_state_t, stride)", tmStride},
	{"offsetof(gshmem_team_state_t, size)", tmN},
	{"offsetof(gshmem_team_state_t, team_idx)", tmIndex},
	{"offsetof(gshmem_team_state_t, core_sync)", tmCoreSync},
	{"offsetof(gshmem_team_state_t, stop)", tmStop},
	{"offsetof(gshmem_team_state_t, pe_mapping)", tmMapping},
}

func TestLayoutIsTheHeaders(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	path, err := filepath.Abs(header)
	require.NoError(t, err)
	var program strings.Builder
	fmt.Fprintf(&program, "#include %q\n#include <stdio.h>\nint main(void) {\n", path)
	for _, n := range numbers {
		fmt.Fprintf(&program, "printf(\"%%llu\\n\", (unsigned long long)(%s));\n", n.c)
	}
	program.WriteString("return 0; }\n")
	source, binary := filepath.Join(t.TempDir(), "layout.c"), filepath.Join(t.TempDir(), "layout")
	require.NoError(t, os.WriteFile(source, []byte(program.String()), 0o600))
	out, err := exec.Command(cc, "-o", binary, source).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command(binary).Output()
	require.NoError(t, err)
	for i, text := range strings.Fields(string(out)) {
		assert.Equal(t, text, fmt.Sprint(numbers[i].here), numbers[i].c)
	}
	assert.Len(t, strings.Fields(string(out)), len(numbers))
}
