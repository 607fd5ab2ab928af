// test_atomic.cpp: the kernel of atomics with old values (950). All PEs work on one word of PE 0 at once, so the old values must be those
// of some order of all of them.
#include "harness/world.hpp"
#include "km/base.h"
#include <algorithm>
#include <cstring>

#if __NPU_ARCH__ == 3510
namespace {

enum Op : uint64_t { FETCH, SWAP, CAS, ADD, AND, OR, XOR };

struct Run {
    std::vector<uint64_t> olds; // by PE
    uint64_t end;               // the word afterwards
};

template <typename T> Run run_op(const Config& c, Op op, T begin, const std::function<T(int pe)>& value, T compare = 0)
{
    World w(c);
    const uint64_t word = w.symmetric(sizeof(T), 64, 3 * sizeof(T)), old = w.local(sizeof(T));
    Stream s(w);
    s.host([&](int pe) { *w.sym_as<T>(pe, word) = begin; });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.kernel("gshmem_k_atomic", [&](int pe) { return Args{w.sym(pe, word), op, sizeof(T), value(pe), compare, w.loc(pe, old), 0}; });
    s.kernel("gshmem_k_barrier", [](int) { return Args{0}; });
    s.run();
    Run r;
    for (int pe = 0; pe < w.n(); pe++) {
        r.olds.push_back(*w.loc_as<T>(pe, old));
        if (pe && *w.sym_as<T>(pe, word) != begin) fail("operation %d of PE 0's word changed PE %d's", int(op), pe);
    }
    r.end = *w.sym_as<T>(0, word);
    return r;
}

// Whether some order of the PEs explains the old values and the end.
template <typename T> void expect_order(const Config& c, Op op, T begin, const std::function<T(int pe)>& value, const std::function<T(T, T)>& apply, T compare = 0)
{
    const Run r = run_op<T>(c, op, begin, value, compare);
    std::vector<int> order;
    for (int pe = 0; pe < c.pes; pe++) order.push_back(pe);
    do {
        T at = begin;
        bool fits = true;
        for (int pe : order) {
            fits = fits && static_cast<T>(r.olds[static_cast<size_t>(pe)]) == at;
            at = apply(at, value(pe));
        }
        if (fits && static_cast<T>(r.end) == at) return;
    } while (c.pes <= 5 && std::next_permutation(order.begin(), order.end()));
    if (c.pes <= 5) fail("atomic operation %d on %d bytes: no order of the PEs gives these old values; the word ends as 0x%llx", int(op), int(sizeof(T)), (unsigned long long)r.end);
}

template <typename T> void run_width(const Config& c)
{
    const T high = static_cast<T>(T{1} << (8 * sizeof(T) - 2)), begin = static_cast<T>(high + 77);
    const auto add = [](T a, T b) { return static_cast<T>(a + b); };
    const auto mine = [&](int pe) { return static_cast<T>(high + static_cast<T>(3 * pe + 1)); }; // sums wrap
    const auto bit = [](int pe) { return static_cast<T>(T{5} << (3 * pe)); };
    expect_order<T>(c, ADD, begin, mine, add);
    expect_order<T>(c, SWAP, begin, mine, [](T, T b) { return b; });
    expect_order<T>(c, CAS, begin, mine, [=](T a, T b) { return a == begin ? b : a; }, begin);
    expect_order<T>(c, CAS, begin, mine, [](T a, T) { return a; }, static_cast<T>(begin + 1)); // nobody's compare fits
    expect_order<T>(c, FETCH, begin, mine, [](T a, T) { return a; });
    expect_order<T>(c, AND, static_cast<T>(~T{0}), [=](int pe) { return static_cast<T>(~bit(pe)); }, [](T a, T b) { return static_cast<T>(a & b); });
    expect_order<T>(c, OR, begin, bit, [](T a, T b) { return static_cast<T>(a | b); });
    expect_order<T>(c, XOR, begin, bit, [](T a, T b) { return static_cast<T>(a ^ b); });
}

} // namespace

KERNEL_TEST(atomic_with_old_value)
{
    run_width<uint32_t>(c);
    run_width<uint64_t>(c);
}
#endif
