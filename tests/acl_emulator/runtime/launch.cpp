// Kernels: binaries, functions, arguments, and launching into the CPU model of Ascend C.
//
// The model (kernels/cpu_model/launch.h) is a shared library that is opened at the first use: the binary that
// the program loads, when that is such a library, otherwise the one that ACLEMU_KERNELS names.
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "../../../kernels/cpu_model/launch.h"
#include "device.h"
#include "entry.h"
#include "memory.h"
#include "profile.h"
#include "stream.h"

namespace emu {
namespace {

// Model is the kernel library's interface, found by name.
struct Model {
    decltype(&km_launch) launch = nullptr;
    decltype(&km_last_report) last_report = nullptr;
    decltype(&km_kernel_args_size) args_size = nullptr;

    bool open(const char* path) {
        void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
        if (!library) return false;
        launch = reinterpret_cast<decltype(launch)>(dlsym(library, "km_launch"));
        last_report = reinterpret_cast<decltype(last_report)>(dlsym(library, "km_last_report"));
        args_size = reinterpret_cast<decltype(args_size)>(dlsym(library, "km_kernel_args_size"));
        return launch && last_report && args_size;
    }
};

struct Binary {
    Model model;
};

struct Function {
    std::shared_ptr<Binary> binary;
    std::string name;
    size_t args_size;
};

struct Args {
    std::vector<uint8_t> bytes;
    bool finalized = false;
};

// Handles that are live; guarded by mutex.
struct Registry {
    std::mutex mutex;
    std::map<const void*, std::shared_ptr<Binary>> binaries;
    std::map<const void*, std::shared_ptr<Function>> functions;
    std::map<const void*, std::shared_ptr<Args>> args;
};

Registry& registry() {
    static Registry& one = *new Registry;
    return one;
}

template <typename T>
std::shared_ptr<T> live(const std::map<const void*, std::shared_ptr<T>>& all, const void* handle) {
    std::lock_guard<std::mutex> lock(registry().mutex);
    auto at = all.find(handle);
    return at == all.end() ? nullptr : at->second;
}

int load(const char* path, aclrtBinHandle* out) {
    auto binary = std::make_shared<Binary>();
    if (!binary->model.open(path) && !binary->model.open(settings().kernels)) {
        return breach(Rule::binary_load, "neither %s nor ACLEMU_KERNELS=%s is a CPU-model kernel library: %s",
                      path ? path : "the data", settings().kernels ? settings().kernels : "(unset)", dlerror());
    }
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().binaries[binary.get()] = binary;
    *out = binary.get();
    return 0;
}

// translate gives kernels the accessible alias of what the device may touch, and nothing else.
void* translate(void*, uint64_t address, uint64_t bytes) {
    Space& space = Space::get();
    std::shared_lock<std::shared_mutex> lock(space.mutex);
    for (uint64_t at = address;;) {
        Region* r = space.find(at);
        if (!r || !r->device_access || r->kind == Kind::pinned || r->kind == Kind::registered) return nullptr;
        at = r->base + r->size;
        if (r->kind == Kind::window) return address + bytes <= at ? reinterpret_cast<void*>(r->twin + (address - r->base)) : nullptr;
        if (at >= address + bytes) return shadow_of(address);
    }
}

int run(Stream& stream, const Function& function, uint32_t blocks, const std::vector<uint8_t>& args) {
    km_device_t device{};
    device.size = sizeof device;
    device.schedule = settings().late ? KM_LAZY : KM_IN_ORDER;
    device.seed = settings().seed;
    device.me = stream.device;
    device.n = static_cast<int32_t>(settings().devices);
    if (args.size() >= 8) memcpy(&device.state, args.data(), 8);
    device.translate = translate;
    int32_t result = function.binary->model.launch(function.name.c_str(), blocks, args.data(), args.size(), &device);
    if (result == KM_OK) return 0;
    const char* broken = function.binary->model.last_report();
    stream.set_failure_text("kernel " + function.name + " failed (" + std::to_string(result) + "): " +
                            (broken ? broken : ""));
    return ACL_ERROR_RT_VECTOR_CORE_EXCEPTION;
}

int check_launch(uint32_t blocks, const aclrtLaunchKernelCfg* config) {
    bool batch = false;
    for (size_t i = 0; config && i < config->numAttrs; i++) {
        const aclrtLaunchKernelAttr& a = config->attrs[i];
        if (a.id == ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE) batch = a.value.schemMode == 1;
    }
    int64_t cores = settings().profile.vector_cores;
    if (blocks && (!batch || blocks <= cores)) return 0;
    return breach(Rule::kernel_blocks, "%u blocks, %ld vector cores%s", blocks, static_cast<long>(cores),
                  batch ? ", batch mode" : "");
}

int launch(const void* handle, uint32_t blocks, const aclrtLaunchKernelCfg* config, std::vector<uint8_t> args,
           aclrtStream stream_handle) {
    auto function = live(registry().functions, handle);
    if (!function) return breach(Rule::binary_handle, "function %p", handle);
    if (int code = check_launch(blocks, config)) return code;
    if (args.size() != function->args_size) {
        return breach(Rule::kernel_args, "%s takes %zu bytes of arguments, got %zu", function->name.c_str(),
                      function->args_size, args.size());
    }
    int code = 0;
    auto stream = stream_of(stream_handle, &code);
    if (!stream) return code;
    stream->enqueue("aclrtLaunchKernel", [function, blocks, args, s = stream.get()] {
        return run(*s, *function, blocks, args);
    });
    return 0;
}

// device_args reads an argument block that the caller has put into device memory.
int device_args(const void* data, size_t size, std::vector<uint8_t>* out) {
    Space& space = Space::get();
    std::shared_lock<std::shared_mutex> lock(space.mutex);
    uint64_t at = reinterpret_cast<uint64_t>(data);
    Region* r = space.find(at);
    if (!r || r->device < 0 || at + size > r->base + r->size) {
        return breach(Rule::kernel_args, "argument block %p + %zu is not device memory", data, size);
    }
    const uint8_t* bytes = static_cast<const uint8_t*>(shadow_of(at));
    out->assign(bytes, bytes + size);
    return 0;
}

}  // namespace
}  // namespace emu

using namespace emu;

aclError aclrtBinaryLoadFromFile(const char* path, aclrtBinaryLoadOptions*, aclrtBinHandle* out) {
    ENTER(context);
    if (!path || !out) return breach(Rule::null_out, "binPath or binHandle is null");
    if (*path != '/' || access(path, R_OK)) return breach(Rule::binary_load, "%s", path);
    return load(path, out);
}

aclError aclrtBinaryLoadFromData(const void* data, size_t length, const aclrtBinaryLoadOptions*, aclrtBinHandle* out) {
    ENTER(context);
    if (!data || !out) return breach(Rule::null_out, "data or binHandle is null");
    if (!length) return breach(Rule::binary_load, "length 0");
    return load(nullptr, out);
}

aclError aclrtBinaryUnLoad(aclrtBinHandle handle) {
    ENTER(context);
    std::lock_guard<std::mutex> lock(registry().mutex);
    if (!registry().binaries.erase(handle)) return breach(Rule::binary_handle, "binary %p", handle);
    for (auto at = registry().functions.begin(); at != registry().functions.end();) {
        at = at->second->binary.get() == handle ? registry().functions.erase(at) : std::next(at);
    }
    return ACL_SUCCESS;
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle handle, const char* name, aclrtFuncHandle* out) {
    ENTER(context);
    if (!name || !out) return breach(Rule::null_out, "kernelName or funcHandle is null");
    auto binary = live(registry().binaries, handle);
    if (!binary) return breach(Rule::binary_handle, "binary %p", handle);
    int64_t size = binary->model.args_size(name);
    if (size < 0) return breach(Rule::kernel_name, "%s", name);
    auto function = std::make_shared<Function>(Function{binary, name, static_cast<size_t>(size)});
    std::lock_guard<std::mutex> lock(registry().mutex);
    for (const auto& entry : registry().functions) {
        if (entry.second->binary == binary && entry.second->name == name) {
            *out = entry.second.get();
            return ACL_SUCCESS;
        }
    }
    registry().functions[function.get()] = function;
    *out = function.get();
    return ACL_SUCCESS;
}

aclError aclrtBinaryGetFunctionByEntry(aclrtBinHandle, uint64_t, aclrtFuncHandle*) {
    ENTER(context);
    return report(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "kernels of the CPU model have names, not entry numbers");
}

aclError aclrtBinaryGetGlobal(aclrtBinHandle, const char*, void**, size_t*) {
    ENTER(context);
    return report(ACL_ERROR_RT_SYMBOL_NOT_FOUND, "the CPU model has no global device symbols");
}

aclError aclrtFunctionGetBinary(const aclrtFuncHandle handle, aclrtBinHandle* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "binHandle is null");
    auto function = live(registry().functions, handle);
    if (!function) return breach(Rule::binary_handle, "function %p", handle);
    *out = function->binary.get();
    return ACL_SUCCESS;
}

aclError aclrtGetFunctionAddr(aclrtFuncHandle, void**, void**) {
    ENTER(context);
    return report(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "kernels of the CPU model have no device address");
}

aclError aclrtLaunchKernel(aclrtFuncHandle handle, uint32_t blocks, const void* data, size_t size, aclrtStream stream) {
    ENTER(context);
    std::vector<uint8_t> args;
    if (int code = device_args(data, size, &args)) return code;
    return launch(handle, blocks, nullptr, std::move(args), stream);
}

aclError aclrtLaunchKernelV2(aclrtFuncHandle handle, uint32_t blocks, const void* data, size_t size,
                             aclrtLaunchKernelCfg* config, aclrtStream stream) {
    ENTER(context);
    std::vector<uint8_t> args;
    if (int code = device_args(data, size, &args)) return code;
    return launch(handle, blocks, config, std::move(args), stream);
}

aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle handle, uint32_t blocks, aclrtStream stream,
                                       aclrtLaunchKernelCfg* config, void* host, size_t size, aclrtPlaceHolderInfo*,
                                       size_t place_holders) {
    ENTER(context);
    if (!host) return breach(Rule::null_out, "hostArgs is null");
    if (place_holders) return report(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "place holders are not emulated");
    if (in_arena(reinterpret_cast<uint64_t>(host))) return breach(Rule::kernel_args, "hostArgs %p is device memory", host);
    const uint8_t* bytes = static_cast<const uint8_t*>(host);
    return launch(handle, blocks, config, {bytes, bytes + size}, stream);
}

aclError aclrtLaunchKernelWithArgsArray(void* handle, uint32_t blocks, aclrtStream stream, aclrtLaunchKernelCfg* config,
                                        void** values) {
    ENTER(context);
    auto function = live(registry().functions, handle);
    if (!function) return breach(Rule::binary_handle, "function %p", handle);
    if (!values) return breach(Rule::null_out, "args is null");
    std::vector<uint8_t> args(function->args_size);
    for (size_t i = 0; i < args.size() / 8; i++) memcpy(&args[i * 8], values[i], 8);
    return launch(handle, blocks, config, std::move(args), stream);
}

aclError aclrtKernelArgsInit(aclrtFuncHandle handle, aclrtArgsHandle* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "argsHandle is null");
    if (!live(registry().functions, handle)) return breach(Rule::binary_handle, "function %p", handle);
    auto args = std::make_shared<Args>();
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().args[args.get()] = args;
    *out = args.get();
    return ACL_SUCCESS;
}

#define ARGS(variable, handle)                        \
    auto variable = live(registry().args, handle);    \
    if (!variable) return breach(Rule::binary_handle, "arguments %p", handle)

aclError aclrtKernelArgsAppend(aclrtArgsHandle handle, void* value, size_t size, aclrtParamHandle* out) {
    ENTER(context);
    ARGS(args, handle);
    if (!value || !out) return breach(Rule::null_out, "param or paramHandle is null");
    if (args->finalized) return breach(Rule::kernel_args, "append after finalize");
    size_t offset = args->bytes.size();
    args->bytes.resize(offset + (size + 7) / 8 * 8);
    memcpy(&args->bytes[offset], value, size);
    *out = reinterpret_cast<void*>(offset + 8);  // never null
    return ACL_SUCCESS;
}

aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle handle, aclrtParamHandle param, void* value, size_t size) {
    ENTER(context);
    ARGS(args, handle);
    if (!value) return breach(Rule::null_out, "param is null");
    size_t offset = reinterpret_cast<size_t>(param) - 8;
    if (offset >= args->bytes.size() || size > args->bytes.size() - offset) {
        return breach(Rule::binary_handle, "parameter %p of %zu bytes", param, size);
    }
    memcpy(&args->bytes[offset], value, size);
    return ACL_SUCCESS;
}

aclError aclrtKernelArgsFinalize(aclrtArgsHandle handle) {
    ENTER(context);
    ARGS(args, handle);
    args->finalized = true;
    return ACL_SUCCESS;
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle handle, uint32_t blocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg* config, aclrtArgsHandle args_handle, void*) {
    ENTER(context);
    ARGS(args, args_handle);
    if (!args->finalized) return breach(Rule::kernel_args, "the arguments are not finalized");
    return launch(handle, blocks, config, args->bytes, stream);
}

namespace {

int no_user_memory() {
    return report(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "not emulated; use aclrtKernelArgsInit and aclrtKernelArgsAppend");
}

}  // namespace

aclError aclrtKernelArgsInitByUserMem(aclrtFuncHandle, aclrtArgsHandle, void*, size_t) {
    ENTER(context);
    return no_user_memory();
}

aclError aclrtKernelArgsGetHandleMemSize(aclrtFuncHandle, size_t*) {
    ENTER(context);
    return no_user_memory();
}

aclError aclrtKernelArgsGetMemSize(aclrtFuncHandle, size_t, size_t*) {
    ENTER(context);
    return no_user_memory();
}

aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle, aclrtParamHandle*) {
    ENTER(context);
    return no_user_memory();
}

aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle, aclrtParamHandle, size_t, void**) {
    ENTER(context);
    return no_user_memory();
}
