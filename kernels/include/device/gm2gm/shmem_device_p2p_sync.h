// shmem_device_p2p_sync.h: signals, and waiting for a word of this PE's memory to change.
//
// Every wait polls the abort word and then returns early; see aclshmemx_aborted(). cmp is one of
// ACLSHMEM_CMP_*. Entries whose status is non-zero are skipped; status may be null (none skipped).
// any returns an index, or SIZE_MAX when nothing was to be waited for (or on abort); some returns a
// count and writes indices. Words are read past the data cache; data that a word announces may be
// read by MTE at once, and by scalar loads after aclshmem_quiet().
#ifndef ACLSHMEM_DEVICE_P2P_SYNC_H
#define ACLSHMEM_DEVICE_P2P_SYNC_H

#include "device/gm2gm/shmem_device_rma.h"

namespace gshmem {

// What entry i is compared with: one value for all, or one each.
template <typename T> struct Operand {
    T value;
    uint64_t vector; // 0: value
    ACLSHMEM_DEVICE T get(size_t i) const { return vector ? load_value<T>(vector + i * sizeof(T)) : value; }
};

template <typename T> struct WaitSet {
    uint64_t ivars;
    size_t n;
    uint64_t status; // array of int, or 0
    int cmp;
    Operand<T> operand;

    ACLSHMEM_DEVICE bool skipped(size_t i) const { return status && load_shared<int32_t>(status + 4 * i) != 0; }
    ACLSHMEM_DEVICE bool holds(size_t i) const { return compare<T>(load_value<T>(ivars + i * sizeof(T)), cmp, operand.get(i)); }
    ACLSHMEM_DEVICE bool empty() const
    {
        for (size_t i = 0; i < n; i++)
            if (!skipped(i)) return false;
        return true;
    }
    // One look at every entry.
    ACLSHMEM_DEVICE size_t any() const
    {
        for (size_t i = 0; i < n; i++)
            if (!skipped(i) && holds(i)) return i;
        return SIZE_MAX;
    }
    ACLSHMEM_DEVICE size_t some(uint64_t indices) const
    {
        size_t found = 0;
        for (size_t i = 0; i < n; i++)
            if (!skipped(i) && holds(i)) store_shared<uint64_t>(indices + 8 * found++, i);
        return found;
    }
    ACLSHMEM_DEVICE bool all() const
    {
        for (size_t i = 0; i < n; i++)
            if (!skipped(i) && !holds(i)) return false;
        return true;
    }
    ACLSHMEM_DEVICE void wait_all() const
    {
        for (size_t i = 0; i < n; i++)
            if (!skipped(i) && !wait_until([=] { return holds(i); })) return;
    }
    ACLSHMEM_DEVICE size_t wait_any() const
    {
        size_t found = SIZE_MAX;
        if (!empty()) wait_until([&] { return (found = any()) != SIZE_MAX; });
        return found;
    }
    ACLSHMEM_DEVICE size_t wait_some(uint64_t indices) const
    {
        size_t found = 0;
        if (!empty()) wait_until([&] { return (found = some(indices)) != 0; });
        return found;
    }
};

template <typename T> ACLSHMEM_DEVICE WaitSet<T> wait_set(uint64_t ivars, size_t n, uint64_t status, int cmp, T value)
{
    return WaitSet<T>{ivars, n, status, cmp, Operand<T>{value, 0}};
}
template <typename T> ACLSHMEM_DEVICE WaitSet<T> wait_set_vector(uint64_t ivars, size_t n, uint64_t status, int cmp, uint64_t values)
{
    return WaitSet<T>{ivars, n, status, cmp, Operand<T>{T{}, values}};
}

} // namespace gshmem

// Sets or adds to the int32 word sig_addr on `pe`. ADD waits for this core's earlier transfers, SET
// does not: call aclshmem_quiet() or use put_signal when the signal announces data.
ACLSHMEM_DEVICE void aclshmemx_signal_op(__gm__ int32_t* sig_addr, int32_t signal, int sig_op, int pe)
{
    gshmem::signal(GSHMEM_A(sig_addr), signal, sig_op, pe);
}

// Waits until the local word compares; returns the value seen (on abort: the last one).
ACLSHMEM_DEVICE int32_t aclshmem_signal_wait_until(__gm__ int32_t* sig_addr, int cmp, int32_t cmp_val)
{
    int32_t seen = 0;
    gshmem::wait_until([&] { return gshmem::compare<int32_t>(seen = gshmem::load_shared<int32_t>(GSHMEM_A(sig_addr)), cmp, cmp_val); });
    return seen;
}

#define GSHMEM_WAIT(NAME, TYPE) \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_wait_until(__gm__ TYPE* ivar, int cmp, TYPE cmp_value) { gshmem::wait_set<TYPE>(GSHMEM_A(ivar), 1, 0, cmp, cmp_value).wait_all(); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_wait(__gm__ TYPE* ivar, TYPE cmp_value) { gshmem::wait_set<TYPE>(GSHMEM_A(ivar), 1, 0, ACLSHMEM_CMP_NE, cmp_value).wait_all(); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_wait_until_all(__gm__ TYPE* ivars, size_t nelems, __gm__ const int* status, int cmp, TYPE cmp_value) { gshmem::wait_set<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, cmp_value).wait_all(); } \
    ACLSHMEM_DEVICE size_t aclshmem_##NAME##_wait_until_any(__gm__ TYPE* ivars, size_t nelems, __gm__ const int* status, int cmp, TYPE cmp_value) { return gshmem::wait_set<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, cmp_value).wait_any(); } \
    ACLSHMEM_DEVICE size_t aclshmem_##NAME##_wait_until_some(__gm__ TYPE* ivars, size_t nelems, __gm__ size_t* indices, __gm__ const int* status, int cmp, TYPE cmp_value) { return gshmem::wait_set<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, cmp_value).wait_some(GSHMEM_A(indices)); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_wait_until_all_vector(__gm__ TYPE* ivars, size_t nelems, __gm__ const int* status, int cmp, __gm__ TYPE* cmp_values) { gshmem::wait_set_vector<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, GSHMEM_A(cmp_values)).wait_all(); } \
    ACLSHMEM_DEVICE size_t aclshmem_##NAME##_wait_until_any_vector(__gm__ TYPE* ivars, size_t nelems, __gm__ const int* status, int cmp, __gm__ TYPE* cmp_values) { return gshmem::wait_set_vector<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, GSHMEM_A(cmp_values)).wait_any(); } \
    ACLSHMEM_DEVICE size_t aclshmem_##NAME##_wait_until_some_vector(__gm__ TYPE* ivars, size_t nelems, __gm__ size_t* indices, __gm__ const int* status, int cmp, __gm__ TYPE* cmp_values) { return gshmem::wait_set_vector<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, GSHMEM_A(cmp_values)).wait_some(GSHMEM_A(indices)); } \
    ACLSHMEM_DEVICE int aclshmem_##NAME##_test(__gm__ TYPE* ivars, int cmp, TYPE cmp_value) { return gshmem::wait_set<TYPE>(GSHMEM_A(ivars), 1, 0, cmp, cmp_value).all(); } \
    ACLSHMEM_DEVICE size_t aclshmem_##NAME##_test_any(__gm__ TYPE* ivars, size_t nelems, __gm__ const int* status, int cmp, TYPE cmp_value) { return gshmem::wait_set<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, cmp_value).any(); } \
    ACLSHMEM_DEVICE size_t aclshmem_##NAME##_test_some(__gm__ TYPE* ivars, size_t nelems, __gm__ size_t* indices, __gm__ const int* status, int cmp, TYPE cmp_value) { return gshmem::wait_set<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, cmp_value).some(GSHMEM_A(indices)); } \
    ACLSHMEM_DEVICE int aclshmem_##NAME##_test_all_vector(__gm__ TYPE* ivars, size_t nelems, __gm__ const int* status, int cmp, __gm__ TYPE* cmp_values) { return gshmem::wait_set_vector<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, GSHMEM_A(cmp_values)).all(); } \
    ACLSHMEM_DEVICE size_t aclshmem_##NAME##_test_any_vector(__gm__ TYPE* ivars, size_t nelems, __gm__ const int* status, int cmp, __gm__ TYPE* cmp_values) { return gshmem::wait_set_vector<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, GSHMEM_A(cmp_values)).any(); } \
    ACLSHMEM_DEVICE size_t aclshmem_##NAME##_test_some_vector(__gm__ TYPE* ivars, size_t nelems, __gm__ size_t* indices, __gm__ const int* status, int cmp, __gm__ TYPE* cmp_values) { return gshmem::wait_set_vector<TYPE>(GSHMEM_A(ivars), nelems, GSHMEM_A(status), cmp, GSHMEM_A(cmp_values)).some(GSHMEM_A(indices)); }
GSHMEM_WAIT_TYPES(GSHMEM_WAIT)
#undef GSHMEM_WAIT

#endif
