/*
 * number.h - low-precision floats to float32 and back, as plain integer code that compilers vectorise. Rounding is to
 * nearest even; a NaN stays a NaN; the results do not depend on the denormals-are-zero mode of the thread.
 */
#ifndef GSHMEM_HOT_NUMBER_H
#define GSHMEM_HOT_NUMBER_H

#include <stdint.h>
#include <string.h>

#define NUM static inline __attribute__((always_inline, unused))

NUM uint32_t num_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

NUM float num_float(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

/* yes ? a : b without a branch: both were computed anyway, and loops with branches are not vectorised. */
NUM uint32_t num_pick(int yes, uint32_t a, uint32_t b) {
  uint32_t mask = 0u - (uint32_t)yes;
  return (a & mask) | (b & ~mask);
}

NUM float num_from_bf16(uint16_t h) { return num_float((uint32_t)h << 16); }

NUM uint16_t num_to_bf16(float f) {
  uint32_t u = num_bits(f), r = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  return (uint16_t)num_pick((u & 0x7fffffffu) > 0x7f800000u, 0x7fc0u, r);
}

/* A small float: mb mantissa bits, exponent bias, sign on top of 7 or 15 bits. 2^k as a float is built from its bits. */
NUM float num_pow2(int k) { return num_float((uint32_t)(127 + k) << 23); }

NUM uint32_t num_widen(uint32_t magnitude, int mb, int bias) {
  uint32_t normal = (magnitude << (23 - mb)) + ((uint32_t)(127 - bias) << 23);
  uint32_t tiny = num_bits((float)(int32_t)magnitude * num_pow2(1 - bias - mb)); /* exact */
  return num_pick(magnitude >> mb != 0, normal, tiny);
}

/* Magnitude bits of the nearest small float, as if its exponent had no upper end. */
NUM uint32_t num_narrow(uint32_t magnitude, int mb, int bias) {
  uint32_t odd = magnitude >> (23 - mb) & 1u;
  uint32_t normal = ((magnitude + (1u << (22 - mb)) - 1u + odd) >> (23 - mb)) - ((uint32_t)(127 - bias) << mb);
  float unit = num_pow2(24 - bias - mb); /* its last bit is the small float's last bit: the addition rounds */
  uint32_t tiny = num_bits(num_float(magnitude) + unit) - num_bits(unit);
  return num_pick(magnitude < (uint32_t)(128 - bias) << 23, tiny, normal);
}

NUM float num_from_f16(uint16_t h) {
  uint32_t m = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
  uint32_t wide = num_widen(m, 10, 15);
  return num_float(sign | num_pick(m >= 0x7c00u, 0x7f800000u | (m & 0x3ffu) << 13, wide));
}

NUM uint16_t num_to_f16(float f) {
  uint32_t u = num_bits(f), m = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
  uint32_t r = num_narrow(m, 10, 15);
  r = num_pick((r > 0x7c00u) | (m >= 0x47800000u), 0x7c00u, r); /* 65536 and more, also infinity */
  return (uint16_t)(sign | num_pick(m > 0x7f800000u, 0x7e00u, r));
}

/* e4m3fn: no infinity, 0x7f is NaN and what overflows becomes it, as in torch. */
NUM float num_from_e4m3fn(uint8_t x) {
  uint32_t m = x & 0x7fu, wide = num_widen(m, 3, 7);
  return num_float((uint32_t)(x & 0x80u) << 24 | num_pick(m == 0x7fu, 0x7fc00000u, wide));
}

NUM uint8_t num_to_e4m3fn(float f) {
  uint32_t u = num_bits(f), m = u & 0x7fffffffu, r = num_narrow(m, 3, 7);
  return (uint8_t)((u >> 24 & 0x80u) | num_pick((r > 0x7fu) | (m >= 0x43f00000u), 0x7fu, r));
}

NUM float num_from_e5m2(uint8_t x) {
  uint32_t m = x & 0x7fu, wide = num_widen(m, 2, 15);
  return num_float((uint32_t)(x & 0x80u) << 24 | num_pick(m >= 0x7cu, 0x7f800000u | (m & 3u) << 21, wide));
}

NUM uint8_t num_to_e5m2(float f) {
  uint32_t u = num_bits(f), m = u & 0x7fffffffu, r = num_narrow(m, 2, 15);
  r = num_pick((r > 0x7cu) | (m >= 0x47800000u), 0x7cu, r);
  return (uint8_t)((u >> 24 & 0x80u) | num_pick(m > 0x7f800000u, 0x7fu, r));
}

/* fnuz: no infinity, no minus zero, 0x80 is the only NaN and what overflows becomes it, as in torch. */
NUM float num_from_fnuz(uint8_t x, int mb, int bias) {
  uint32_t wide = num_widen(x & 0x7fu, mb, bias);
  return num_float(num_pick(x == 0x80u, 0x7fc00000u, (uint32_t)(x & 0x80u) << 24 | wide));
}

NUM uint8_t num_to_fnuz(float f, int mb, int bias, uint32_t limit) {
  uint32_t u = num_bits(f), m = u & 0x7fffffffu, r = num_narrow(m, mb, bias);
  uint32_t sign = num_pick(r == 0, 0u, u >> 24 & 0x80u);
  return (uint8_t)num_pick((r > 0x7fu) | (m >= limit), 0x80u, sign | r);
}

NUM float num_from_e4m3fnuz(uint8_t x) { return num_from_fnuz(x, 3, 8); }
NUM uint8_t num_to_e4m3fnuz(float f) { return num_to_fnuz(f, 3, 8, 0x43800000u); }
NUM float num_from_e5m2fnuz(uint8_t x) { return num_from_fnuz(x, 2, 16); }
NUM uint8_t num_to_e5m2fnuz(float f) { return num_to_fnuz(f, 2, 16, 0x47800000u); }

#endif
