#include "tensor.h"

#include <cmath>
#include <cstring>

namespace emu {

bool is_float(aclDataType type) {
    return type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16 || type == ACL_DOUBLE;
}

size_t size_of(aclDataType type) {
    size_t size = 0;
    dispatch(type, [&](auto zero) { size = sizeof zero; });
    return size;
}

int64_t count_of(const Dims& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
}

Dims broadcast(const Dims& a, const Dims& b) {
    size_t rank = std::max(a.size(), b.size());
    Dims out(rank);
    for (size_t i = 0; i < rank; i++) {
        int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
        int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
        if (x != y && x != 1 && y != 1) throw Refusal("shapes do not broadcast");
        out[i] = x == 1 ? y : x;
    }
    return out;
}

int64_t wrap(int64_t dim, size_t rank) {
    int64_t r = rank ? static_cast<int64_t>(rank) : 1;
    return dim < 0 ? dim + r : dim;
}

View::View(const aclTensor* tensor) {
    if (!tensor) return;
    present = true;
    dims = tensor->dims;
    strides = tensor->strides;
    type = tensor->type;
    address = reinterpret_cast<uint64_t>(tensor->storage) + static_cast<uint64_t>(tensor->offset) * size_of(type);
}

View View::expanded(const Dims& to) const {
    View v = *this;
    v.dims = to;
    v.strides.assign(to.size(), 0);
    if (dims.size() > to.size()) throw Refusal("cannot expand to fewer dimensions");
    for (size_t i = 0; i < dims.size(); i++) {
        size_t at = i + to.size() - dims.size();
        if (dims[i] != to[at] && dims[i] != 1) throw Refusal("shapes do not broadcast");
        v.strides[at] = dims[i] == to[at] ? strides[i] : 0;
    }
    return v;
}

View View::transposed(size_t a, size_t b) const {
    View v = *this;
    std::swap(v.dims[a], v.dims[b]);
    std::swap(v.strides[a], v.strides[b]);
    return v;
}

View View::with_dims(const Dims& to, const Dims& by) const {
    View v = *this;
    v.dims = to;
    v.strides = by;
    return v;
}

void* base(const View& view) {
    static char nothing[16];
    if (!view.present) throw Refusal("a tensor is missing");
    if (!view.count()) return nothing;
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < view.dims.size(); i++) {
        int64_t reach = view.strides[i] * (view.dims[i] - 1);
        (reach < 0 ? low : high) += reach;
    }
    int64_t size = static_cast<int64_t>(size_of(view.type));
    uint64_t first = view.address + static_cast<uint64_t>(low * size);
    char* at = static_cast<char*>(
        aclemu_shadow(reinterpret_cast<void*>(first), static_cast<size_t>((high - low + 1) * size)));
    if (!at) {
        char text[96];
        snprintf(text, sizeof text, "device memory at 0x%lx is not allocated (any more)", static_cast<unsigned long>(first));
        throw Refusal(text);
    }
    return at - low * size;
}

}  // namespace emu

using namespace emu;

extern "C" {

aclTensor* aclCreateTensor(const int64_t* dims, uint64_t rank, aclDataType type, const int64_t* strides, int64_t offset,
                           int, const int64_t*, uint64_t, void* storage) {
    auto* t = new aclTensor{Dims(dims, dims + rank), Dims(rank), type, offset, storage};
    int64_t step = 1;
    for (uint64_t i = rank; i-- > 0;) {
        t->strides[i] = strides ? strides[i] : step;
        step *= dims[i];
    }
    return t;
}

int aclDestroyTensor(const aclTensor* tensor) {
    delete tensor;
    return 0;
}

aclScalar* aclCreateScalar(void* value, aclDataType type) {
    auto* s = new aclScalar{type, 0, 0};
    try {
        dispatch(type, [&](auto zero) {
            memcpy(&zero, value, sizeof zero);
            s->real = static_cast<double>(zero);
            if constexpr (std::is_integral_v<decltype(zero)>) s->whole = static_cast<int64_t>(zero);
            else s->whole = std::isfinite(s->real) ? static_cast<int64_t>(s->real) : 0;
        });
    } catch (const Refusal&) {
        delete s;
        return nullptr;
    }
    return s;
}

int aclDestroyScalar(const aclScalar* scalar) {
    delete scalar;
    return 0;
}

aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t n) { return new aclIntArray{Dims(values, values + n)}; }

int aclDestroyIntArray(const aclIntArray* array) {
    delete array;
    return 0;
}

aclFloatArray* aclCreateFloatArray(const float* values, uint64_t n) {
    return new aclFloatArray{std::vector<float>(values, values + n)};
}

int aclDestroyFloatArray(const aclFloatArray* array) {
    delete array;
    return 0;
}

aclBoolArray* aclCreateBoolArray(const bool* values, uint64_t n) {
    return new aclBoolArray{std::vector<bool>(values, values + n)};
}

int aclDestroyBoolArray(const aclBoolArray* array) {
    delete array;
    return 0;
}

aclTensorList* aclCreateTensorList(const aclTensor* const* tensors, uint64_t n) {
    return new aclTensorList{std::vector<const aclTensor*>(tensors, tensors + n)};
}

int aclDestroyTensorList(const aclTensorList* list) {
    for (const aclTensor* t : list->tensors) delete t;
    delete list;
    return 0;
}

aclScalarList* aclCreateScalarList(const aclScalar* const* scalars, uint64_t n) {
    return new aclScalarList{std::vector<const aclScalar*>(scalars, scalars + n)};
}

int aclDestroyScalarList(const aclScalarList* list) {
    for (const aclScalar* s : list->scalars) delete s;
    delete list;
    return 0;
}

int aclGetViewShape(const aclTensor* tensor, int64_t** dims, uint64_t* rank) {
    *rank = tensor->dims.size();
    *dims = new int64_t[*rank];
    std::copy(tensor->dims.begin(), tensor->dims.end(), *dims);
    return 0;
}
}
