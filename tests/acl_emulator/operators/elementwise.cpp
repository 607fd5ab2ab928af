// Operators that work element by element.
#include "elementwise.h"

using namespace emu;

#define UNARY(name, expression)                                                                     \
    OPERATOR(name, (const aclTensor* self, const aclTensor* out), unary(self, out, [](auto v) { return expression; })) \
    OPERATOR(Inplace##name, (const aclTensor* self), unary(self, self, [](auto v) { return expression; }))

UNARY(Relu, v > 0 || v != v ? v : 0)
UNARY(Neg, -v)
UNARY(Abs, v < 0 ? -v : v)
UNARY(Ceil, std::ceil(v))
UNARY(Floor, std::floor(v))
UNARY(Round, round_even(v))
UNARY(Trunc, std::trunc(v))
UNARY(Sqrt, std::sqrt(v))
UNARY(Rsqrt, 1 / std::sqrt(v))
UNARY(Exp, std::exp(v))
UNARY(Log, std::log(v))
UNARY(Log1p, std::log1p(v))
UNARY(Expm1, std::expm1(v))
UNARY(Sigmoid, 1 / (1 + std::exp(-v)))
UNARY(Tanh, std::tanh(v))
UNARY(Gelu, gelu(v))
UNARY(Silu, v / (1 + std::exp(-v)))
UNARY(Reciprocal, decltype(v)(1) / v)
UNARY(Sign, (v > 0) - (v < 0))
UNARY(Cos, std::cos(v))
UNARY(Sin, std::sin(v))
UNARY(Erf, std::erf(v))
UNARY(LogicalNot, v == 0)
UNARY(IsFinite, std::isfinite(v))

// Boolean not is logical, integer not is of all bits.
OPERATOR(BitwiseNot, (const aclTensor* self, const aclTensor* out),
         unary(self, out, [b = self->type == ACL_BOOL](auto v) { return b ? v == 0 : ~static_cast<int64_t>(v); }))

#define BINARY(name, expression)                                                                                \
    OPERATOR(name, (const aclTensor* self, const aclTensor* other, const aclTensor* out),                       \
             binary(self, other, out, [](auto a, auto b) { return expression; }))                              \
    OPERATOR(Inplace##name, (const aclTensor* self, const aclTensor* other),                                    \
             binary(self, other, self, [](auto a, auto b) { return expression; }))
#define SCALAR(name, expression)                                                                                \
    OPERATOR(name, (const aclTensor* self, const aclScalar* other, const aclTensor* out),                       \
             with_scalar(self, other, out, [](auto a, auto b) { return expression; }))                         \
    OPERATOR(Inplace##name, (const aclTensor* self, const aclScalar* other),                                    \
             with_scalar(self, other, self, [](auto a, auto b) { return expression; }))

BINARY(Mul, a * b)
SCALAR(Muls, a * b)
BINARY(Div, divide(a, b, 0))
SCALAR(Divs, divide(a, b, 0))
BINARY(FloorDivide, divide(a, b, 2))
SCALAR(FloorDivides, divide(a, b, 2))
BINARY(Maximum, keep_nan_max(a, b))
BINARY(Minimum, keep_nan_min(a, b))
BINARY(LogicalAnd, a != 0 && b != 0)
BINARY(LogicalOr, a != 0 || b != 0)
BINARY(LogicalXor, (a != 0) != (b != 0))
BINARY(BitwiseAndTensor, static_cast<int64_t>(a) & static_cast<int64_t>(b))
SCALAR(BitwiseAndScalar, static_cast<int64_t>(a) & static_cast<int64_t>(b))
BINARY(BitwiseOrTensor, static_cast<int64_t>(a) | static_cast<int64_t>(b))
SCALAR(BitwiseOrScalar, static_cast<int64_t>(a) | static_cast<int64_t>(b))
BINARY(BitwiseXorTensor, static_cast<int64_t>(a) ^ static_cast<int64_t>(b))
SCALAR(BitwiseXorScalar, static_cast<int64_t>(a) ^ static_cast<int64_t>(b))
BINARY(RemainderTensorTensor, remainder_of(a, b))
SCALAR(RemainderTensorScalar, remainder_of(a, b))
BINARY(FmodTensor, fmod_of(a, b))
SCALAR(FmodScalar, fmod_of(a, b))
BINARY(PowTensorTensor, power(a, b))
SCALAR(PowTensorScalar, power(a, b))
BINARY(EqTensor, a == b)
SCALAR(EqScalar, a == b)
BINARY(NeTensor, a != b)
SCALAR(NeScalar, a != b)
BINARY(GtTensor, a > b)
SCALAR(GtScalar, a > b)
BINARY(GeTensor, a >= b)
SCALAR(GeScalar, a >= b)
BINARY(LtTensor, a < b)
SCALAR(LtScalar, a < b)
BINARY(LeTensor, a <= b)
SCALAR(LeScalar, a <= b)
SCALAR(ClampMin, keep_nan_max(a, b))
SCALAR(ClampMax, keep_nan_min(a, b))
BINARY(ClampMinTensor, keep_nan_max(a, b))
BINARY(ClampMaxTensor, keep_nan_min(a, b))

OPERATOR(DivMod, (const aclTensor* self, const aclTensor* other, int mode, const aclTensor* out),
         binary(self, other, out, [mode](auto a, auto b) { return divide(a, b, mode); }))
OPERATOR(DivMods, (const aclTensor* self, const aclScalar* other, int mode, const aclTensor* out),
         with_scalar(self, other, out, [mode](auto a, auto b) { return divide(a, b, mode); }))
OPERATOR(InplaceDivMod, (const aclTensor* self, const aclTensor* other, int mode),
         binary(self, other, self, [mode](auto a, auto b) { return divide(a, b, mode); }))
OPERATOR(InplaceDivMods, (const aclTensor* self, const aclScalar* other, int mode),
         with_scalar(self, other, self, [mode](auto a, auto b) { return divide(a, b, mode); }))

// Sums with a factor on the second operand.
#define SCALED(name, expression)                                                                                     \
    OPERATOR(name, (const aclTensor* self, const aclTensor* other, const aclScalar* alpha, const aclTensor* out),    \
             binary(self, other, out, [s = *alpha](auto a, auto b) { auto k = number<decltype(a)>(s); return expression; })) \
    OPERATOR(Inplace##name, (const aclTensor* self, const aclTensor* other, const aclScalar* alpha),                 \
             binary(self, other, self, [s = *alpha](auto a, auto b) { auto k = number<decltype(a)>(s); return expression; })) \
    OPERATOR(name##s, (const aclTensor* self, const aclScalar* other, const aclScalar* alpha, const aclTensor* out), \
             with_scalar(self, other, out, [s = *alpha](auto a, auto b) { auto k = number<decltype(a)>(s); return expression; })) \
    OPERATOR(Inplace##name##s, (const aclTensor* self, const aclScalar* other, const aclScalar* alpha),              \
             with_scalar(self, other, self, [s = *alpha](auto a, auto b) { auto k = number<decltype(a)>(s); return expression; }))

SCALED(Add, a + k * b)
SCALED(Sub, a - k * b)
SCALED(Rsub, b - k * a)

#define WITH_FACTOR(name, expression)                                                                               \
    OPERATOR(name, (const aclTensor* self, const aclTensor* first, const aclTensor* second, const aclScalar* value, \
                    const aclTensor* out),                                                                          \
             ternary(self, first, second, out,                                                                      \
                     [s = *value](auto a, auto b, auto c) { auto k = number<decltype(a)>(s); return expression; })) \
    OPERATOR(Inplace##name, (const aclTensor* self, const aclTensor* first, const aclTensor* second,                \
                             const aclScalar* value),                                                               \
             ternary(self, first, second, self,                                                                     \
                     [s = *value](auto a, auto b, auto c) { auto k = number<decltype(a)>(s); return expression; }))

WITH_FACTOR(Addcmul, a + k * b * c)
WITH_FACTOR(Addcdiv, a + k * divide(b, c, 0))

namespace emu {
namespace {

constexpr auto kComplex64 = static_cast<aclDataType>(16), kComplex128 = static_cast<aclDataType>(17);

// Torch's two forms of linear interpolation, each exact at its end.
template <typename T>
T lerp_of(T a, T b, T w) {
    return std::abs(static_cast<double>(w)) < 0.5 ? a + w * (b - a) : b - (b - a) * (1 - w);
}

Work clamp(const aclTensor* self, const aclScalar* low, const aclScalar* high, const aclTensor* out) {
    aclScalar none{ACL_INT64, 0, 0};
    return unary(self, out, [hl = low != nullptr, hh = high != nullptr, l = low ? *low : none,
                             h = high ? *high : none](auto v) {
        using T = decltype(v);
        if (hl) v = keep_nan_max(v, number<T>(l));
        if (hh) v = keep_nan_min(v, number<T>(h));
        return v;
    });
}

bool is_complex(aclDataType type) { return type == kComplex64 || type == kComplex128; }

// as_real describes the same memory with a last dimension of real and imaginary parts.
aclTensor as_real(aclTensor t) {
    for (int64_t& stride : t.strides) stride *= 2;
    t.dims.push_back(2), t.strides.push_back(1);
    t.offset *= 2;
    t.type = t.type == kComplex64 ? ACL_FLOAT : ACL_DOUBLE;
    return t;
}

// copy_complex copies between complex numbers of one type, which the operator does to contiguous targets only.
Work copy_complex(const aclTensor* self, const aclTensor* source) {
    int64_t step = 1;
    for (size_t d = self->dims.size(); d-- > 0; step *= self->dims[d]) {
        if (self->dims[d] != 1 && self->strides[d] != step) throw Refusal("complex numbers are copied to contiguous tensors only");
    }
    if (source->type != self->type) throw Refusal("complex numbers are copied to their own type only");
    aclTensor to = as_real(*self), from = as_real(*source);
    return unary(&from, &to, [](auto v) { return v; });
}

// complex_of joins real and imaginary parts.
Work complex_of(const aclTensor* real, const aclTensor* imaginary, const aclTensor* out) {
    aclTensor parts[2] = {as_real(*out), as_real(*out)};
    Work works[2];
    for (int i = 0; i < 2; i++) {
        parts[i].offset += i;
        parts[i].dims.pop_back(), parts[i].strides.pop_back();
        works[i] = unary(i ? imaginary : real, &parts[i], [](auto v) { return v; });
    }
    return [a = works[0], b = works[1]] { a(), b(); };
}

}  // namespace
}  // namespace emu

OPERATOR(Lerp, (const aclTensor* self, const aclTensor* end, const aclTensor* weight, const aclTensor* out),
         ternary(self, end, weight, out, [](auto a, auto b, auto w) { return lerp_of(a, b, w); }))
OPERATOR(InplaceLerp, (const aclTensor* self, const aclTensor* end, const aclTensor* weight),
         ternary(self, end, weight, self, [](auto a, auto b, auto w) { return lerp_of(a, b, w); }))
OPERATOR(Lerps, (const aclTensor* self, const aclTensor* end, const aclScalar* weight, const aclTensor* out),
         binary(self, end, out, [w = *weight](auto a, auto b) { return lerp_of(a, b, number<decltype(a)>(w)); }))
OPERATOR(InplaceLerps, (const aclTensor* self, const aclTensor* end, const aclScalar* weight),
         binary(self, end, self, [w = *weight](auto a, auto b) { return lerp_of(a, b, number<decltype(a)>(w)); }))

OPERATOR(Clamp, (const aclTensor* self, const aclScalar* low, const aclScalar* high, const aclTensor* out),
         clamp(self, low, high, out))
OPERATOR(InplaceClamp, (const aclTensor* self, const aclScalar* low, const aclScalar* high), clamp(self, low, high, self))

OPERATOR(SWhere, (const aclTensor* condition, const aclTensor* self, const aclTensor* other, const aclTensor* out),
         ternary(condition, self, other, out, [](auto c, auto a, auto b) { return c != 0 ? a : b; }))
OPERATOR(InplaceMaskedFillScalar, (const aclTensor* self, const aclTensor* mask, const aclScalar* value),
         binary(self, mask, self, [s = *value](auto a, auto m) { return m != 0 ? number<decltype(a)>(s) : a; }))
OPERATOR(InplaceMaskedFillTensor, (const aclTensor* self, const aclTensor* mask, const aclTensor* value),
         ternary(self, mask, value, self, [](auto a, auto m, auto v) { return m != 0 ? v : a; }))

// Slopes. `self` is the input of the forward operator, `result` its output.
OPERATOR(ThresholdBackward, (const aclTensor* grad, const aclTensor* self, const aclScalar* threshold, const aclTensor* out),
         binary(grad, self, out, [t = *threshold](auto g, auto v) { return v > number<decltype(v)>(t) ? g : 0; }))
OPERATOR(Threshold, (const aclTensor* self, const aclScalar* threshold, const aclScalar* value, const aclTensor* out),
         unary(self, out, [t = *threshold, s = *value](auto v) {
             return v > number<decltype(v)>(t) ? v : number<decltype(v)>(s);
         }))
OPERATOR(SigmoidBackward, (const aclTensor* grad, const aclTensor* result, const aclTensor* out),
         binary(grad, result, out, [](auto g, auto y) { return g * (1 - y) * y; }))
OPERATOR(TanhBackward, (const aclTensor* grad, const aclTensor* result, const aclTensor* out),
         binary(grad, result, out, [](auto g, auto y) { return g * (1 - y * y); }))
OPERATOR(GeluBackward, (const aclTensor* grad, const aclTensor* self, const aclTensor* out),
         binary(grad, self, out, [](auto g, auto v) { return g * gelu_slope(v); }))
// The approximate forms: 0 or "none" is exact, 1 or "tanh" is not supported here.
OPERATOR(GeluV2, (const aclTensor* self, int64_t approximate, const aclTensor* out),
         approximate ? throw Refusal("the tanh form of gelu has no CPU loop") : unary(self, out, [](auto v) { return gelu(v); }))
OPERATOR(GeluBackwardV2, (const aclTensor* grad, const aclTensor* self, const char* approximate, const aclTensor* out),
         approximate && !strcmp(approximate, "tanh") ? throw Refusal("the tanh form of gelu has no CPU loop")
                                                    : binary(grad, self, out, [](auto g, auto v) { return g * gelu_slope(v); }))
OPERATOR(SiluBackward, (const aclTensor* grad, const aclTensor* self, const aclTensor* out),
         binary(grad, self, out, [](auto g, auto v) {
             auto s = 1 / (1 + std::exp(-v));
             return g * s * (1 + v * (1 - s));
         }))

OPERATOR(IsClose, (const aclTensor* self, const aclTensor* other, double relative, double absolute, bool equal_nan,
                   const aclTensor* out),
         binary(self, other, out, [=](auto a, auto b) {
             if (a != a || b != b) return equal_nan && a != a && b != b;
             return a == b || std::abs(static_cast<double>(a) - b) <= absolute + relative * std::abs(static_cast<double>(b));
         }))

// Copies, casts and fills.
OPERATOR(Complex, (const aclTensor* real, const aclTensor* imaginary, const aclTensor* out), complex_of(real, imaginary, out))
OPERATOR(InplaceCopy, (const aclTensor* self, const aclTensor* source),
         is_complex(self->type) ? copy_complex(self, source) : unary(source, self, [](auto v) { return v; }))
OPERATOR(Cast, (const aclTensor* self, aclDataType, const aclTensor* out), unary(self, out, [](auto v) { return v; }))
OPERATOR(InplaceFillTensor, (const aclTensor* self, const aclTensor* value), unary(value, self, [](auto v) { return v; }))
OPERATOR(InplaceFillScalar, (const aclTensor* self, const aclScalar* value),
         with_scalar(self, value, self, [](auto, auto b) { return b; }))
OPERATOR(InplaceZero, (const aclTensor* self), unary(self, self, [](auto) { return 0; }))
OPERATOR(InplaceOne, (const aclTensor* self), unary(self, self, [](auto) { return 1; }))
