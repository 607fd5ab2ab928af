// test_abort.cpp: a peer that never comes. Each kernel that waits must end when the host sets the
// abort word, within the time bound, and only then.
#include "harness/world.hpp"
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace {

struct Wait {
    const char* kernel;
    std::function<Args(World&)> args;
    bool sends_first = false; // parts of the result leave before the first wait, into scratch
};

// PE 0 of two launches alone; another thread aborts after a while.
void run_alone(const Config& c, const Wait& k)
{
    Config two = c;
    two.pes = 2;
    World w(two);
    const uint64_t buffers = w.symmetric(1 << 20);
    fill_bytes(w.sym_host(1, buffers), 1 << 20, 1, 0);
    const int32_t move[4] = {0, 1, 0, 0}; // for kv_shuffle and moe_dispatch: something to send
    std::memcpy(w.sym_host(0, 32768 + 131072), move, sizeof move);
    Args a = k.args(w);
    a.insert(a.begin(), w.state(0));
    std::atomic<bool> aborted{false};
    std::thread host([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        aborted = true;
        w.set_abort(0, 1);
    });
    const auto begin = std::chrono::steady_clock::now();
    const int32_t rc = km_launch(k.kernel, c.blocks, a.data(), a.size() * 8, w.device(0));
    const bool early = !aborted;
    host.join();
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (early) fail("%s returned before the abort", k.kernel);
    if (rc != KM_OK) fail("%s: %s", k.kernel, km_last_report());
    if (!k.sends_first) expect_bytes(w.sym_host(1, buffers), 1 << 20, 1, 0, "the peer's memory after an aborted kernel");
    if (s > 20.0) fail("%s needed %.2f s to notice the abort", k.kernel, s); // microseconds, but on a crowded machine
}

} // namespace

KERNEL_TEST(abort_ends_every_wait)
{
    if (c.pes != 2 || c.schedule != KM_LAZY) return;
    const auto at = [](World& w, uint64_t off) { return w.sym(0, 32768 + off); };
    const Wait waits[] = {
        {"gshmem_k_signal_wait", [&](World& w) { return Args{at(w, 0), 0, 77, 0}; }},
        {"gshmem_k_wait", [&](World& w) { return Args{at(w, 0), 9, 0, 77}; }},
        {"gshmem_k_barrier", [&](World&) { return Args{0}; }},
        {"gshmem_k_broadcast", [&](World& w) { return Args{0, at(w, 0), at(w, 65536), 1000, 0}; }},
        {"gshmem_k_allgather", [&](World& w) { return Args{0, at(w, 0), at(w, 65536), 1000}; }},
        {"gshmem_k_all_to_all", [&](World& w) { return Args{0, at(w, 0), at(w, 65536), 1000}; }},
        {"gshmem_k_reduce_scatter", [&](World& w) { return Args{0, at(w, 0), at(w, 65536), 100, 0, 0}; }},
        {"gshmem_k_allreduce_one_shot", [&](World& w) { return Args{0, at(w, 0), at(w, 65536), 100, 0, 0}; }},
        {"gshmem_k_allreduce_two_shot", [&](World& w) { return Args{0, at(w, 0), at(w, 65536), 100, 0, 0}; }},
        {"gshmem_k_kv_shuffle", [&](World& w) { return Args{0, at(w, 0), at(w, 65536), at(w, 131072), 1, 64}; }},
        {"gshmem_k_moe_dispatch", [&](World& w) { return Args{0, at(w, 0), at(w, 65536), at(w, 70000), at(w, 80000), at(w, 90000), at(w, 100000), at(w, 131072), 2, 2, 64, 1}; }},
        {"gshmem_k_moe_combine", [&](World& w) { return Args{0, at(w, 0), at(w, 65536), at(w, 70000), at(w, 80000), at(w, 90000), 2, 2, 16, 2, 0}; }},
        {"gshmem_k_matmul_allreduce", [&](World& w) { return Args{0, at(w, 0), at(w, 65536), at(w, 90000), at(w, 131072), at(w, 180032), 64, 64, 8, 1}; }, true},
    };
    for (const Wait& k : waits) run_alone(c, k);
}

// The peers take part in the first of two barriers only: what follows the second must not happen.
KERNEL_TEST(abort_in_the_middle)
{
    if (c.pes != 3 || c.schedule != KM_LAZY) return;
    World w(c);
    const uint64_t bytes = 70000, dst = w.symmetric(bytes), src = w.symmetric(bytes);
    for (int pe = 0; pe < 3; pe++) fill_bytes(w.sym_host(pe, dst), bytes, pe, 0);
    std::vector<std::thread> peers;
    for (int pe : {1, 2})
        peers.emplace_back([&w, pe] {
            const uint64_t args[2] = {w.state(pe), 0};
            km_launch("gshmem_k_barrier", w.config.blocks, args, sizeof args, w.device(pe));
        });
    std::thread host([&] {
        for (std::thread& t : peers) t.join();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        w.set_abort(0, 1);
    });
    const Args a{w.state(0), 0, w.sym(0, dst), w.sym(0, src), bytes, 1};
    const int32_t rc = km_launch("gshmem_k_broadcast", c.blocks, a.data(), a.size() * 8, w.device(0));
    host.join();
    if (rc != KM_OK) fail("broadcast: %s", km_last_report());
    for (int pe = 0; pe < 3; pe++) expect_bytes(w.sym_host(pe, dst), bytes, pe, 0, "memory after an abort between two barriers");
}
