// launch.hpp: a running launch: PEs, their blocks as fibers, and the scheduler.
#ifndef KM_LAUNCH_HPP
#define KM_LAUNCH_HPP

#include "core.hpp"
#include "fault.hpp"
#include <csetjmp>
#include <map>
#include <memory>
#include <ucontext.h>

namespace km {

struct KernelEntry {
    void (*run)(const void* args);
    size_t args_size;
};

bool find_kernel(const char* name, KernelEntry& out); // launch.cpp

struct Launch;

class Nic;

struct Pe {
    Pe();
    ~Pe();
    const km_device_t* dev = nullptr;
    const void* args = nullptr;
    Launch* launch = nullptr;
    uint32_t sync_arrived = 0; // SyncAll
    uint64_t sync_generation = 0;
    bool dead = false; // its blocks end at their next access

    uint8_t* host(uint64_t addr, uint64_t bytes, const char* what, Where w); // stops when unknown
    uint8_t* try_host(uint64_t addr, uint64_t bytes) const;
    bool allowed(uint64_t addr, uint64_t bytes) const; // by the extents, when there are any
    std::unique_ptr<Nic> nic; // made when the launch starts
};

// A block. It runs on its own stack and gives up the processor only inside the model.
struct Fiber {
    Core core;
    Launch* launch = nullptr;
    void* stack = nullptr;
    ucontext_t start{};
    jmp_buf resume{};
    bool started = false, done = false;
};

struct KernelStop {}; // thrown through a kernel that cannot go on

struct Launch {
    const char* kernel_name = "";
    KernelEntry kernel{};
    std::vector<std::unique_ptr<Pe>> pes;
    std::vector<std::unique_ptr<Fiber>> fibers;
    Random random{0};
    bool closed = false;   // all peers are in this launch, so a deadlock can be recognised
    bool killed = false;   // every fiber is to stop at its next yield
    bool deadlock = false;
    bool engines = false; // some PE has queues
    uint32_t policy = 0, victim = 0, turn = 0;
    uint64_t progress = 1; // counts changes that somebody may be waiting for
    Fault* fault = nullptr; // what goes wrong in this run, or null
    Fiber* current = nullptr;
    ucontext_t home{};
    jmp_buf home_jump{};
    std::string reports;
    uint32_t report_count = 0;

    void run();
    void resume(Fiber& f);
    Fiber* pick();
    bool starved(const Fiber& f) const;
    bool serve_engines(); // one entry of some PE's queues; false when all are empty
    void step();          // one access to memory: the fault's clock
    void host_acts(bool stuck);
    void nobody_can_run(uint32_t& rounds);
    void report_deadlock();
    void add_report(const Pe* pe, const char* rule, const std::string& text);
};

Launch* current_launch();
void yield_point(bool waiting, Where w); // lets other blocks run; waiting: this one read a word again
void made_progress();

constexpr uint64_t FIXED_STATE_ADDR = 0x17FFBE000000ull; // GSHMEM_FIXED_STATE_ADDR
constexpr uint64_t FIXED_STATE_BYTES = 64 * 1024;

} // namespace km
#endif
