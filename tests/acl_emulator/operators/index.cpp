// Operators that choose elements or put them in places that the data tells.
#include <map>

#include "move.h"

namespace emu {
namespace {

// offsets lists where each element of a view lies, in elements.
Dims offsets(const View& view) {
    Dims all;
    each(view, [&](int64_t at) { all.push_back(at); });
    return all;
}

// Chosen is what advanced indexing refers to: the elements of self in the order of the result.
Dims chosen(const View& self, const std::vector<View>& indices) {
    Dims shape;
    size_t first = indices.size(), last = 0;
    bool apart = false;
    for (size_t i = 0; i < indices.size(); i++) {
        if (!indices[i].present || (indices[i].count() == 0 && indices[i].dims == Dims{0})) continue;
        if (first != indices.size() && last != i - 1) apart = true;
        if (first == indices.size()) first = i;
        last = i;
        shape = first == i ? indices[i].dims : broadcast(shape, indices[i].dims);
    }
    if (first == indices.size()) return offsets(self);
    // The indexed dimensions become the index shape: in their place when they are neighbours, in front otherwise.
    View outer = self.with_dims({}, {}), rest = outer;
    std::vector<std::pair<size_t, Dims>> picks;
    for (size_t d = 0; d < self.dims.size(); d++) {
        bool indexed = d < indices.size() && indices[d].present && !(indices[d].count() == 0 && indices[d].dims == Dims{0});
        if (indexed) {
            picks.emplace_back(d, load<int64_t>(indices[d], shape));
        } else {
            View& to = d < first && !apart ? outer : rest;
            to.dims.push_back(self.dims[d]);
            to.strides.push_back(self.strides[d]);
        }
    }
    Dims out, inner = offsets(rest);
    for (int64_t front : offsets(outer)) {
        for (int64_t i = 0; i < count_of(shape); i++) {
            int64_t at = front;
            for (const auto& [d, values] : picks) {
                int64_t v = values[static_cast<size_t>(i)];
                if (v < -self.dims[d] || v >= self.dims[d]) throw Refusal("index out of range");
                at += (v < 0 ? v + self.dims[d] : v) * self.strides[d];
            }
            for (int64_t step : inner) out.push_back(at + step);
        }
    }
    return out;
}

Work index(const aclTensor* self, const aclTensorList* indices, const aclTensor* out) {
    return [a = View(self), list = views_of(indices), o = View(out)] {
        compute({a.type}, [&](auto compute_zero) {
            using C = decltype(compute_zero);
            std::vector<C> values;
            dispatch(a.type, [&](auto zero) {
                auto* from = static_cast<decltype(zero)*>(base(a));
                for (int64_t at : chosen(a, list)) values.push_back(static_cast<C>(from[at]));
            });
            store(o, values);
        });
    };
}

Work index_put(const aclTensor* self, const aclTensorList* indices, const aclTensor* values, bool accumulate) {
    return [accumulate, a = View(self), list = views_of(indices), v = View(values)] {
        Dims where = chosen(a, list);
        compute({a.type, v.type}, [&](auto compute_zero) {
            using C = decltype(compute_zero);
            auto from = load<C>(v);
            if (from.empty() && !where.empty()) throw Refusal("no values to put");
            dispatch(a.type, [&](auto zero) {
                using T = decltype(zero);
                T* to = static_cast<T*>(base(a));
                for (size_t i = 0; i < where.size(); i++) {
                    C value = from[i % from.size()];
                    to[where[i]] = static_cast<T>(accumulate ? static_cast<C>(to[where[i]]) + value : value);
                }
            });
        });
    };
}

// reach visits the elements that gather and scatter refer to: f(position in index order, offset in view).
template <typename F>
void reach(const View& view, int64_t dim, const View& indices, F f) {
    size_t d = view.dims.empty() ? 0 : static_cast<size_t>(wrap(dim, view.dims.size()));
    auto where = load<int64_t>(indices);
    View walk = view.with_dims(indices.dims, view.strides);
    if (!walk.strides.empty()) walk.strides[d] = 0;
    size_t i = 0;
    each(walk, [&](int64_t at) {
        int64_t v = where[i];
        int64_t limit = view.dims.empty() ? 1 : view.dims[d];
        if (v < -limit || v >= limit) throw Refusal("index out of range");
        f(i++, at + (v < 0 ? v + limit : v) * (view.dims.empty() ? 0 : view.strides[d]));
    });
}

Work gather(const aclTensor* self, int64_t dim, const aclTensor* indices, const aclTensor* out) {
    return [dim, a = View(self), i = View(indices), o = View(out)] {
        compute({a.type}, [&](auto compute_zero) {
            using C = decltype(compute_zero);
            std::vector<C> values;
            dispatch(a.type, [&](auto zero) {
                auto* from = static_cast<decltype(zero)*>(base(a));
                reach(a, dim, i, [&](size_t, int64_t at) { values.push_back(static_cast<C>(from[at])); });
            });
            store(o, values);
        });
    };
}

// scatter: reduction 0 replaces, 1 adds, 2 multiplies.
Work scatter(const aclTensor* self, int64_t dim, const aclTensor* indices, const aclTensor* source, int64_t reduction,
             const aclTensor* out) {
    return [=, a = View(self), i = View(indices), s = View(source), o = View(out)] {
        if (a.address != o.address) copy_into(o, a);
        compute({o.type}, [&](auto compute_zero) {
            using C = decltype(compute_zero);
            auto values = load<C>(s.with_dims(i.dims, s.strides));
            dispatch(o.type, [&](auto zero) {
                using T = decltype(zero);
                T* to = static_cast<T*>(base(o));
                reach(o, dim, i, [&](size_t n, int64_t at) {
                    C old = static_cast<C>(to[at]), v = values[n];
                    to[at] = static_cast<T>(reduction == 1 ? old + v : reduction == 2 ? old * v : v);
                });
            });
        });
    };
}

Work scatter_value(const aclTensor* self, int64_t dim, const aclTensor* indices, const aclScalar* value, const aclTensor* out) {
    return [=, a = View(self), i = View(indices), v = *value, o = View(out)] {
        if (a.address != o.address) copy_into(o, a);
        dispatch(o.type, [&](auto zero) {
            using T = decltype(zero);
            T* to = static_cast<T*>(base(o));
            reach(o, dim, i, [&](size_t, int64_t at) { to[at] = static_cast<T>(number<double>(v)); });
        });
    };
}

Work index_select(const aclTensor* self, int64_t dim, const aclTensor* indices, const aclTensor* out) {
    return [dim, a = View(self), i = View(indices), o = View(out)] {
        size_t d = a.dims.empty() ? 0 : static_cast<size_t>(wrap(dim, a.dims.size()));
        auto where = load<int64_t>(i);
        if (a.dims.empty()) return copy_into(o, a);
        for (size_t n = 0; n < where.size(); n++) {
            if (where[n] < -a.dims[d] || where[n] >= a.dims[d]) throw Refusal("index out of range");
            int64_t at = where[n] < 0 ? where[n] + a.dims[d] : where[n];
            copy_into(part(o, d, static_cast<int64_t>(n), 1), part(a, d, at, 1));
        }
    };
}

// The operators whose result has a size that only the data tells: they set the shape of `out` when they run,
// which the caller waits for.
Work masked_select(const aclTensor* self, const aclTensor* mask, aclTensor* out) {
    return [a = View(self), m = View(mask), o = View(out), out] {
        Dims dims = broadcast(a.dims, m.dims);
        compute({a.type}, [&](auto zero) {
            using C = decltype(zero);
            auto values = load<C>(a, dims);
            auto keep = load<int64_t>(m, dims);
            std::vector<C> kept;
            for (size_t i = 0; i < values.size(); i++) {
                if (keep[i]) kept.push_back(values[i]);
            }
            store(o.with_dims({static_cast<int64_t>(kept.size())}, {1}), kept);
            out->dims = {static_cast<int64_t>(kept.size())};
            out->strides = {1};
        });
    };
}

// nonzero gives one row per element found, or one column.
Work nonzero(const aclTensor* self, aclTensor* out, bool columns) {
    return [columns, a = View(self), o = View(out), out] {
        int64_t rank = static_cast<int64_t>(a.dims.size()), found = 0;
        Dims at(a.dims.size(), 0), all;
        for (double v : load<double>(a)) {
            if (v != 0) all.insert(all.end(), at.begin(), at.end()), found++;
            for (size_t d = at.size(); d-- > 0 && ++at[d] == a.dims[d];) at[d] = 0;
        }
        store(columns ? o.with_dims({found, rank}, {1, found}) : o.with_dims({found, rank}, {rank, 1}), all);
        out->dims = columns ? Dims{rank, found} : Dims{found, rank};
        out->strides = {out->dims[1], 1};
    };
}

// unique gives each value once, in ascending order, where each element went, and how many there were of each.
Work unique(const aclTensor* self, aclTensor* out, const aclTensor* places, const aclTensor* counts, bool inverse, bool counted) {
    return [=, a = View(self), o = View(out), p = View(places), c = View(counts)] {
        compute({a.type}, [&](auto zero) {
            auto values = load<decltype(zero)>(a);
            std::map<decltype(zero), int64_t> seen;
            for (auto v : values) seen[v]++;
            std::vector<decltype(zero)> kept;
            Dims numbers, where;
            for (auto& [value, n] : seen) {
                kept.push_back(value), numbers.push_back(n);
                n = static_cast<int64_t>(kept.size()) - 1;  // from here on: its place
            }
            for (auto v : values) where.push_back(seen[v]);
            Dims dims{static_cast<int64_t>(kept.size())};
            store(o.with_dims(dims, {1}), kept);
            if (inverse) store(p, where);
            if (counted) store(c.with_dims(dims, {1}), numbers);
            out->dims = dims;
            out->strides = {1};
        });
    };
}

// coalesce adds up the rows of values that go to one place, and says where that place is.
Work coalesce(const aclTensor* to, const aclTensor* indices, const aclTensor* values, const aclTensor* new_indices, const aclTensor* new_values) {
    return [t = View(to), i = View(indices), v = View(values), p = View(new_indices), o = View(new_values)] {
        auto where = load<int64_t>(t);
        Dims zero(static_cast<size_t>(o.count()), 0);
        store(o, zero);
        for (size_t row = 0; row < where.size(); row++) {
            int64_t from = static_cast<int64_t>(row);
            copy_into(part(p, 0, where[row], 1), part(i, 0, from, 1));
            View sum = part(o, 0, where[row], 1), more = part(v, 0, from, 1);
            compute({o.type}, [&](auto kind) {
                auto a = load<decltype(kind)>(sum), b = load<decltype(kind)>(more);
                for (size_t k = 0; k < a.size(); k++) a[k] += b[k];
                store(sum, a);
            });
        }
    };
}

Work index_add(const aclTensor* self, int64_t dim, const aclTensor* indices, const aclTensor* source, const aclScalar* alpha, const aclTensor* out) {
    return [=, a = View(self), i = View(indices), s = View(source), by = *alpha, o = View(out)] {
        if (a.address != o.address) copy_into(o, a);
        size_t d = static_cast<size_t>(wrap(dim, o.dims.size()));
        int64_t from = 0;
        for (int64_t at : load<int64_t>(i)) {
            if (at < 0 || at >= o.dims[d]) throw Refusal("index out of range");
            View sum = part(o, d, at, 1), more = part(s, d, from++, 1);
            compute({o.type}, [&](auto zero) {
                using C = decltype(zero);
                auto x = load<C>(sum), y = load<C>(more);
                for (size_t k = 0; k < x.size(); k++) x[k] = static_cast<C>(x[k] + number<C>(by) * y[k]);
                store(sum, x);
            });
        }
    };
}

Work index_fill(const aclTensor* self, int64_t dim, const aclIntArray* indices, const aclScalar* value, const aclTensor* out) {
    return [dim, a = View(self), where = indices->values, v = *value, o = View(out)] {
        if (a.address != o.address) copy_into(o, a);
        size_t d = static_cast<size_t>(wrap(dim, a.dims.size()));
        for (int64_t i : where) {
            View slice = part(o, d, i < 0 ? i + o.dims[d] : i, 1);
            store(slice, std::vector<double>(static_cast<size_t>(slice.count()), number<double>(v)));
        }
    };
}

Work one_hot(const aclTensor* self, int64_t depth, const aclTensor* on, const aclTensor* off, const aclTensor* out) {
    return [depth, a = View(self), y = View(on), n = View(off), o = View(out)] {
        int64_t yes = load<int64_t>(y)[0], no = load<int64_t>(n)[0];
        std::vector<int64_t> values;
        for (int64_t at : load<int64_t>(a)) {
            for (int64_t i = 0; i < depth; i++) values.push_back(i == at ? yes : no);
        }
        store(o, values);
    };
}

}  // namespace
}  // namespace emu

using namespace emu;

OPERATOR(Index, (const aclTensor* self, const aclTensorList* indices, const aclTensor* out), index(self, indices, out))
OPERATOR(IndexPutImpl, (const aclTensor* self, const aclTensorList* indices, const aclTensor* values, bool accumulate, bool),
         index_put(self, indices, values, accumulate))
OPERATOR(IndexSelect, (const aclTensor* self, int64_t dim, const aclTensor* indices, const aclTensor* out),
         index_select(self, dim, indices, out))
OPERATOR(Gather, (const aclTensor* self, int64_t dim, const aclTensor* indices, const aclTensor* out),
         gather(self, dim, indices, out))
OPERATOR(Scatter, (const aclTensor* self, int64_t dim, const aclTensor* indices, const aclTensor* source,
                   int64_t reduction, const aclTensor* out),
         scatter(self, dim, indices, source, reduction, out))
OPERATOR(InplaceScatter, (const aclTensor* self, int64_t dim, const aclTensor* indices, const aclTensor* source,
                          int64_t reduction),
         scatter(self, dim, indices, source, reduction, self))
OPERATOR(ScatterAdd, (const aclTensor* self, int64_t dim, const aclTensor* indices, const aclTensor* source,
                      const aclTensor* out),
         scatter(self, dim, indices, source, 1, out))
OPERATOR(ScatterValue, (const aclTensor* self, int64_t dim, const aclTensor* indices, const aclScalar* value, int64_t,
                        const aclTensor* out),
         scatter_value(self, dim, indices, value, out))
OPERATOR(InplaceScatterValue, (const aclTensor* self, int64_t dim, const aclTensor* indices, const aclScalar* value, int64_t),
         scatter_value(self, dim, indices, value, self))
OPERATOR(MaskedSelect, (const aclTensor* self, const aclTensor* mask, aclTensor* out), masked_select(self, mask, out))
OPERATOR(Nonzero, (const aclTensor* self, aclTensor* out), nonzero(self, out, false))
OPERATOR(NonzeroV2, (const aclTensor* self, aclTensor* out), nonzero(self, out, true))
OPERATOR(Unique2, (const aclTensor* self, bool, bool inverse, bool counted, aclTensor* out, const aclTensor* places, const aclTensor* counts),
         unique(self, out, places, counts, inverse, counted))
OPERATOR(CoalesceSparse, (const aclTensor*, const aclTensor* to, const aclTensor* indices, const aclTensor* values, const aclTensor* new_indices,
                          const aclTensor* new_values),
         coalesce(to, indices, values, new_indices, new_values))
OPERATOR(IndexAdd, (const aclTensor* self, int64_t dim, const aclTensor* indices, const aclTensor* source, const aclScalar* alpha,
                    const aclTensor* out),
         index_add(self, dim, indices, source, alpha, out))
OPERATOR(InplaceIndexFillTensor, (const aclTensor* self, int64_t dim, const aclIntArray* indices, const aclScalar* value),
         index_fill(self, dim, indices, value, self))
OPERATOR(IndexFillTensor, (const aclTensor* self, int64_t dim, const aclIntArray* indices, const aclScalar* value,
                           const aclTensor* out),
         index_fill(self, dim, indices, value, out))
OPERATOR(OneHot, (const aclTensor* self, int64_t depth, const aclTensor* on, const aclTensor* off, int64_t, const aclTensor* out),
         one_hot(self, depth, on, off, out))
