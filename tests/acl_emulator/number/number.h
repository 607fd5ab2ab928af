// Numbers as the device stores them: half and bfloat16 beside the C types. Arithmetic on the small floats happens in
// float and is rounded to nearest even when stored.
#pragma once

#include <cstdint>
#include <cstring>

namespace emu {

inline uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

inline float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

struct Half {
    uint16_t bits = 0;
    Half() = default;
    Half(float f) {
        uint32_t u = bits_of(f), sign = (u >> 16) & 0x8000, magnitude = u & 0x7FFFFFFF;
        if (magnitude > 0x7F800000) {
            bits = static_cast<uint16_t>(sign | 0x7E00);
        } else if (magnitude >= 0x477FF000) {  // rounds to infinity
            bits = static_cast<uint16_t>(sign | 0x7C00);
        } else if (magnitude < 0x38800000) {  // subnormal: let the adder round
            float shifted = float_of(magnitude) + 0.5f;
            bits = static_cast<uint16_t>(sign | (bits_of(shifted) - 0x3F000000));
        } else {
            uint32_t odd = (magnitude >> 13) & 1;
            bits = static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xFFF + odd) >> 13));
        }
    }
    operator float() const {
        uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, magnitude = bits & 0x7FFF;
        if (magnitude >= 0x7C00) return float_of(sign | 0x7F800000 | (magnitude << 13));
        if (magnitude >= 0x0400) return float_of(sign | ((magnitude << 13) + 0x38000000));
        return float_of(sign | bits_of(static_cast<float>(magnitude) * 5.9604644775390625e-8f));
    }
};

struct BFloat16 {
    uint16_t bits = 0;
    BFloat16() = default;
    BFloat16(float f) {
        uint32_t u = bits_of(f);
        bool nan = (u & 0x7FFFFFFF) > 0x7F800000;
        bits = static_cast<uint16_t>(nan ? 0x7FC0 | (u >> 16 & 0x8000) : (u + 0x7FFF + ((u >> 16) & 1)) >> 16);
    }
    operator float() const { return float_of(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace emu
