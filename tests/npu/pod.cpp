// One PE of a pod: builds a symmetric heap with the virtual-memory calls, fills the device state, and runs the real
// kernels (under the CPU model) across processes. test_pod.py starts one process per PE and passes the handles around.
//   pod ME N KERNEL_LIBRARY      talks on stdin and stdout, one line at a time; exit 0 and "ok" when all was right
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "../../kernels/include/device/shmem_state.h"
#include "../acl_emulator/interface/acl.h"

namespace {

constexpr uint64_t kHeap = 16 << 20;
constexpr uint64_t kSyncPool = 8 << 20;  // offset of the sync pool in the heap

#define CALL(expression)                                                                          \
    do {                                                                                          \
        if (int code = (expression)) {                                                            \
            const char* text = aclGetRecentErrMsg();                                              \
            fprintf(stderr, "PE %d: %s gave %d: %s\n", me, #expression, code, text ? text : "");  \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

int me, n;

bool fabric() { return strstr(aclrtGetSocName(), "_93") != nullptr; }

// meet says a word and waits until every PE has; it gives what they said.
std::vector<std::string> meet(const std::string& word) {
    std::cout << word << std::endl;
    std::vector<std::string> all(static_cast<size_t>(n));
    for (auto& one : all) {
        if (!std::getline(std::cin, one)) exit(2);
    }
    return all;
}

std::string hex(const uint8_t* bytes, size_t size) {
    std::string text;
    char two[3];
    for (size_t i = 0; i < size; i++) text += (snprintf(two, sizeof two, "%02x", bytes[i]), two);
    return text;
}

void unhex(const std::string& text, uint8_t* bytes) {
    for (size_t i = 0; i + 1 < text.size(); i += 2) bytes[i / 2] = static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16));
}

// build_heap gives the address of each PE's heap in this process; its own is [me].
std::vector<uint64_t> build_heap() {
    std::vector<uint64_t> bases(static_cast<size_t>(n));
    for (auto& base : bases) {
        void* at = nullptr;
        CALL(aclrtReserveMemAddress(&at, kHeap, 0, nullptr, 1));
        base = reinterpret_cast<uint64_t>(at);
    }
    aclrtPhysicalMemProp prop{ACL_MEM_HANDLE_TYPE_NONE, ACL_MEM_ALLOCATION_TYPE_PINNED, ACL_HBM_MEM_HUGE,
                              {static_cast<uint32_t>(me), ACL_MEM_LOCATION_TYPE_DEVICE}, 0};
    auto at = [&](int pe) { return reinterpret_cast<void*>(bases[static_cast<size_t>(pe)]); };
    aclrtDrvMemHandle own;
    CALL(aclrtMallocPhysical(&own, kHeap, &prop, 0));
    CALL(aclrtMapMem(at(me), kHeap, 0, own, 0));
    CALL(aclrtMemset(at(me), kHeap, 0, kHeap));
    aclrtMemFabricHandle shared{};
    auto type = fabric() ? ACL_MEM_SHARE_HANDLE_TYPE_FABRIC : ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT;
    CALL(aclrtMemExportToShareableHandleV2(own, ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, type, &shared));
    auto all = meet(hex(shared.data, sizeof shared.data));
    for (int pe = 0; pe < n; pe++) {
        if (pe == me) continue;
        if (!fabric()) CALL(aclrtDeviceEnablePeerAccess(pe, 0));
        unhex(all[static_cast<size_t>(pe)], shared.data);
        aclrtDrvMemHandle imported;
        CALL(aclrtMemImportFromShareableHandleV2(&shared, type, 0, &imported));
        CALL(aclrtMapMem(at(pe), kHeap, 0, imported, 0));
    }
    meet("mapped");
    return bases;
}

uint64_t device_copy(const void* data, size_t size) {
    void* at = nullptr;
    CALL(aclrtMalloc(&at, size, ACL_MEM_MALLOC_HUGE_FIRST));
    CALL(aclrtMemcpy(at, size, data, size, ACL_MEMCPY_HOST_TO_DEVICE));
    return reinterpret_cast<uint64_t>(at);
}

uint64_t device_zeros(size_t size) {
    std::vector<uint8_t> zeros(size);
    return device_copy(zeros.data(), size);
}

uint64_t build_state(const std::vector<uint64_t>& bases) {
    auto team = std::make_unique<gshmem_team_state_t>();
    team->mype = me, team->stride = 1, team->size = n;
    for (int pe = 0; pe < n; pe++) team->pe_mapping[pe] = team->pe_mapping[GSHMEM_MAX_PES + pe] = pe;
    auto state = std::make_unique<gshmem_device_state_t>();
    state->version = 1, state->mype = me, state->npes = n;
    state->heap_base = bases[static_cast<size_t>(me)], state->heap_size = kHeap;
    state->p2p_device_heap_base = device_copy(bases.data(), bases.size() * 8);
    for (int pe = 0; pe < n; pe++) state->topo_list[pe] = GSHMEM_TOPO_MTE;
    state->team_pools[0] = device_copy(team.get(), sizeof *team);
    state->sync_pool = state->heap_base + kSyncPool;
    state->sync_counter = device_zeros(64 * GSHMEM_MAX_TEAMS);
    state->core_sync_pool = device_zeros(GSHMEM_CORE_SYNC_BYTES);
    state->core_sync_counter = device_zeros(64);
    state->is_initialized = state->is_created = 1;
    for (auto* config : {&state->mte_config, &state->sdma_config, &state->rdma_config, &state->udma_config}) {
        config->ub_size = 16 << 10;
    }
    state->magic = GSHMEM_STATE_MAGIC;
    state->abort_addr = device_zeros(64);
    return device_copy(state.get(), sizeof *state);
}

struct Launcher {
    aclrtBinHandle binary;
    aclrtStream stream;
    uint64_t state;

    void run(const char* name, uint32_t blocks, std::vector<uint64_t> args) {
        args.insert(args.begin(), state);
        aclrtFuncHandle function;
        CALL(aclrtBinaryGetFunction(binary, name, &function));
        aclrtLaunchKernelAttr batch{ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE, {}};
        batch.value.schemMode = 1;
        aclrtLaunchKernelCfg config{&batch, 1};
        CALL(aclrtLaunchKernelWithHostArgs(function, blocks, stream, &config, args.data(), args.size() * 8, nullptr, 0));
    }
};

uint8_t element(int pe, uint64_t i) { return static_cast<uint8_t>(pe * 37 + i * 11 + (i >> 8) + 1); }

std::vector<uint8_t> pattern(int pe, uint64_t size) {
    std::vector<uint8_t> bytes(size);
    for (uint64_t i = 0; i < size; i++) bytes[i] = element(pe, i);
    return bytes;
}

void expect(const char* what, uint64_t at, const std::vector<uint8_t>& bytes) {
    std::vector<uint8_t> seen(bytes.size());
    CALL(aclrtMemcpy(seen.data(), seen.size(), reinterpret_cast<void*>(at), seen.size(), ACL_MEMCPY_DEVICE_TO_HOST));
    for (size_t i = 0; i < seen.size(); i++) {
        if (seen[i] == bytes[i]) continue;
        fprintf(stderr, "PE %d: %s: byte %zu is %u, should be %u\n", me, what, i, seen[i], bytes[i]);
        exit(1);
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 4) return 2;
    me = atoi(arguments[1]), n = atoi(arguments[2]);
    CALL(aclInit(nullptr));
    CALL(aclrtSetDevice(me));
    auto bases = build_heap();
    Launcher kernels{};
    kernels.state = build_state(bases);
    CALL(aclrtCreateStream(&kernels.stream));
    CALL(aclrtBinaryLoadFromFile(arguments[3], nullptr, &kernels.binary));
    meet("ready");
    uint64_t heap = bases[static_cast<size_t>(me)];
    const int next = (me + 1) % n, before = (me + n - 1) % n;
    for (uint64_t size : {1ull, 31ull, 4099ull, 100003ull}) {
        uint64_t source = device_copy(pattern(me, size).data(), size), target = heap + 4096, gathered = heap + (1 << 20);
        uint64_t fetched = device_zeros(size);
        auto padded = std::vector<uint8_t>(size + 2);
        kernels.run("gshmem_k_barrier", 1, {0});
        kernels.run("gshmem_k_put", 2, {target + 1, source, size, static_cast<uint64_t>(next)});
        kernels.run("gshmem_k_barrier", 2, {0});
        kernels.run("gshmem_k_get", 3, {fetched, target + 1, size, static_cast<uint64_t>(next)});
        kernels.run("gshmem_k_allgather", 4, {0, gathered, source, size});
        CALL(aclrtSynchronizeStreamWithTimeout(kernels.stream, 120000));
        auto came = pattern(before, size);
        std::copy(came.begin(), came.end(), padded.begin() + 1);
        expect("put, with the bytes around it", target, padded);
        expect("get", fetched, pattern(me, size));
        for (int pe = 0; pe < n; pe++) expect("allgather", gathered + static_cast<uint64_t>(pe) * size, pattern(pe, size));
        meet("checked");
        CALL(aclrtMemset(reinterpret_cast<void*>(target), size + 2, 0, size + 2));
        meet("cleared");
    }
    std::cout << "ok" << std::endl;
    return 0;
}
