// order.cpp: the order checker. Pure bookkeeping over instructions in program order.
#include "launch.hpp"
#include <algorithm>

namespace km {

namespace {

constexpr size_t REMEMBERED = 2048; // instructions kept; older ones are forgotten unchecked

uint64_t end_of(const Range& r)
{
    return r.lo + (r.count ? static_cast<uint64_t>(r.step) * (r.count - 1) : 0) + r.len;
}

// Does any piece of r touch [lo, hi)?
bool touches(const Range& r, uint64_t lo, uint64_t hi)
{
    if (r.count <= 1 || r.step <= static_cast<int64_t>(r.len)) return r.lo < hi && lo < end_of(r);
    const uint64_t step = static_cast<uint64_t>(r.step);
    const uint64_t first = lo <= r.lo + r.len ? 0 : (lo - r.lo - r.len) / step;
    for (uint64_t i = first; i < r.count && r.lo + i * step < hi; i++)
        if (r.lo + i * step + r.len > lo) return true;
    return false;
}

bool overlap(const Range& a, const Range& b)
{
    if (a.space != b.space || !a.len || !b.len || !a.count || !b.count) return false;
    if (a.lo >= end_of(b) || b.lo >= end_of(a)) return false;
    const Range& few = a.count <= b.count ? a : b;
    const Range& many = a.count <= b.count ? b : a;
    for (uint64_t i = 0; i < few.count; i++) {
        const uint64_t lo = few.lo + static_cast<uint64_t>(few.step) * i;
        if (touches(many, lo, lo + few.len)) return true;
    }
    return false;
}

const char* pipe_name(Pipe p)
{
    static const char* const names[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};
    return names[p];
}

void check(const Issued& a, const Issued& b)
{
    for (const Range& x : a.ranges)
        for (const Range& y : b.ranges) {
            if (!x.write && !y.write) continue;
            if ((x.atomic && y.atomic) || !overlap(x, y)) continue;
            report("order", b.where, "%s on pipe %s touches %s bytes of %s on pipe %s (%s:%d) with no wait between them",
                   b.what, pipe_name(b.pipe), x.space == Range::UB ? "UB" : "GM", a.what, pipe_name(a.pipe),
                   a.where.file, a.where.line);
            return;
        }
}

} // namespace

void Order::issue(Pipe p, const char* what, const Ranges& ranges, Where w)
{
    Issued now{p, ++last_[p], what, w, ranges};
    for (const Issued& o : open_)
        if (o.seq > known_[p][o.pipe]) check(o, now);
    for (const Issued& o : scalars_)
        if (o.seq > known_[p][S]) check(o, now);
    open_.push_back(now);
    if (++since_prune_ >= 64) prune();
}

void Order::issue_scalar(const char* what, const Range& range, Where w)
{
    const uint32_t seq = ++last_[S];
    known_[S][S] = seq;
    Issued now{S, seq, what, w, {}};
    now.ranges.add(range);
    for (const Issued& o : open_)
        if (o.seq > known_[S][o.pipe]) check(o, now);
    // A spin repeats a few reads: the newest of equal ones says all.
    const size_t n = scalars_.size();
    for (size_t i = 0; i < 8 && i < n; i++) {
        Issued& o = scalars_[n - 1 - i];
        const Range& r = o.ranges.at[0];
        if (r.lo == range.lo && r.len == range.len && r.space == range.space && r.write == range.write) {
            o = now;
            return;
        }
    }
    scalars_.push_back(now);
    if (++since_prune_ >= 64) prune();
}

void Order::prune()
{
    since_prune_ = 0;
    Clock all = known_[0];
    for (const Clock& c : known_)
        for (int q = 0; q < PIPE_COUNT; q++) all[q] = std::min(all[q], c[q]);
    for (std::deque<Issued>* list : {&open_, &scalars_})
        while (!list->empty() && (list->size() > REMEMBERED || list->front().seq <= all[list->front().pipe])) list->pop_front();
}

// What the waiting pipe will know: all the setting pipe issued before, and all that pipe knew.
void Order::set(Pipe src, Pipe dst, int id)
{
    Clock c = known_[src];
    c[src] = last_[src];
    flag_[src][dst][id] = c;
}

void Order::wait(Pipe src, Pipe dst, int id)
{
    const Clock& c = flag_[src][dst][id];
    for (int q = 0; q < PIPE_COUNT; q++) known_[dst][q] = std::max(known_[dst][q], c[q]);
}

void Order::barrier(Pipe p)
{
    if (p != PIPE_EVERY) {
        known_[p][p] = last_[p];
        return;
    }
    for (Clock& c : known_) c = last_;
    open_.clear();
    scalars_.clear();
}

} // namespace km
