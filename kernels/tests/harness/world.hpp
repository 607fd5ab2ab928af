// world.hpp: N PEs in one process for kernel tests.
//
// Every PE sees every heap at another device address, none of which the host can read, so an
// address that was not translated faults. Buffers have gaps of canaries, and a kernel that touches
// a byte outside them is reported. A Stream runs kernels and host steps per PE in order, each PE at
// its own pace, as streams do: so a kernel that needs a barrier at its start or end shows it.
#ifndef KERNEL_TESTS_WORLD_HPP
#define KERNEL_TESTS_WORLD_HPP

#include "../../cpu_model/launch.h"
#include "device/shmem_state.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace km {
struct Fault; // cpu_model/src/fault.hpp
}

struct Config {
    int pes = 1;
    uint32_t blocks = 1;
    uint32_t schedule = KM_IN_ORDER;
    uint64_t seed = 0;
    std::string text() const;
};

// A failed expectation; carries the text.
struct Failure {
    std::string text;
};
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

class World {
public:
    explicit World(const Config& c);
    ~World();
    World(const World&) = delete;

    const Config config;
    int n() const { return config.pes; }

    // The same offset on every PE; `align` plus `skew` bytes, so that odd addresses are tested.
    uint64_t symmetric(uint64_t bytes, uint64_t align = 64, uint64_t skew = 0);
    uint64_t local(uint64_t bytes, uint64_t align = 64, uint64_t skew = 0); // the same in every PE's arena

    uint64_t sym(int pe, uint64_t offset) const;    // device address PE `pe` uses for its own copy
    uint64_t loc(int pe, uint64_t offset) const;
    uint64_t host_sym(int pe, uint64_t offset) const; // the same memory, as an address of the host-side heap
    uint64_t cpu_sym(int pe, uint64_t offset) const;  // and as the CPU's, which no core can follow
    uint8_t* sym_host(int pe, uint64_t offset) const;
    uint8_t* loc_host(int pe, uint64_t offset) const;
    template <typename T> T* sym_as(int pe, uint64_t offset) const { return reinterpret_cast<T*>(sym_host(pe, offset)); }
    template <typename T> T* loc_as(int pe, uint64_t offset) const { return reinterpret_cast<T*>(loc_host(pe, offset)); }

    // Makes team `index` of these world PEs; the others know it as one they are not in.
    void team(int index, const std::vector<int>& members);
    // Gives a team stop words, on every PE, and says where: 4 bytes on is the one of waits for signals, a line on is what cores answer.
    uint64_t stop_words(int team);
    // Gives every PE queues for the engines in `topology` (GSHMEM_TOPO_*), 4 entries each, and sets
    // the topology. Without `mapped`, other PEs' heaps cannot be reached by loads and stores.
    void queues(uint8_t topology, bool mapped);
    // Entries that PE's engine of the topology bit has finished since queues().
    uint64_t carried(int pe, uint8_t engine) const;
    uint64_t state(int pe) const;
    gshmem_device_state_t& state_of(int pe) const { return *loc_as<gshmem_device_state_t>(pe, 0); }
    void set_abort(int pe, int32_t value);
    void set_word(int pe, uint64_t local, int32_t value); // of local memory, while kernels run
    const km_device_t* device(int pe) const;
    void check_canaries() const;

    struct Pe;

private:
    void fill_state(int pe);
    void publish(); // regions and extents after an allocation
    struct Block {
        uint64_t offset, bytes;
    };
    struct Area { // the same on every PE: the heaps, or the arenas
        const char* name;
        uint8_t* Pe::*memory;
        uint64_t first, next; // where buffers begin; where the next may
        std::vector<Block> blocks;
    };
    uint64_t take(Area& area, uint64_t bytes, uint64_t align, uint64_t skew);
    void check_area(const Area& area, int pe) const;
    std::vector<std::unique_ptr<Pe>> pes_;
    Area heaps_, arenas_;
};

using Args = std::vector<uint64_t>; // without the state, which is added

// What one PE does, step by step; the same list on all PEs of `members` (all when empty).
class Stream {
public:
    explicit Stream(World& w) : world_(w) {}
    void kernel(const std::string& name, std::function<Args(int pe)> args);
    void host(std::function<void(int pe)> step);
    void run();                                  // throws Failure
    void run_with(km::Fault& fault);             // the same, with something going wrong
    void run_expecting(const std::string& rule); // at least this rule must be reported

private:
    friend void run_stream(const void*);
    struct Step {
        std::string kernel;
        std::function<Args(int)> args;
        std::function<void(int)> host;
    };
    int32_t launch(km::Fault* fault);
    void judge(int32_t rc); // throws Failure
    World& world_;
    std::vector<Step> steps_;
    std::string failure_;
};

// A value that differs for every (pe, round, index).
uint64_t pattern(int pe, int round, uint64_t index);
void fill_bytes(uint8_t* p, uint64_t bytes, int pe, int round, uint64_t from = 0);
void expect_bytes(const uint8_t* p, uint64_t bytes, int pe, int round, const char* what, uint64_t from = 0);

struct Test {
    const char* name;
    void (*run)(const Config&, bool full);
};
std::vector<Test>& tests();
struct AddTest {
    AddTest(const char* name, void (*run)(const Config&, bool)) { tests().push_back({name, run}); }
};
// A test body gets a Config `c` and `full`; it is run for every configuration of the matrix.
#define KERNEL_TEST(name)                                   \
    static void test_##name(const Config& c, bool full);    \
    static AddTest add_##name(#name, test_##name);          \
    static void test_##name([[maybe_unused]] const Config& c, [[maybe_unused]] bool full)

#endif
