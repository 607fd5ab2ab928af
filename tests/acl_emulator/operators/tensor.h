// Tensors as the operators see them, and moving their elements into plain vectors and back.
//
// An operator loads its inputs into contiguous vectors of one compute type, loops, and stores the result. That is
// slow and short, which is what a stand-in needs.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "../interface/acl.h"
#include "../number/number.h"

using Dims = std::vector<int64_t>;

struct aclTensor {
    Dims dims;
    Dims strides;
    aclDataType type;
    int64_t offset;  // in elements
    void* storage;
};

struct aclScalar {
    aclDataType type;
    double real;
    int64_t whole;
};

struct aclIntArray {
    Dims values;
};

struct aclFloatArray {
    std::vector<float> values;
};

struct aclBoolArray {
    std::vector<bool> values;
};

struct aclTensorList {
    std::vector<const aclTensor*> tensors;
};

struct aclScalarList {
    std::vector<const aclScalar*> scalars;
};

extern "C" void* aclemu_shadow(const void* pointer, size_t bytes);

namespace emu {

// Refusal ends an operator; its text reaches the user through aclGetRecentErrMsg.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

bool is_float(aclDataType type);  // any floating type
size_t size_of(aclDataType type);
int64_t count_of(const Dims& dims);
Dims broadcast(const Dims& a, const Dims& b);
int64_t wrap(int64_t dim, size_t rank);

// View is a copy of a tensor's description, safe to keep until the operator runs.
struct View {
    View() = default;
    View(const aclTensor* tensor);  // null gives an absent view
    bool present = false;
    Dims dims;
    Dims strides;
    aclDataType type = ACL_FLOAT;
    uint64_t address = 0;  // of the element at index 0
    int64_t count() const { return count_of(dims); }
    View expanded(const Dims& to) const;
    View transposed(size_t a, size_t b) const;
    View with_dims(const Dims& to, const Dims& by) const;
};

// dispatch calls f with a value of the C++ type that stores `type`.
template <typename F>
void dispatch(aclDataType type, F f) {
    switch (type) {
        case ACL_FLOAT: return f(float());
        case ACL_FLOAT16: return f(Half());
        case ACL_BF16: return f(BFloat16());
        case ACL_DOUBLE: return f(double());
        case ACL_INT8: return f(int8_t());
        case ACL_UINT8: return f(uint8_t());
        case ACL_INT16: return f(int16_t());
        case ACL_UINT16: return f(uint16_t());
        case ACL_INT32: return f(int32_t());
        case ACL_UINT32: return f(uint32_t());
        case ACL_INT64: return f(int64_t());
        case ACL_UINT64: return f(uint64_t());
        case ACL_BOOL: return f(bool());
        default: throw Refusal("data type " + std::to_string(type) + " has no CPU loop");
    }
}

// base gives the accessible alias of the view's element 0 after checking that all of the view is allocated.
void* base(const View& view);

// each calls f(offset in elements) for every element, in row-major order.
template <typename F>
void each(const View& view, F f) {
    int64_t n = view.count();
    if (!n) return;
    size_t rank = view.dims.size();
    Dims index(rank, 0);
    int64_t offset = 0;
    for (int64_t i = 0; i < n; i++) {
        f(offset);
        for (size_t d = rank; d-- > 0;) {
            offset += view.strides[d];
            if (++index[d] < view.dims[d]) break;
            offset -= view.strides[d] * view.dims[d];
            index[d] = 0;
        }
    }
}

template <typename C>
std::vector<C> load(const View& view) {
    std::vector<C> out;
    out.reserve(static_cast<size_t>(view.count()));
    dispatch(view.type, [&](auto zero) {
        using T = decltype(zero);
        const T* from = static_cast<const T*>(base(view));
        each(view, [&](int64_t at) { out.push_back(static_cast<C>(from[at])); });
    });
    return out;
}

template <typename C>
std::vector<C> load(const View& view, const Dims& as) {
    return load<C>(view.expanded(as));
}

template <typename C>
void store(const View& view, const std::vector<C>& values) {
    dispatch(view.type, [&](auto zero) {
        using T = decltype(zero);
        T* to = static_cast<T*>(base(view));
        size_t i = 0;
        if constexpr (std::is_same_v<T, bool>) {
            each(view, [&](int64_t at) { to[at] = values[i++] != C(0); });
        } else {
            each(view, [&](int64_t at) { to[at] = static_cast<T>(values[i++]); });
        }
    });
}

// number reads a scalar as the compute type.
template <typename C>
C number(const aclScalar& s) {
    return is_float(s.type) ? static_cast<C>(s.real) : static_cast<C>(s.whole);
}

// compute calls f with a value of the type in which operands of these types are worked on: int64_t, float or double.
template <typename F>
void compute(const std::vector<aclDataType>& types, F f) {
    bool real = false, wide = false;
    for (aclDataType t : types) {
        real = real || is_float(t);
        wide = wide || t == ACL_DOUBLE;
    }
    if (wide) return f(double());
    if (real) return f(float());
    f(int64_t());
}

}  // namespace emu
