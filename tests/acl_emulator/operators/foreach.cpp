// Operators over lists of tensors, as optimisers use them: the plain operator for each member.
#include "elementwise.h"

namespace emu {
namespace {

using List = aclTensorList;

// member calls f(i) for each tensor of the list and runs what it made one after another.
template <typename F>
Work member(const List* list, F f) {
    std::vector<Work> all;
    for (size_t i = 0; i < list->tensors.size(); i++) all.push_back(f(i));
    return [all] {
        for (const Work& work : all) work();
    };
}

template <typename F>
Work one(const List* x, const List* out, F f) {
    return member(x, [&](size_t i) { return unary(x->tensors[i], out->tensors[i], f); });
}

template <typename F>
Work two(const List* x, const List* y, const List* out, F f) {
    return member(x, [&](size_t i) { return binary(x->tensors[i], y->tensors[i], out->tensors[i], f); });
}

template <typename F>
Work by_scalar(const List* x, const aclScalar* s, const List* out, F f) {
    return member(x, [&](size_t i) { return with_scalar(x->tensors[i], s, out->tensors[i], f); });
}

// by_tensor takes the scalar as a tensor of one element; by_list one scalar per tensor.
template <typename F>
Work by_tensor(const List* x, const aclTensor* s, const List* out, F f) {
    return member(x, [&](size_t i) { return binary(x->tensors[i], s, out->tensors[i], f); });
}

template <typename F>
Work by_list(const List* x, const aclScalarList* s, const List* out, F f) {
    return member(x, [&](size_t i) { return with_scalar(x->tensors[i], s->scalars[i], out->tensors[i], f); });
}

// scaled_add adds k * y, the factor being a tensor of one element.
Work scaled_add(const List* x, const List* y, const aclTensor* k, const List* out) {
    return member(x, [&](size_t i) {
        return ternary(x->tensors[i], y->tensors[i], k, out->tensors[i], [](auto a, auto b, auto f) { return a + f * b; });
    });
}

template <typename F>
Work factored(const List* x, const List* y, const List* z, F scalar_of, const List* out, bool divide_them) {
    return member(x, [&](size_t i) {
        auto k = scalar_of(i);
        return ternary(x->tensors[i], y->tensors[i], z->tensors[i], out->tensors[i], [=](auto a, auto b, auto c) {
            return a + k(a) * (divide_them ? divide(b, c, 0) : b * c);
        });
    });
}

auto same(const aclScalar* s) {
    return [v = *s](size_t) { return [v](auto like) { return number<decltype(like)>(v); }; };
}

auto listed(const aclScalarList* s) {
    return [s](size_t i) { return [v = *s->scalars[i]](auto like) { return number<decltype(like)>(v); }; };
}

// from_tensor reads the factor when the operator runs.
auto from_tensor(const aclTensor* s) {
    return [v = View(s)](size_t) { return [v](auto like) { return load<decltype(like)>(v)[0]; }; };
}

Work norms(const List* x, double p, const List* out) {
    return member(x, [&](size_t i) -> Work {
        return [p, a = View(x->tensors[i]), o = View(out->tensors[i])] {
            double total = 0, top = 0;
            for (double v : load<double>(a)) total += std::pow(std::abs(v), p), top = std::max(top, std::abs(v));
            store(o, std::vector<double>{std::isinf(p) ? top : std::pow(total, 1 / p)});
        };
    });
}

Work lerps(const List* x, const List* y, const aclScalar* w, const List* out) {
    return member(x, [&](size_t i) {
        return binary(x->tensors[i], y->tensors[i], out->tensors[i], [v = *w](auto a, auto b) {
            auto k = number<decltype(a)>(v);
            return k < 0.5 && k > -0.5 ? a + k * (b - a) : b - (b - a) * (1 - k);
        });
    });
}

}  // namespace
}  // namespace emu

using namespace emu;

#define LIST_ONE(name, expression) \
    OPERATOR(Foreach##name, (const List* x, const List* out), one(x, out, [](auto v) { return expression; }))
LIST_ONE(Abs, v < 0 ? -v : v)
LIST_ONE(Neg, -v)
LIST_ONE(Sqrt, std::sqrt(v))
LIST_ONE(Exp, std::exp(v))
LIST_ONE(Log, std::log(v))
LIST_ONE(Reciprocal, decltype(v)(1) / v)
LIST_ONE(Sign, (v > 0) - (v < 0))

OPERATOR(ForeachZeroInplace, (const List* x), one(x, x, [](auto) { return 0; }))
OPERATOR(ForeachCopy, (const List* from, const List* to), one(from, to, [](auto v) { return v; }))
OPERATOR(ForeachNorm, (const List* x, const aclScalar* p, const List* out), norms(x, number<double>(*p), out))
OPERATOR(ForeachLerpScalar, (const List* x, const List* y, const aclScalar* w, const List* out), lerps(x, y, w, out))

#define LIST_TWO(name, expression)                                                                    \
    OPERATOR(Foreach##name##List, (const List* x, const List* y, const List* out),                    \
             two(x, y, out, [](auto a, auto b) { return expression; }))                               \
    OPERATOR(Foreach##name##Scalar, (const List* x, const aclTensor* s, const List* out),             \
             by_tensor(x, s, out, [](auto a, auto b) { return expression; }))                         \
    OPERATOR(Foreach##name##ScalarV2, (const List* x, const aclScalar* s, const List* out),           \
             by_scalar(x, s, out, [](auto a, auto b) { return expression; }))                         \
    OPERATOR(Foreach##name##ScalarList, (const List* x, const aclScalarList* s, const List* out),     \
             by_list(x, s, out, [](auto a, auto b) { return expression; }))
LIST_TWO(Mul, a * b)
LIST_TWO(Div, divide(a, b, 0))
LIST_TWO(Maximum, keep_nan_max(a, b))
LIST_TWO(Minimum, keep_nan_min(a, b))

#define LIST_SCALAR(name, expression)                                                                 \
    OPERATOR(Foreach##name##Scalar, (const List* x, const aclTensor* s, const List* out),             \
             by_tensor(x, s, out, [](auto a, auto b) { return expression; }))                         \
    OPERATOR(Foreach##name##ScalarV2, (const List* x, const aclScalar* s, const List* out),           \
             by_scalar(x, s, out, [](auto a, auto b) { return expression; }))                         \
    OPERATOR(Foreach##name##ScalarList, (const List* x, const aclScalarList* s, const List* out),     \
             by_list(x, s, out, [](auto a, auto b) { return expression; }))
LIST_SCALAR(Add, a + b)
LIST_SCALAR(Sub, a - b)
LIST_SCALAR(Pow, power(a, b))

OPERATOR(ForeachAddList, (const List* x, const List* y, const aclTensor* k, const List* out), scaled_add(x, y, k, out))
OPERATOR(ForeachAddListV2, (const List* x, const List* y, const aclScalar* k, const List* out),
         two(x, y, out, [s = *k](auto a, auto b) { return a + number<decltype(a)>(s) * b; }))
OPERATOR(ForeachSubListV2, (const List* x, const List* y, const aclScalar* k, const List* out),
         two(x, y, out, [s = *k](auto a, auto b) { return a - number<decltype(a)>(s) * b; }))

#define LIST_FACTORED(name, divides)                                                                             \
    OPERATOR(Foreach##name##Scalar, (const List* x, const List* y, const List* z, const aclTensor* s, const List* out), \
             factored(x, y, z, from_tensor(s), out, divides))                                                    \
    OPERATOR(Foreach##name##ScalarV2, (const List* x, const List* y, const List* z, const aclScalar* s, const List* out), \
             factored(x, y, z, same(s), out, divides))                                                           \
    OPERATOR(Foreach##name##ScalarList, (const List* x, const List* y, const List* z, const aclScalarList* s,    \
                                         const List* out),                                                       \
             factored(x, y, z, listed(s), out, divides))
LIST_FACTORED(Addcmul, false)
LIST_FACTORED(Addcdiv, true)
