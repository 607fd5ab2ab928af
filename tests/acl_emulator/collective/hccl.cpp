// libhccl.so: the one function torch_npu needs before anybody uses backend hccl, and a repair that lets CUDA
// builds of torch 2.14 import torch_npu 2.14.
//
// Both libraries register the allocator options below, and the second to come throws while it is being loaded.
// Those of CUDA are taken out first; without a CUDA device nobody reads them.
#include <dlfcn.h>

#include <string>
#include <unordered_set>

namespace {

__attribute__((constructor)) void forget_cuda_keys() {
    void* c10 = dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
    if (!c10) return;
    using Keys = std::unordered_set<std::string>& (*)();
    auto keys = reinterpret_cast<Keys>(
        dlsym(c10, "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig14getMutableKeysB5cxx11Ev"));
    if (!keys) return;
    for (const char* key : {"pinned_reserve_segment_size_mb", "per_process_memory_fraction"}) keys().erase(key);
}

}  // namespace

extern "C" int HcclSetConfig(int, long) { return 0; }
