// Operators that rearrange elements by rule: joining, splitting, padding, sorting.
#include <algorithm>
#include <numeric>

#include "move.h"
#include "reduce.h"

namespace emu {
namespace {

Work cat(const aclTensorList* list, int64_t dim, const aclTensor* out) {
    return [views = views_of(list), dim, o = View(out)] {
        size_t d = static_cast<size_t>(wrap(dim, o.dims.size()));
        int64_t at = 0;
        for (const View& v : views) {
            if (v.dims.size() != o.dims.size()) continue;  // torch lets an empty 1-d tensor join anything
            copy_into(part(o, d, at, v.dims[d]), v);
            at += v.dims[d];
        }
    };
}

Work stack(const aclTensorList* list, int64_t dim, const aclTensor* out) {
    return [views = views_of(list), dim, o = View(out)] {
        size_t d = static_cast<size_t>(wrap(dim, o.dims.size()));
        for (size_t i = 0; i < views.size(); i++) {
            View slot = part(o, d, static_cast<int64_t>(i), 1);
            slot.dims.erase(slot.dims.begin() + static_cast<int64_t>(d));
            slot.strides.erase(slot.strides.begin() + static_cast<int64_t>(d));
            copy_into(slot, views[i]);
        }
    };
}

Work triangle(const aclTensor* self, int64_t diagonal, bool upper, const aclTensor* out) {
    return [=, a = View(self), o = View(out)] {
        compute({a.type}, [&](auto zero) {
            auto values = load<decltype(zero)>(a);
            int64_t columns = a.dims.back(), rows = a.dims[a.dims.size() - 2];
            for (size_t i = 0; i < values.size(); i++) {
                int64_t c = static_cast<int64_t>(i) % columns, r = static_cast<int64_t>(i) / columns % rows;
                if (upper ? c - r < diagonal : c - r > diagonal) values[i] = 0;
            }
            store(o, values);
        });
    };
}

Work flip(const aclTensor* self, const aclIntArray* dims, const aclTensor* out) {
    return [a = View(self), by = dims->values, o = View(out)] {
        View v = a;
        for (int64_t dim : by) {
            size_t d = static_cast<size_t>(wrap(dim, a.dims.size()));
            v.address += static_cast<uint64_t>((a.dims[d] - 1) * a.strides[d]) * size_of(a.type);
            v.strides[d] = -a.strides[d];
        }
        copy_into(o, v);
    };
}

Work repeat(const aclTensor* self, const aclIntArray*, const aclTensor* out) {
    return [a = View(self), o = View(out)] {
        // Each dimension of the result is the pair (times, size) of the input's, times walking with stride 0.
        View from = a.with_dims({}, {});
        size_t extra = o.dims.size() - a.dims.size();
        for (size_t d = 0; d < o.dims.size(); d++) {
            int64_t size = d < extra ? 1 : a.dims[d - extra];
            from.dims.insert(from.dims.end(), {size ? o.dims[d] / size : 0, size});
            from.strides.insert(from.strides.end(), {0, d < extra ? 0 : a.strides[d - extra]});
        }
        compute({a.type}, [&](auto zero) { store(o, load<decltype(zero)>(from)); });
    };
}

// repeat_each gives every slice of a dimension (every element when there is none) as often as `times` says.
Work repeat_each(const View& self, const std::function<int64_t(size_t)>& times, const int64_t* dim, const aclTensor* out) {
    size_t d = dim ? static_cast<size_t>(wrap(*dim, self.dims.size())) : 0;
    return [a = self, times, d, flat = !dim, o = View(out)] {
        if (!flat) {
            int64_t at = 0;
            for (int64_t i = 0; i < a.dims[d]; i++) {
                for (int64_t k = times(static_cast<size_t>(i)); k > 0; k--) copy_into(part(o, d, at++, 1), part(a, d, i, 1));
            }
            return;
        }
        compute({a.type}, [&](auto zero) {
            std::vector<decltype(zero)> values;
            size_t i = 0;
            for (auto v : load<decltype(zero)>(a)) values.insert(values.end(), static_cast<size_t>(times(i++)), v);
            store(o, values);
        });
    };
}

// What repeats: one number, or one for each slice, read when the operator runs.
std::function<int64_t(size_t)> as_often(int64_t n) {
    return [n](size_t) { return n; };
}
std::function<int64_t(size_t)> as_often(const aclTensor* numbers) {
    return [v = View(numbers)](size_t i) {
        auto all = load<int64_t>(v);
        return all.size() == 1 ? all[0] : all.at(i);
    };
}

Work sort(const aclTensor* self, int64_t dim, bool descending, int64_t limit, const aclTensor* values,
          const aclTensor* indices) {
    return [=, a = View(self), v = View(values), p = View(indices)] {
        compute({a.type}, [&](auto zero) {
            using C = decltype(zero);
            std::vector<C> sorted;
            Dims places;
            rows<C>(a, {dim}, [&](const std::vector<C>& row, size_t) {
                Dims order(row.size());
                std::iota(order.begin(), order.end(), 0);
                std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
                    C l = row[static_cast<size_t>(x)], r = row[static_cast<size_t>(y)];
                    return descending ? l > r : l < r;
                });
                if (limit >= 0) order.resize(static_cast<size_t>(limit));
                for (int64_t i : order) sorted.push_back(row[static_cast<size_t>(i)]), places.push_back(i);
            });
            auto back = [&](const View& to) {
                if (to.dims.empty()) return to;
                Split split(to, {dim});
                View w = split.kept;
                w.dims.push_back(split.walked.dims[0]);
                w.strides.push_back(split.walked.strides[0]);
                return w;
            };
            store(back(v), sorted);
            store(back(p), places);
        });
    };
}

Work roll(const aclTensor* self, const aclIntArray* shifts, const aclIntArray* dims, const aclTensor* out) {
    return [a = View(self), by = shifts->values, along = dims->values, o = View(out)] {
        compute({a.type}, [&](auto zero) {
            auto values = load<decltype(zero)>(a), moved = values;
            int64_t n = a.count();
            for (size_t k = 0; k < by.size(); k++) {
                size_t d = along.empty() ? 0 : static_cast<size_t>(wrap(along[k], a.dims.size()));
                int64_t size = along.empty() ? n : a.dims[d], inner = 1;
                for (size_t i = d + 1; !along.empty() && i < a.dims.size(); i++) inner *= a.dims[i];
                for (int64_t i = 0; i < n; i++) {
                    int64_t at = i / inner % size, to = ((at + by[k]) % size + size) % size;
                    moved[static_cast<size_t>(i + (to - at) * inner)] = values[static_cast<size_t>(i)];
                }
                values = moved;
            }
            store(o, values);
        });
    };
}

// pad surrounds by a value, or crops where the padding is negative; pairs run from the last dimension.
Work pad(const aclTensor* self, const aclIntArray* sizes, const aclScalar* value, const aclTensor* out) {
    return [a = View(self), by = sizes->values, v = *value, o = View(out)] {
        store(o, std::vector<double>(static_cast<size_t>(o.count()), number<double>(v)));
        View from = a, to = o;
        for (size_t k = 0; k < by.size() / 2; k++) {
            size_t d = a.dims.size() - 1 - k;
            int64_t before = by[2 * k], after = by[2 * k + 1];
            int64_t kept = from.dims[d] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
            from = part(from, d, std::max<int64_t>(-before, 0), kept);
            to = part(to, d, std::max<int64_t>(before, 0), kept);
        }
        copy_into(to, from);
    };
}

Work split(const aclTensor* self, Dims sizes, int64_t dim, const aclTensorList* outs) {
    return [a = View(self), sizes, dim, views = views_of(outs)] {
        size_t d = static_cast<size_t>(wrap(dim, a.dims.size()));
        int64_t at = 0;
        for (size_t i = 0; i < views.size(); i++) {
            int64_t size = i < sizes.size() ? sizes[i] : std::min(sizes.back(), a.dims[d] - at);
            copy_into(views[i], part(a, d, at, size));
            at += size;
        }
    };
}

}  // namespace
}  // namespace emu

using namespace emu;

OPERATOR(Tril, (const aclTensor* self, int64_t diagonal, const aclTensor* out), triangle(self, diagonal, false, out))
OPERATOR(Triu, (const aclTensor* self, int64_t diagonal, const aclTensor* out), triangle(self, diagonal, true, out))
OPERATOR(Flip, (const aclTensor* self, const aclIntArray* dims, const aclTensor* out), flip(self, dims, out))
OPERATOR(Repeat, (const aclTensor* self, const aclIntArray* times, const aclTensor* out), repeat(self, times, out))
OPERATOR(Sort, (const aclTensor* self, bool, int64_t dim, bool descending, const aclTensor* values, const aclTensor* indices),
         sort(self, dim, descending, -1, values, indices))
OPERATOR(Topk, (const aclTensor* self, int64_t k, int64_t dim, bool largest, bool, const aclTensor* values,
                const aclTensor* indices),
         sort(self, dim, largest, k, values, indices))
OPERATOR(Cat, (const aclTensorList* list, int64_t dim, const aclTensor* out), cat(list, dim, out))
OPERATOR(Stack, (const aclTensorList* list, int64_t dim, const aclTensor* out), stack(list, dim, out))
OPERATOR(Roll, (const aclTensor* self, const aclIntArray* shifts, const aclIntArray* dims, const aclTensor* out),
         roll(self, shifts, dims, out))
OPERATOR(ConstantPadNd, (const aclTensor* self, const aclIntArray* sizes, const aclScalar* value, const aclTensor* out),
         pad(self, sizes, value, out))
OPERATOR(SplitWithSize, (const aclTensor* self, const aclIntArray* sizes, int64_t dim, const aclTensorList* outs),
         split(self, sizes->values, dim, outs))
OPERATOR(SplitTensor, (const aclTensor* self, uint64_t size, int64_t dim, const aclTensorList* outs),
         split(self, {static_cast<int64_t>(size)}, dim, outs))
OPERATOR(RepeatInterleaveInt, (const aclTensor* self, int64_t times, int64_t, const aclTensor* out),
         repeat_each(self, as_often(times), nullptr, out))
OPERATOR(RepeatInterleaveIntWithDim, (const aclTensor* self, int64_t times, int64_t dim, int64_t, const aclTensor* out),
         repeat_each(self, as_often(times), &dim, out))
OPERATOR(RepeatInterleave, (const aclTensor* self, const aclTensor* times, int64_t, const aclTensor* out),
         repeat_each(self, as_often(times), nullptr, out))
OPERATOR(RepeatInterleaveWithDim, (const aclTensor* self, const aclTensor* times, int64_t dim, int64_t, const aclTensor* out),
         repeat_each(self, as_often(times), &dim, out))
