// Parts of tensors and copies between them.
#pragma once

#include "op.h"

namespace emu {

inline std::vector<View> views_of(const aclTensorList* list) {
    std::vector<View> views;
    for (const aclTensor* t : list->tensors) views.emplace_back(t);
    return views;
}

inline void copy_into(const View& to, const View& from) {
    compute({to.type, from.type}, [&](auto zero) { store(to, load<decltype(zero)>(from)); });
}

// part is the stretch [start, start + size) of one dimension.
inline View part(const View& view, size_t dim, int64_t start, int64_t size) {
    View v = view;
    v.dims[dim] = size;
    v.address += static_cast<uint64_t>(start * view.strides[dim]) * size_of(view.type);
    return v;
}

}  // namespace emu
