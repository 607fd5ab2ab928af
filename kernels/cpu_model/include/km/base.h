// base.h: language extensions of Ascend C as the CPU model spells them.
//
// __gm__ and __ubuf__ are real address spaces, so device headers may overload on them and a
// pointer of one can never be passed for the other. Their values are device addresses: a kernel
// that dereferences one itself, instead of through a tensor or an accessor, is not modelled.
#ifndef KM_BASE_H
#define KM_BASE_H

#ifndef __clang__
#error "the CPU model needs clang: it uses address spaces in C++"
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define GSHMEM_CPU_MODEL 1
#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif
#ifndef __CCE_AICORE__
#define __CCE_AICORE__ 220
#endif

#define __gm__ __attribute__((address_space(1)))
#define __ubuf__ __attribute__((address_space(2)))
#define __global__
#define __aicore__
#define GM_ADDR __gm__ uint8_t*

namespace km {

// The place in a kernel (or device header) a rule is reported at. As a default argument it is the
// place of the caller.
struct Where {
    const char* file;
    int line;
    static constexpr Where here(const char* f = __builtin_FILE(), int l = __builtin_LINE())
    {
        return Where{f, l};
    }
};

inline uint32_t float_bits(float f)
{
    uint32_t u;
    std::memcpy(&u, &f, 4);
    return u;
}
inline float bits_float(uint32_t u)
{
    float f;
    std::memcpy(&f, &u, 4);
    return f;
}

// Rounds to nearest, ties to even, as CAST_RINT does.
inline uint16_t half_from_float(float f)
{
    const uint32_t u = float_bits(f);
    const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000);
    const int32_t exp = static_cast<int32_t>((u >> 23) & 0xff);
    uint32_t man = u & 0x7fffff;
    if (exp == 0xff) return static_cast<uint16_t>(sign | 0x7c00 | (man ? 0x200 | (man >> 13) : 0));
    const int32_t e = exp - 127 + 15;
    if (e >= 31) return static_cast<uint16_t>(sign | 0x7c00);
    if (e < -10) return sign;
    int shift = 13;
    uint32_t base = 0;
    if (e <= 0) {
        man |= 0x800000;
        shift = 14 - e;
    } else {
        base = static_cast<uint32_t>(e) << 10;
    }
    uint32_t r = base + (man >> shift);
    const uint32_t rest = man & ((1u << shift) - 1), half = 1u << (shift - 1);
    if (rest > half || (rest == half && (r & 1))) r++;
    return static_cast<uint16_t>(sign | r);
}

inline float half_to_float(uint16_t h)
{
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
    const uint32_t exp = (h >> 10) & 31, man = h & 0x3ff;
    if (exp == 31) return bits_float(sign | 0x7f800000 | (man << 13));
    if (exp != 0) return bits_float(sign | ((exp + 112) << 23) | (man << 13));
    const float v = static_cast<float>(man) * 5.9604644775390625e-8f; // 2^-24
    return sign ? -v : v;
}

inline uint16_t bfloat16_from_float(float f)
{
    const uint32_t u = float_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((u >> 16) | 0x40);
    return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

} // namespace km

struct half {
    uint16_t bits;
    half() = default;
    half(float f) : bits(km::half_from_float(f)) {}
    operator float() const { return km::half_to_float(bits); }
};

struct bfloat16_t {
    uint16_t bits;
    bfloat16_t() = default;
    bfloat16_t(float f) : bits(km::bfloat16_from_float(f)) {}
    operator float() const { return km::bits_float(static_cast<uint32_t>(bits) << 16); }
};

#endif
