// launch.cpp: the functions of launch.h, the kernel registry and the reports.
#include "launch.hpp"
#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace km {

namespace {

struct Registry {
    std::mutex lock;
    std::map<std::string, KernelEntry> kernels; // guarded by lock
};
Registry& registry()
{
    static Registry r;
    return r;
}

thread_local std::string last_report;
constexpr uint32_t MAX_REPORTS = 20; // of one launch; more are counted only

std::string where_text(Where w)
{
    const char* slash = std::strrchr(w.file, '/');
    return std::string(slash ? slash + 1 : w.file) + ":" + std::to_string(w.line);
}

void add(const char* rule, Where w, const char* format, va_list args)
{
    char text[512];
    std::vsnprintf(text, sizeof text, format, args);
    Launch& l = *current_launch();
    const Core& c = core();
    l.add_report(c.pe, rule, where_text(w) + ": " + name_of(c) + ": " + text);
}

} // namespace

std::string name_of(const Core& c)
{
    return "PE " + std::to_string(c.pe->dev->me) + " block " + std::to_string(c.block) + " of " + c.pe->launch->kernel_name;
}

void Launch::add_report(const Pe* pe, const char* rule, const std::string& text)
{
    if (++report_count > MAX_REPORTS) return;
    reports += std::string(rule) + ": " + text + "\n";
    if (pe->dev->report) pe->dev->report(pe->dev->report_ctx, rule, text.c_str());
}

void report(const char* rule, Where w, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    add(rule, w, format, args);
    va_end(args);
}

void stop(const char* rule, Where w, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    add(rule, w, format, args);
    va_end(args);
    current_launch()->killed = true; // the other blocks would wait for this one for ever
    throw KernelStop{};
}

int64_t block_idx() { return core().block; }
int64_t block_num() { return core().blocks; }
uint64_t system_cycle() { return current_launch()->progress; }
void* core_context() { return core().context; }

// Also used by the tests, to run kernels one after another in one launch.
bool find_kernel(const char* name, KernelEntry& out)
{
    Registry& r = registry();
    std::lock_guard<std::mutex> g(r.lock);
    auto it = r.kernels.find(name ? name : "");
    if (it == r.kernels.end()) return false;
    out = it->second;
    return true;
}

namespace {

void add_pe(Launch& l, const km_device_t* dev, const void* args, uint32_t blocks)
{
    l.pes.push_back(std::make_unique<Pe>());
    Pe& pe = *l.pes.back();
    pe.dev = dev;
    pe.args = args;
    pe.launch = &l;
    for (uint32_t b = 0; b < blocks; b++) {
        l.fibers.push_back(std::make_unique<Fiber>());
        Core& c = l.fibers.back()->core;
        c.pe = &pe;
        c.block = b;
        c.blocks = blocks;
        c.random.s = dev->seed * 1000003u + static_cast<uint64_t>(dev->me) * 64 + b;
        c.lazy = dev->schedule == KM_LAZY;
        static const uint8_t favours[] = {0, MTE2, MTE3, V};
        c.favour = favours[dev->seed % 4];
        c.ub.assign(UB_BYTES, static_cast<uint8_t>(0xfe + (dev->seed & 1))); // NaN or huge as float
    }
}

int32_t launch(const char* name, uint32_t blocks, const void* const* args, size_t args_size,
               const km_device_t* const* devs, uint32_t count, bool group, Fault* fault)
{
    last_report.clear();
    KernelEntry entry;
    if (!find_kernel(name, entry)) {
        last_report = "unknown-kernel: no kernel named " + std::string(name ? name : "(null)") + " in this library\n";
        return KM_UNKNOWN_KERNEL;
    }
    bool good = blocks >= 1 && blocks <= MAX_BLOCKS && args && devs && count && args_size == entry.args_size;
    for (uint32_t i = 0; good && i < count; i++) good = devs[i] && args[i] && devs[i]->size == sizeof(km_device_t);
    if (!good) {
        last_report = "bad-argument: " + std::string(name) + " takes " + std::to_string(entry.args_size) + " bytes of arguments, 1..48 blocks and km_device_t of this ABI\n";
        return KM_BAD_ARGUMENT;
    }
    Launch l;
    l.kernel_name = name;
    l.kernel = entry;
    l.closed = group;
    l.fault = fault;
    l.random.s = devs[0]->seed ^ 0x5eed;
    l.policy = static_cast<uint32_t>(devs[0]->seed % 5);
    l.victim = l.random.below(1u << 16);
    for (uint32_t i = 0; i < count; i++) add_pe(l, devs[i], args[i], blocks);
    l.run();
    if (l.report_count > MAX_REPORTS) l.reports += "(" + std::to_string(l.report_count - MAX_REPORTS) + " more)\n";
    last_report = l.reports;
    if (l.deadlock) return KM_DEADLOCK;
    return l.report_count ? KM_RULE_BROKEN : KM_OK;
}

} // namespace

int32_t launch_group(const char* kernel, uint32_t blocks, const void* const* args, size_t args_size, const km_device_t* const* devs,
                     uint32_t count, Fault& fault)
{
    return launch(kernel, blocks, args, args_size, devs, count, true, &fault);
}

} // namespace km

using namespace km;

extern "C" {

int32_t km_launch(const char* kernel_name, uint32_t block_dim, const void* args, size_t args_size, const km_device_t* dev)
{
    return launch(kernel_name, block_dim, &args, args_size, &dev, 1, false, nullptr);
}

int32_t km_launch_group(const char* kernel_name, uint32_t block_dim, const void* const* args, size_t args_size,
                        const km_device_t* const* devs, uint32_t count)
{
    return launch(kernel_name, block_dim, args, args_size, devs, count, true, nullptr);
}

const char* km_last_report(void) { return last_report.c_str(); }
uint32_t km_abi_version(void) { return KM_ABI_VERSION; }
uint32_t km_npu_arch(void) { return __NPU_ARCH__; }

uint32_t km_kernel_count(void)
{
    Registry& r = registry();
    std::lock_guard<std::mutex> g(r.lock);
    return static_cast<uint32_t>(r.kernels.size());
}

const char* km_kernel_name(uint32_t index)
{
    Registry& r = registry();
    std::lock_guard<std::mutex> g(r.lock);
    for (auto& [name, entry] : r.kernels)
        if (index-- == 0) return name.c_str();
    return nullptr;
}

int64_t km_kernel_args_size(const char* name)
{
    KernelEntry e;
    return find_kernel(name, e) ? static_cast<int64_t>(e.args_size) : -1;
}

int32_t km_register_kernel(const char* name, void (*fn)(const void* args), size_t args_size)
{
    Registry& r = registry();
    std::lock_guard<std::mutex> g(r.lock);
    if (!name || !fn) return KM_BAD_ARGUMENT;
    return r.kernels.emplace(name, KernelEntry{fn, args_size}).second ? KM_OK : KM_BAD_ARGUMENT;
}

} // extern "C"
