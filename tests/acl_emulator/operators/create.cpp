// Operators that make numbers: ranges, identity, random.
#include <random>

#include "op.h"

namespace emu {
namespace {

Work range(const aclScalar* start, const aclScalar* step, const aclTensor* out) {
    return [s = *start, d = *step, o = View(out)] {
        // Double even for float: the i-th value is start + i * step, rounded once.
        auto fill = [&](auto zero) {
            std::vector<decltype(zero)> values(static_cast<size_t>(o.count()));
            for (size_t i = 0; i < values.size(); i++) {
                values[i] = number<decltype(zero)>(s) + static_cast<decltype(zero)>(i) * number<decltype(zero)>(d);
            }
            store(o, values);
        };
        bool whole = !is_float(o.type) && !is_float(s.type) && !is_float(d.type);
        whole ? fill(int64_t()) : fill(double());
    };
}

Work eye(const aclTensor* out) {
    return [o = View(out)] {
        std::vector<int64_t> values(static_cast<size_t>(o.count()));
        size_t columns = static_cast<size_t>(o.dims.back());
        for (size_t i = 0; i < values.size(); i++) values[i] = i / columns == i % columns;
        store(o, values);
    };
}

// drawn fills a tensor with draws; equal seeds and offsets give equal numbers, other than the chip's.
template <typename D>
Work drawn(const aclTensor* self, int64_t seed, int64_t offset, D distribution) {
    return [=, o = View(self)]() mutable {
        std::mt19937_64 random(static_cast<uint64_t>(seed) * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(offset));
        distribution.reset();
        std::vector<typename D::result_type> values(static_cast<size_t>(o.count()));
        for (size_t i = 0; i < values.size(); i++) values[i] = distribution(random);
        compute({o.type}, [&](auto zero) {
            store(o, std::vector<decltype(zero)>(values.begin(), values.end()));
        });
    };
}

std::bernoulli_distribution coin(const aclScalar* p) { return std::bernoulli_distribution(number<double>(*p)); }

}  // namespace
}  // namespace emu

using namespace emu;

OPERATOR(Arange, (const aclScalar* start, const aclScalar*, const aclScalar* step, const aclTensor* out),
         range(start, step, out))
OPERATOR(Range, (const aclScalar* start, const aclScalar*, const aclScalar* step, const aclTensor* out),
         range(start, step, out))
OPERATOR(Eye, (int64_t, int64_t, const aclTensor* out), eye(out))
OPERATOR(InplaceNormal, (const aclTensor* self, float mean, float std, int64_t seed, int64_t offset),
         drawn(self, seed, offset, std::normal_distribution<double>(mean, std > 0 ? std : 1e-300)))
OPERATOR(InplaceUniform, (const aclTensor* self, double from, double to, uint64_t seed, uint64_t offset),
         drawn(self, static_cast<int64_t>(seed), static_cast<int64_t>(offset), std::uniform_real_distribution<double>(from, to)))
OPERATOR(InplaceRandom, (const aclTensor* self, int64_t from, int64_t to, int64_t seed, int64_t offset),
         drawn(self, seed, offset, std::uniform_int_distribution<int64_t>(from, to - 1)))
OPERATOR(InplaceBernoulli, (const aclTensor* self, const aclScalar* p, int64_t seed, int64_t offset),
         drawn(self, seed, offset, coin(p)))
