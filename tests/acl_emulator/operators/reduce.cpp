// Reductions.
#include "reduce.h"

#include <algorithm>
#include <cmath>

#include "op.h"

namespace emu {

Split::Split(const View& view, const Dims& dims, bool all_when_empty) : kept(view), walked(view) {
    std::vector<bool> walk(view.dims.size(), dims.empty() && all_when_empty);
    for (int64_t d : dims) {
        int64_t at = wrap(d, view.dims.size());
        if (at < static_cast<int64_t>(walk.size())) walk[static_cast<size_t>(at)] = true;
    }
    kept.dims.clear(), kept.strides.clear(), walked.dims.clear(), walked.strides.clear();
    for (size_t i = 0; i < walk.size(); i++) {
        View& to = walk[i] ? walked : kept;
        to.dims.push_back(view.dims[i]);
        to.strides.push_back(view.strides[i]);
    }
}

namespace {

template <typename C>
using Wide = std::conditional_t<std::is_integral_v<C>, int64_t, double>;

template <typename C>
C sum_of(const std::vector<C>& values) {
    Wide<C> total = 0;
    for (C v : values) total += v;
    return static_cast<C>(total);
}

template <typename C>
C mean_of(const std::vector<C>& values) {
    Wide<C> total = 0;
    for (C v : values) total += v;
    if (values.empty()) return static_cast<C>(NAN);
    return static_cast<C>(total / static_cast<Wide<C>>(values.size()));
}

template <typename C>
size_t place_of(const std::vector<C>& values, bool largest) {
    size_t best = 0;
    for (size_t i = 1; i < values.size(); i++) {
        if (values[best] != values[best]) break;
        bool better = largest ? values[i] > values[best] : values[i] < values[best];
        if (better || values[i] != values[i]) best = i;
    }
    return best;
}

Dims one(int64_t dim) { return {dim}; }

// folded makes the work of a reduction whose arithmetic is f.
template <typename F>
Work folded(const aclTensor* self, const Dims& dims, const aclTensor* out, F f) {
    return [=, a = View(self), o = View(out)] {
        compute({a.type, o.type}, [&](auto zero) {
            using C = decltype(zero);
            reduce<C>(a, dims, o, [&](const std::vector<C>& values) { return static_cast<C>(f(values)); });
        });
    };
}

Work extreme(const aclTensor* self, const Dims& dims, const aclTensor* out, bool largest) {
    return [=, a = View(self), o = View(out)] {
        compute({a.type}, [&](auto zero) {
            using C = decltype(zero);
            reduce<C>(a, dims, o, [&](const std::vector<C>& v) { return v[place_of(v, largest)]; });
        });
    };
}

Work place(const aclTensor* self, const Dims& dims, const aclTensor* out, bool largest) {
    return [=, a = View(self), o = View(out)] {
        compute({a.type}, [&](auto zero) {
            using C = decltype(zero);
            std::vector<int64_t> places;
            rows<C>(a, dims, [&](const std::vector<C>& v, size_t) { places.push_back(static_cast<int64_t>(place_of(v, largest))); });
            store(o, places);
        });
    };
}

Work both(const aclTensor* self, int64_t dim, const aclTensor* values, const aclTensor* indices, bool largest) {
    Work first = extreme(self, one(dim), values, largest), second = place(self, one(dim), indices, largest);
    return [=] { first(), second(); };
}

template <typename C>
double norm_of(const std::vector<C>& values, double p) {
    if (std::isinf(p)) {
        double best = p > 0 ? 0 : INFINITY;
        for (C v : values) best = p > 0 ? std::max(best, std::abs(static_cast<double>(v))) : std::min(best, std::abs(static_cast<double>(v)));
        return best;
    }
    double total = 0;
    for (C v : values) total += p == 0 ? v != 0 : p == 2 ? static_cast<double>(v) * v : std::pow(std::abs(static_cast<double>(v)), p);
    return p == 0 ? total : p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
}

template <typename C>
double variance_of(const std::vector<C>& values, int64_t correction, double* mean) {
    double total = 0, squares = 0;
    for (C v : values) total += v;
    *mean = total / static_cast<double>(values.size());
    for (C v : values) squares += (v - *mean) * (v - *mean);
    return squares / static_cast<double>(static_cast<int64_t>(values.size()) - correction);
}

double scalar_or(const aclScalar* s, double otherwise) { return s ? number<double>(*s) : otherwise; }

}  // namespace
}  // namespace emu

using namespace emu;

OPERATOR(ReduceSum, (const aclTensor* self, const aclIntArray* dims, bool, aclDataType, const aclTensor* out),
         folded(self, dims->values, out, [](const auto& v) { return sum_of(v); }))
OPERATOR(Mean, (const aclTensor* self, const aclIntArray* dims, bool, aclDataType, const aclTensor* out),
         folded(self, dims->values, out, [](const auto& v) { return mean_of(v); }))
OPERATOR(MeanV2, (const aclTensor* self, const aclIntArray* dims, bool, bool, const aclTensor* out),
         folded(self, dims->values, out, [](const auto& v) { return mean_of(v); }))
OPERATOR(All, (const aclTensor* self, const aclIntArray* dims, bool, const aclTensor* out),
         folded(self, dims->values, out, [](const auto& v) { return std::all_of(v.begin(), v.end(), [](auto x) { return x != 0; }); }))
OPERATOR(Any, (const aclTensor* self, const aclIntArray* dims, bool, const aclTensor* out),
         folded(self, dims->values, out, [](const auto& v) { return std::any_of(v.begin(), v.end(), [](auto x) { return x != 0; }); }))
OPERATOR(Max, (const aclTensor* self, const aclTensor* out), extreme(self, {}, out, true))
OPERATOR(Min, (const aclTensor* self, const aclTensor* out), extreme(self, {}, out, false))
OPERATOR(Amax, (const aclTensor* self, const aclIntArray* dims, bool, const aclTensor* out),
         extreme(self, dims->values, out, true))
OPERATOR(Amin, (const aclTensor* self, const aclIntArray* dims, bool, const aclTensor* out),
         extreme(self, dims->values, out, false))
OPERATOR(MaxDim, (const aclTensor* self, int64_t dim, bool, const aclTensor* values, const aclTensor* indices),
         both(self, dim, values, indices, true))
OPERATOR(MinDim, (const aclTensor* self, int64_t dim, bool, const aclTensor* values, const aclTensor* indices),
         both(self, dim, values, indices, false))
OPERATOR(ArgMax, (const aclTensor* self, int64_t dim, bool, const aclTensor* out), place(self, one(dim), out, true))
OPERATOR(ArgMin, (const aclTensor* self, int64_t dim, bool, const aclTensor* out), place(self, one(dim), out, false))

#define PRODUCT [](const auto& v) {                          \
        typename std::decay_t<decltype(v)>::value_type p = 1; \
        for (auto x : v) p *= x;                             \
        return p;                                            \
    }
OPERATOR(Prod, (const aclTensor* self, aclDataType, const aclTensor* out), folded(self, {}, out, PRODUCT))
OPERATOR(ProdDim, (const aclTensor* self, int64_t dim, bool, aclDataType, const aclTensor* out),
         folded(self, one(dim), out, PRODUCT))

OPERATOR(Norm, (const aclTensor* self, const aclScalar* p, const aclIntArray* dims, bool, const aclTensor* out),
         folded(self, dims->values, out, [p = scalar_or(p, 2)](const auto& v) { return norm_of(v, p); }))
OPERATOR(LinalgVectorNorm, (const aclTensor* self, const aclScalar* p, const aclIntArray* dims, bool, aclDataType,
                            const aclTensor* out),
         folded(self, dims->values, out, [p = scalar_or(p, 2)](const auto& v) { return norm_of(v, p); }))

OPERATOR(VarCorrection, (const aclTensor* self, const aclIntArray* dims, int64_t correction, bool, const aclTensor* out),
         folded(self, dims->values, out, [correction](const auto& v) { double m; return variance_of(v, correction, &m); }))
OPERATOR(Std, (const aclTensor* self, const aclIntArray* dims, int64_t correction, bool, const aclTensor* out),
         folded(self, dims->values, out, [correction](const auto& v) { double m; return std::sqrt(variance_of(v, correction, &m)); }))
OPERATOR(VarMean, (const aclTensor* self, const aclIntArray* dims, int64_t correction, bool, const aclTensor* var,
                   const aclTensor* mean),
         [v = folded(self, dims->values, var, [correction](const auto& x) { double m; return variance_of(x, correction, &m); }),
          m = folded(self, dims->values, mean, [](const auto& x) { return mean_of(x); })] { v(), m(); })

OPERATOR(LogSumExp, (const aclTensor* self, const aclIntArray* dims, bool, const aclTensor* out),
         folded(self, dims->values, out, [](const auto& v) {
             double top = -INFINITY, total = 0;
             for (auto x : v) top = std::max(top, static_cast<double>(x));
             for (auto x : v) total += std::exp(static_cast<double>(x) - top);
             return top + std::log(total);
         }))

namespace emu {
namespace {

Work cumsum(const aclTensor* self, int64_t dim, const aclTensor* out) {
    return [=, a = View(self), o = View(out)] {
        compute({o.type}, [&](auto zero) {
            using C = decltype(zero);
            // Row by row in the order that rows() gives, so the same walk over the output puts them back.
            std::vector<C> values;
            rows<C>(a, {dim}, [&](const std::vector<C>& v, size_t) {
                Wide<C> total = 0;
                for (C x : v) values.push_back(static_cast<C>(total += x));
            });
            Split split(o, {dim});
            View moved = o.with_dims(split.kept.dims, split.kept.strides);
            moved.dims.insert(moved.dims.end(), split.walked.dims.begin(), split.walked.dims.end());
            moved.strides.insert(moved.strides.end(), split.walked.strides.begin(), split.walked.strides.end());
            store(moved, values);
        });
    };
}

Work equal(const aclTensor* self, const aclTensor* other, const aclTensor* out) {
    return [=, a = View(self), b = View(other), o = View(out)] {
        compute({a.type, b.type}, [&](auto zero) {
            using C = decltype(zero);
            store(o, std::vector<int64_t>{a.dims == b.dims && load<C>(a) == load<C>(b)});
        });
    };
}

}  // namespace
}  // namespace emu

OPERATOR(Cumsum, (const aclTensor* self, int64_t dim, aclDataType, const aclTensor* out), cumsum(self, dim, out))
OPERATOR(Equal, (const aclTensor* self, const aclTensor* other, const aclTensor* out), equal(self, other, out))
