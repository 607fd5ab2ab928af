// shmem_def.h: types, constants and type lists of the device API.
//
// A kernel's first statement should be
//     aclshmemx_set_state(state);
// with the state address its launcher was given. Kernels without it find the state at the fixed
// address (shmem_state.h), which exists only where the device layer could reserve it.
#ifndef ACLSHMEM_DEVICE_DEF_H
#define ACLSHMEM_DEVICE_DEF_H

#include "device/internal/copy.h"
#include "device/internal/sync.h"

#ifndef SHMEM_TYPES_H // the host's type header, when it came first, has these
#define ACLSHMEM_MAX_PES GSHMEM_MAX_PES
#define ACLSHMEM_MAX_TEAMS GSHMEM_MAX_TEAMS
#define SCALAR_DATA_CACHELINE_SIZE 64
typedef int aclshmem_team_t;
typedef gshmem_team_state_t aclshmemx_team_t;
enum aclshmem_team_index_t { ACLSHMEM_TEAM_INVALID = -1, ACLSHMEM_TEAM_WORLD = 0 };
enum aclshmem_signal_op_type_t { ACLSHMEM_SIGNAL_SET = 0, ACLSHMEM_SIGNAL_ADD = 1 };
enum aclshmem_cmp_op_type_t {
    ACLSHMEM_CMP_EQ = 0, ACLSHMEM_CMP_NE, ACLSHMEM_CMP_GT, ACLSHMEM_CMP_GE, ACLSHMEM_CMP_LT, ACLSHMEM_CMP_LE
};
#endif

// (NAME, C type) lists.
#define GSHMEM_RMA_TYPES(F) \
    F(half, half) F(float, float) F(double, double) F(int8, int8_t) F(int16, int16_t) F(int32, int32_t) F(int64, int64_t) \
    F(uint8, uint8_t) F(uint16, uint16_t) F(uint32, uint32_t) F(uint64, uint64_t) F(char, char) F(bfloat16, bfloat16_t)
#define GSHMEM_WAIT_TYPES(F) \
    F(float, float) F(int8, int8_t) F(int16, int16_t) F(int32, int32_t) F(int64, int64_t) \
    F(uint8, uint8_t) F(uint16, uint16_t) F(uint32, uint32_t) F(uint64, uint64_t) F(char, char)
#define GSHMEM_BITS(F) F(8, 1) F(16, 2) F(32, 4) F(64, 8) F(128, 16)

// Names the state struct for this core, and sets the core's own registers (atomic mode, vector masks) to what kernels want, whatever the
// last kernel left there; a TPipe does the latter too. Blocks: each calls it, before any other device function.
ACLSHMEM_DEVICE void aclshmemx_set_state(GM_ADDR state)
{
    AscendC::InitSocState();
    gshmem::attach(gshmem::addr_of(state));
}

// True once the host set the abort word and a wait of this core saw it. From then on every wait
// returns at once, and what was waited for must not be used.
ACLSHMEM_DEVICE bool aclshmemx_aborted(void) { return gshmem::aborted(); }

namespace gshmem {

// The unsigned integer that carries a T past the data cache.
template <int bytes> struct Bits;
template <> struct Bits<1> { using type = uint8_t; };
template <> struct Bits<2> { using type = uint16_t; };
template <> struct Bits<4> { using type = uint32_t; };
template <> struct Bits<8> { using type = uint64_t; };

template <typename T> union Word {
    typename Bits<sizeof(T)>::type raw;
    T value;
};

// The value of a T's bits; of the low ones, when they come as a wider launch argument.
template <typename T> ACLSHMEM_DEVICE T from_bits(uint64_t bits)
{
    Word<T> w;
    w.raw = static_cast<typename Bits<sizeof(T)>::type>(bits);
    return w.value;
}
template <typename T> ACLSHMEM_DEVICE typename Bits<sizeof(T)>::type to_bits(T value)
{
    Word<T> w;
    w.value = value;
    return w.raw;
}

template <typename T> ACLSHMEM_DEVICE T load_value(uint64_t addr) { return from_bits<T>(load_shared<typename Bits<sizeof(T)>::type>(addr)); }
template <typename T> ACLSHMEM_DEVICE void store_value(uint64_t addr, T v) { store_shared<typename Bits<sizeof(T)>::type>(addr, to_bits<T>(v)); }

} // namespace gshmem
#endif
