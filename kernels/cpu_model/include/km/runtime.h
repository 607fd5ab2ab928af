// runtime.h: what the templates of the model call. One core (block) of one PE is always current;
// every function acts on it. Implemented in src/.
#ifndef KM_RUNTIME_H
#define KM_RUNTIME_H

#include "base.h"
#include <functional>
#include <initializer_list>

namespace km {

enum Pipe : int { S = 0, V, M, MTE1, MTE2, MTE3, FIX, PIPE_COUNT, PIPE_EVERY = PIPE_COUNT };

constexpr uint32_t UB_BLOCK = 32;
constexpr uint32_t UB_BYTES = (__NPU_ARCH__ == 3510 ? 248u : 192u) * 1024u;
constexpr uint32_t TPIPE_UB_BYTES = UB_BYTES - 8u * 1024u;
constexpr uint32_t CACHE_LINE = 64;
constexpr uint32_t MAX_BLOCKS = 48;
constexpr int EVENT_IDS = 8;      // the hardware's
constexpr int USER_EVENT_IDS = 6; // those a kernel may use

enum class Element : uint8_t { none, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64 };
enum class Rmw : uint8_t { none, add, max, min, cas, exch };

template <typename T> constexpr Element element_of()
{
    using U = std::remove_cv_t<T>;
    if (std::is_same_v<U, half>) return Element::f16;
    if (std::is_same_v<U, bfloat16_t>) return Element::bf16;
    if (std::is_same_v<U, float>) return Element::f32;
    if (std::is_same_v<U, double>) return Element::f64;
    if (std::is_integral_v<U>) {
        constexpr bool s = std::is_signed_v<U>;
        switch (sizeof(U)) {
            case 1: return s ? Element::i8 : Element::u8;
            case 2: return s ? Element::i16 : Element::u16;
            case 4: return s ? Element::i32 : Element::u32;
            default: return s ? Element::i64 : Element::u64;
        }
    }
    return Element::none;
}

// One DMA instruction: `blocks` pieces of `len` bytes between GM and UB. Steps are from the start
// of one piece to the start of the next, in bytes.
struct Dma {
    bool to_ub;
    bool padded;          // fill pads with pad_value; else the rest of a 32-byte block is garbage
    uint64_t gm;
    uint32_t ub;
    uint32_t blocks;
    uint32_t len;
    int64_t gm_step;
    int64_t ub_step;
    uint32_t left_pad;    // bytes
    uint32_t right_pad;   // bytes
    uint32_t elem_bytes;
    uint8_t pad_value[8];
    Element element;
};

struct UbSpan {
    uint32_t addr;
    uint32_t bytes;
};

int64_t block_idx();
int64_t block_num();
uint64_t system_cycle();

void set_flag(Pipe src, Pipe dst, int32_t id, Where w);
void wait_flag(Pipe src, Pipe dst, int32_t id, Where w);
void pipe_barrier(Pipe p, Where w);
void data_sync_barrier(Where w);
void sync_all(Where w);

// The registers that the kernel before may have left otherwise: atomic mode, vector masks.
void init_core();
void dma(const Dma& d, Where w);
void set_atomic(Rmw kind, Element type, Where w);

// run(ub) works on the core's unified buffer when the vector pipe gets there.
void vector_op(const char* name, std::initializer_list<UbSpan> writes,
               std::initializer_list<UbSpan> reads, std::function<void(uint8_t* ub)> run, Where w);

void ub_read(uint32_t addr, void* out, uint32_t bytes, Where w);
void ub_write(uint32_t addr, const void* in, uint32_t bytes, Where w);

void scalar_read(uint64_t gm, void* out, uint32_t bytes, Where w);        // through the data cache
void scalar_write(uint64_t gm, const void* in, uint32_t bytes, Where w);  // through the data cache
void bypass_read(uint64_t gm, void* out, uint32_t bytes, Where w);
void bypass_write(uint64_t gm, const void* in, uint32_t bytes, Where w);
void dcci(uint64_t gm, bool entire, Where w);
uint64_t scalar_atomic(Rmw kind, Element type, uint64_t gm, uint64_t value, uint64_t compare, Where w);

// 1 KiB of the core's own, zero when a kernel starts: what block-local variables are on a device.
void* core_context();

// A rule is broken but the kernel can go on / cannot.
void report(const char* rule, Where w, const char* format, ...) __attribute__((format(printf, 3, 4)));
[[noreturn]] void stop(const char* rule, Where w, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

} // namespace km
#endif
