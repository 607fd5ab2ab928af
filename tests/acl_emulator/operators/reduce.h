// Walking along some dimensions of a tensor: shared by reductions, softmax and the like.
#pragma once

#include "tensor.h"

namespace emu {

// Split separates a view into the dimensions that stay and those that are walked.
struct Split {
    View kept;
    View walked;  // with address 0: only shape and strides matter
    Split(const View& view, const Dims& dims, bool all_when_empty = true);
};

// rows calls f(values, row) for each row along the walked dimensions, in order.
template <typename C, typename F>
void rows(const View& view, const Dims& dims, F f) {
    Split split(view, dims);
    std::vector<C> values;
    dispatch(view.type, [&](auto zero) {
        using T = decltype(zero);
        const T* from = static_cast<const T*>(base(view));
        size_t row = 0;
        each(split.kept, [&](int64_t start) {
            values.clear();
            each(split.walked, [&](int64_t step) { values.push_back(static_cast<C>(from[start + step])); });
            f(values, row++);
        });
    });
}

// reduce stores f(values) of each row; the result's shape may keep the walked dimensions as 1 or drop them.
template <typename C, typename F>
void reduce(const View& in, const Dims& dims, const View& out, F f) {
    std::vector<C> results;
    rows<C>(in, dims, [&](const std::vector<C>& values, size_t) { results.push_back(f(values)); });
    store(out, results);
}

}  // namespace emu
