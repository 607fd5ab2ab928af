// Loops over elements: one, two or three operands to a result of the same shape.
#pragma once

#include <cmath>

#include "op.h"

namespace emu {

template <typename F>
Work unary(const aclTensor* self, const aclTensor* out, F f) {
    return [=, a = View(self), o = View(out)] {
        compute({a.type, o.type}, [&](auto zero) {
            using C = decltype(zero);
            auto x = load<C>(a, o.dims);
            for (auto& v : x) v = static_cast<C>(f(v));
            store(o, x);
        });
    };
}

// binary works in the types of both inputs, and of the result unless that is boolean.
template <typename F>
Work binary(const aclTensor* self, const aclTensor* other, const aclTensor* out, F f) {
    return [=, a = View(self), b = View(other), o = View(out)] {
        compute({a.type, b.type, o.type}, [&](auto zero) {
            using C = decltype(zero);
            auto x = load<C>(a, o.dims), y = load<C>(b, o.dims);
            for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<C>(f(x[i], y[i]));
            store(o, x);
        });
    };
}

template <typename F>
Work with_scalar(const aclTensor* self, const aclScalar* other, const aclTensor* out, F f) {
    return [=, a = View(self), s = *other, o = View(out)] {
        // A fractional scalar takes integers to floating point, but never float to double.
        aclDataType by = is_float(s.type) ? ACL_FLOAT : ACL_INT64;
        compute({a.type, o.type, by}, [&](auto zero) {
            using C = decltype(zero);
            auto x = load<C>(a, o.dims);
            C y = number<C>(s);
            for (auto& v : x) v = static_cast<C>(f(v, y));
            store(o, x);
        });
    };
}

template <typename F>
Work ternary(const aclTensor* self, const aclTensor* first, const aclTensor* second, const aclTensor* out, F f) {
    return [=, a = View(self), b = View(first), c = View(second), o = View(out)] {
        compute({a.type, b.type, c.type, o.type}, [&](auto zero) {
            using C = decltype(zero);
            auto x = load<C>(a, o.dims), y = load<C>(b, o.dims), z = load<C>(c, o.dims);
            for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<C>(f(x[i], y[i], z[i]));
            store(o, x);
        });
    };
}

template <typename T>
T round_even(T v) {
    if constexpr (std::is_integral_v<T>) return v;
    else return std::nearbyint(v);
}

template <typename T>
auto gelu(T v) {
    using std::erf;
    return 0.5 * v * (1 + erf(static_cast<double>(v) * M_SQRT1_2));
}

template <typename T>
double gelu_slope(T v) {
    double x = v;
    return 0.5 * (1 + std::erf(x * M_SQRT1_2)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}

template <typename T>
T remainder_of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        T r = b ? a % b : 0;
        return r && ((r < 0) != (b < 0)) ? r + b : r;
    } else {
        T r = std::fmod(a, b);
        return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
    }
}

template <typename T>
T fmod_of(T a, T b) {
    if constexpr (std::is_integral_v<T>) return b ? a % b : 0;
    else return std::fmod(a, b);
}

template <typename T>
T divide(T a, T b, int mode) {
    if constexpr (std::is_integral_v<T>) {
        if (!b) return 0;
        T q = a / b;
        return mode == 2 && a % b && ((a < 0) != (b < 0)) ? q - 1 : q;
    } else {
        T q = a / b;
        return mode == 1 ? std::trunc(q) : mode == 2 ? std::floor(q) : q;
    }
}

template <typename T>
T power(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        T r = 1;
        for (T i = 0; i < b; i++) r *= a;
        return r;
    } else {
        return std::pow(a, b);
    }
}

template <typename T>
T keep_nan_max(T a, T b) { return a > b || a != a ? a : b; }
template <typename T>
T keep_nan_min(T a, T b) { return a < b || a != a ? a : b; }

}  // namespace emu
