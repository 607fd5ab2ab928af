// Cells are small pieces of memory that several processes may see: the state of events and notifies.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "memory.h"
#include "stream.h"

namespace emu {

// Cell is one cache line. For an event: how often it was recorded and how far the records have completed. For a
// notify: `recorded` is 1 when it is set.
struct alignas(64) Cell {
    std::atomic<uint64_t> recorded;
    std::atomic<uint64_t> completed;
    std::atomic<uint64_t> device;
};

// CellRef keeps the mapping alive and gives the cell back when the last reference goes.
class CellRef {
public:
    static std::shared_ptr<CellRef> make(int32_t device);
    static std::shared_ptr<CellRef> open(const Passport& passport);
    ~CellRef();
    Cell* operator->() const { return cell_; }
    Passport passport() const;
    bool own() const { return own_; }
    Ticket& ticket() const;

private:
    struct Page;
    std::shared_ptr<Page> page_;
    Cell* cell_ = nullptr;
    uint64_t index_ = 0;
    bool own_ = false;
};

// wait_on polls until done() holds, on behalf of a task that runs on `stream`. hurry() is called while somebody waits
// for the stream. False when the deadline has passed or the stream is ending.
bool wait_on(Stream& stream, Clock::time_point deadline, const std::function<bool()>& done,
             const std::function<void()>& hurry = nullptr);

}  // namespace emu
