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

// How the host ends a wait: by the abort word, or by a stop word of the kernel's team, the only one then that is not another's.
enum Word { ABORT, STOP_TEAM, STOP_SIGNALS };

struct Ending {
    Word word;
    uint64_t at; // the word, in local memory
    void begin(World& w) const
    {
        if (word == ABORT) return;
        const uint64_t other = w.stop_words(1); // the words that this kernel does not look at are set from the start
        for (uint64_t i : {0, 4}) w.set_word(0, other + i, 1);
        w.set_word(0, word == STOP_TEAM ? at + 4 : at - 4, 1);
    }
    void come(World& w) const
    {
        if (word == ABORT) w.set_abort(0, 1);
        else w.set_word(0, at, 1);
    }
    // What the cores answered, a line behind the word: that one of them was stopped.
    void judge(World& w, const char* kernel) const
    {
        if (word == ABORT) return;
        for (uint64_t i : {0, 4}) {
            const uint64_t words = word == STOP_TEAM ? at : at - 4;
            const int32_t said = *w.loc_as<int32_t>(0, words + GSHMEM_SYNC_LINE + i);
            if (said != (words + i == at)) fail("%s: %d behind the stop word at %llu", kernel, said, static_cast<unsigned long long>(i));
        }
    }
};

// PE 0 of two launches alone; another thread ends its waits after a while.
void run_alone(const Config& c, const Wait& k, Word word)
{
    Config two = c;
    two.pes = 2;
    World w(two);
    w.team(1, {1, 0});
    const uint64_t buffers = w.symmetric(1 << 20), words = w.stop_words(0);
    const Ending ending{word, word == STOP_SIGNALS ? words + 4 : words};
    ending.begin(w);
    fill_bytes(w.sym_host(1, buffers), 1 << 20, 1, 0);
    const int32_t move[4] = {0, 1, 0, 0}; // for kv_shuffle and moe_dispatch: something to send
    std::memcpy(w.sym_host(0, 32768 + 131072), move, sizeof move);
    Args a = k.args(w);
    a.insert(a.begin(), w.state(0));
    std::atomic<bool> aborted{false};
    std::thread host([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        aborted = true;
        ending.come(w);
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
    ending.judge(w, k.kernel);
}

using Place = uint64_t (*)(World&, uint64_t);

std::vector<Wait> collectives(Place at)
{
    return {
        {"gshmem_k_barrier", [=](World&) { return Args{0}; }},
        {"gshmem_k_broadcast", [=](World& w) { return Args{0, at(w, 0), at(w, 65536), 1000, 0}; }},
        {"gshmem_k_allgather", [=](World& w) { return Args{0, at(w, 0), at(w, 65536), 1000}; }},
        {"gshmem_k_all_to_all", [=](World& w) { return Args{0, at(w, 0), at(w, 65536), 1000}; }},
        {"gshmem_k_reduce_scatter", [=](World& w) { return Args{0, at(w, 0), at(w, 65536), 100, 0, 0}; }},
        {"gshmem_k_allreduce_one_shot", [=](World& w) { return Args{0, at(w, 0), at(w, 65536), 100, 0, 0}; }},
        {"gshmem_k_allreduce_two_shot", [=](World& w) { return Args{0, at(w, 0), at(w, 65536), 100, 0, 0}; }},
        {"gshmem_k_kv_shuffle", [=](World& w) { return Args{0, at(w, 0), at(w, 65536), at(w, 131072), 1, 64}; }},
        {"gshmem_k_moe_dispatch", [=](World& w) { return Args{0, at(w, 0), at(w, 65536), at(w, 70000), at(w, 80000), at(w, 90000), at(w, 100000), at(w, 131072), 2, 2, 64, 1}; }},
        {"gshmem_k_moe_combine", [=](World& w) { return Args{0, at(w, 0), at(w, 65536), at(w, 70000), at(w, 80000), at(w, 90000), 2, 2, 16, 2, 0}; }},
        {"gshmem_k_matmul_allreduce", [=](World& w) { return Args{0, at(w, 0), at(w, 65536), at(w, 90000), at(w, 131072), at(w, 180032), 64, 64, 8, 1}; }, true},
    };
}

uint64_t heap(World& w, uint64_t off) { return w.sym(0, 32768 + off); }

const Wait signal_wait{"gshmem_k_signal_wait", [](World& w) { return Args{heap(w, 0), 0, 77, 0, 0}; }};

} // namespace

KERNEL_TEST(abort_ends_every_wait)
{
    if (c.pes != 2 || c.schedule != KM_LAZY) return;
    run_alone(c, signal_wait, ABORT);
    run_alone(c, Wait{"gshmem_k_wait", [](World& w) { return Args{heap(w, 0), 9, 0, 77}; }}, ABORT);
    for (const Wait& k : collectives(heap)) run_alone(c, k, ABORT);
}

// One team is given up: its kernels end, by its own word and no other team's, and say so.
KERNEL_TEST(abort_of_one_team)
{
    if (c.pes != 2 || c.schedule != KM_LAZY) return;
    run_alone(c, signal_wait, STOP_SIGNALS);
    for (const Wait& k : collectives(heap)) run_alone(c, k, STOP_TEAM);
}

// A stop word that comes when nothing waits changes nothing, and nobody says that anything was missed.
KERNEL_TEST(abort_of_a_team_that_does_not_wait)
{
    if (c.pes != 2) return;
    World w(c);
    const uint64_t words = w.stop_words(0);
    Stream s(w);
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.host([&](int pe) { for (uint64_t i : {0, 4}) w.set_word(pe, words + i, 1); });
    s.kernel("gshmem_k_quiet", [](int) { return Args{}; });
    s.run();
    for (int pe = 0; pe < 2; pe++)
        if (*w.loc_as<uint64_t>(pe, words + GSHMEM_SYNC_LINE) != 0) fail("PE %d says that a wait was stopped", pe);
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
