// copy.h: copies by the MTE pipes: GM -> UB -> GM through a staging window, and between UB and GM.
// All are asynchronous: they end with unfinished MTE work that quiet() or the caller's flag completes.
#ifndef GSHMEM_DEVICE_COPY_H
#define GSHMEM_DEVICE_COPY_H

#include "device/internal/memory.h"

// The public name; in elements of the copied type.
#ifndef ACLSHMEM_NON_CONTIGUOUS_COPY_PARAM
#define ACLSHMEM_NON_CONTIGUOUS_COPY_PARAM
struct non_contiguous_copy_param {
    uint32_t repeat;  // rows
    uint32_t length;  // of a row
    uint32_t src_ld;  // from the start of one row to the start of the next
    uint32_t dst_ld;
};
#endif

namespace gshmem {

using AscendC::HardEvent;

// DataCopyPad's limits of 2097151 bytes and 4095 rows need no check here: half a unified buffer is
// at most 124 KiB, which is less in both counts.

ACLSHMEM_DEVICE uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

template <typename T> ACLSHMEM_DEVICE AscendC::GlobalTensor<T> global(uint64_t addr)
{
    AscendC::GlobalTensor<T> t;
    t.SetGlobalBuffer(at<T>(addr));
    return t;
}
template <typename T> ACLSHMEM_DEVICE AscendC::LocalTensor<T> local(uint32_t ub, uint32_t bytes)
{
    return AscendC::LocalTensor<T>(AscendC::TPosition::VECIN, ub, bytes / sizeof(T));
}

// rows x row_bytes between GM (gm_gap bytes between rows) and UB (rows start at 32-byte blocks).
template <typename T> ACLSHMEM_DEVICE void load_rows(uint32_t ub, uint64_t gm, uint32_t rows, uint32_t row_bytes, uint32_t gm_gap)
{
    const uint32_t span = static_cast<uint32_t>(rows * round_up(row_bytes, 32));
    AscendC::DataCopyExtParams p{static_cast<uint16_t>(rows), row_bytes, gm_gap, 0, 0};
    AscendC::DataCopyPadExtParams<T> pad{false, 0, 0, T{}};
    AscendC::DataCopyPad(local<T>(ub, span), global<T>(gm), p, pad);
}
template <typename T> ACLSHMEM_DEVICE void store_rows(uint64_t gm, uint32_t ub, uint32_t rows, uint32_t row_bytes, uint32_t gm_gap)
{
    const uint32_t span = static_cast<uint32_t>(rows * round_up(row_bytes, 32));
    AscendC::DataCopyExtParams p{static_cast<uint16_t>(rows), row_bytes, 0, gm_gap, 0};
    AscendC::DataCopyPad(global<T>(gm), local<T>(ub, span), p);
}

// A staging window used as two halves: while MTE3 stores one, MTE2 fills the other.
//
// One event id serves both halves. For piece i the order of flags is
//     MTE2 load(i), MTE2->MTE3, [MTE3->MTE2], MTE3 store(i)
// and the bracketed flag, raised by MTE3 when it has taken the first one, tells MTE2 two things:
// the id is free again, and store(i-1) is done, so its half may be filled. The last piece has none,
// so the flag of the next copy through the window finds the id free.
class Stage {
public:
    ACLSHMEM_DEVICE Stage(uint32_t offset, uint32_t bytes, uint32_t event)
        : offset_(offset), half_(bytes >= 64 ? bytes / 64 * 32 : bytes / 32 * 32), two_(bytes >= 64), event_(event) {}
    ACLSHMEM_DEVICE uint32_t half() const { return half_; }

    // `pieces`: how many calls of piece() follow; at least one.
    // Whatever MTE3 still reads from the window must be out before MTE2 fills it again.
    ACLSHMEM_DEVICE void begin(uint64_t pieces)
    {
        left_ = pieces;
        turn_over();
    }

    template <typename T>
    ACLSHMEM_DEVICE void piece(uint64_t dst, uint64_t src, uint32_t rows, uint32_t row_bytes, uint32_t dst_gap, uint32_t src_gap)
    {
        const uint32_t ub = offset_ + (odd_ ? half_ : 0);
        const bool more = --left_ != 0;
        load_rows<T>(ub, src, rows, row_bytes, src_gap);
        AscendC::SetFlag<HardEvent::MTE2_MTE3>(event_);
        AscendC::WaitFlag<HardEvent::MTE2_MTE3>(event_);
        if (more && two_) turn_over();
        store_rows<T>(dst, ub, rows, row_bytes, dst_gap);
        if (more && !two_) turn_over();
        odd_ = two_ && !odd_;
    }

private:
    ACLSHMEM_DEVICE void turn_over()
    {
        AscendC::SetFlag<HardEvent::MTE3_MTE2>(event_);
        AscendC::WaitFlag<HardEvent::MTE3_MTE2>(event_);
    }
    uint32_t offset_, half_;
    bool two_, odd_ = false;
    uint32_t event_;
    uint64_t left_ = 0;
};

template <typename T> ACLSHMEM_DEVICE uint64_t stage_step(const Stage& s) { return s.half() / sizeof(T) * sizeof(T); }

template <typename T> ACLSHMEM_DEVICE void stage_run(Stage& s, uint64_t dst, uint64_t src, uint64_t bytes)
{
    const uint64_t step = stage_step<T>(s);
    for (uint64_t done = 0; done < bytes; done += step) {
        const uint64_t len = bytes - done < step ? bytes - done : step;
        s.piece<T>(dst + done, src + done, 1, static_cast<uint32_t>(len), 0, 0);
    }
}

template <typename T> ACLSHMEM_DEVICE void copy_gm(uint64_t dst, uint64_t src, uint64_t bytes, uint32_t ub, uint32_t ub_bytes, uint32_t event)
{
    if (bytes == 0) return;
    Stage s(ub, ub_bytes, event);
    s.begin((bytes + stage_step<T>(s) - 1) / stage_step<T>(s));
    stage_run<T>(s, dst, src, bytes);
}

// Rows of row_bytes whose starts are dst_step and src_step bytes apart; steps may be negative or
// smaller than a row. Rows are stored in order when they overlap.
template <typename T>
ACLSHMEM_DEVICE void copy_gm_rows(uint64_t dst, uint64_t src, uint64_t rows, uint64_t row_bytes, int64_t dst_step,
                                  int64_t src_step, uint32_t ub, uint32_t ub_bytes, uint32_t event)
{
    const int64_t row = static_cast<int64_t>(row_bytes);
    if (row == 0) return;
    if (dst_step == row && src_step == row) return copy_gm<T>(dst, src, rows * row_bytes, ub, ub_bytes, event);
    Stage s(ub, ub_bytes, event);
    const bool plain = dst_step >= row && src_step >= row && dst_step - row <= 0xffffffffll && src_step - row <= 0xffffffffll;
    const uint64_t per = plain ? s.half() / round_up(row_bytes, 32) : 0;
    s.begin(per > 1 ? (rows + per - 1) / per : rows * ((row_bytes + stage_step<T>(s) - 1) / stage_step<T>(s)));
    for (uint64_t i = 0; i < rows;) {
        const uint64_t to = dst + static_cast<uint64_t>(dst_step * static_cast<int64_t>(i));
        const uint64_t from = src + static_cast<uint64_t>(src_step * static_cast<int64_t>(i));
        if (per > 1) {
            const uint64_t n = rows - i < per ? rows - i : per;
            s.piece<T>(to, from, static_cast<uint32_t>(n), static_cast<uint32_t>(row_bytes),
                       static_cast<uint32_t>(dst_step - row), static_cast<uint32_t>(src_step - row));
            i += n;
        } else {
            if (dst_step < row && dst_step > -row) AscendC::PipeBarrier<PIPE_MTE3>();
            stage_run<T>(s, to, from, row_bytes);
            i++;
        }
    }
}

template <typename T>
ACLSHMEM_DEVICE void copy_gm_rows(uint64_t dst, uint64_t src, const non_contiguous_copy_param& p, uint32_t ub, uint32_t ub_bytes, uint32_t event)
{
    copy_gm_rows<T>(dst, src, p.repeat, static_cast<uint64_t>(p.length) * sizeof(T), static_cast<int64_t>(p.dst_ld) * sizeof(T),
                    static_cast<int64_t>(p.src_ld) * sizeof(T), ub, ub_bytes, event);
}

// UB rows lie ld elements apart, which must be whole 32-byte blocks when there is more than one.
template <typename T> ACLSHMEM_DEVICE void load_ub(uint32_t ub, uint64_t gm, const non_contiguous_copy_param& p)
{
    for (uint32_t i = 0; i < p.repeat; i++)
        load_rows<T>(ub + i * p.dst_ld * static_cast<uint32_t>(sizeof(T)), gm + static_cast<uint64_t>(i) * p.src_ld * sizeof(T), 1,
                     p.length * static_cast<uint32_t>(sizeof(T)), 0);
}
template <typename T> ACLSHMEM_DEVICE void store_ub(uint64_t gm, uint32_t ub, const non_contiguous_copy_param& p)
{
    for (uint32_t i = 0; i < p.repeat; i++)
        store_rows<T>(gm + static_cast<uint64_t>(i) * p.dst_ld * sizeof(T), ub + i * p.src_ld * static_cast<uint32_t>(sizeof(T)), 1,
                      p.length * static_cast<uint32_t>(sizeof(T)), 0);
}

} // namespace gshmem
#endif
