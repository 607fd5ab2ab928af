// Streams: one thread and one queue each. A task runs as late as the schedule allows: when a waiter demands it,
// or when its own seeded delay has passed. So work that nobody waited for is usually not done yet.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "../interface/acl.h"
#include "device.h"

namespace emu {

using Clock = std::chrono::steady_clock;

// deadline_after turns an ACL timeout (milliseconds, negative for none) into a time.
Clock::time_point deadline_after(int32_t milliseconds);

class Stream : public std::enable_shared_from_this<Stream> {
public:
    // A task returns 0 or the error code that the next synchronisation gives.
    using Work = std::function<int()>;

    static std::shared_ptr<Stream> make(const std::shared_ptr<Context>& context);
    explicit Stream(const std::shared_ptr<Context>& context);

    // enqueue adds a task and gives its sequence number. name is the point at which failures are injected.
    uint64_t enqueue(const char* name, Work work);

    // demand lets everything up to sequence number `upto` run now.
    void demand(uint64_t upto);

    // wait demands and waits; false when the deadline passes first.
    bool wait(uint64_t upto, Clock::time_point deadline);

    // take_error gives the error that the work met, once when the stream goes on after failures.
    int take_error();

    bool finished();
    uint64_t last();
    void end();  // drops what has not begun, waits for what has, stops the thread

    // For a task that is running on this stream: is anybody waiting for it, and must it give up.
    bool hurried() const { return demanded_ >= running_; }
    bool ending() const { return ending_; }
    void set_failure_text(const std::string& text);

    // The stream whose thread this is, or null.
    static Stream* running_here();

    const std::weak_ptr<Context> context;
    const int32_t device;
    const int32_t id;
    std::atomic<uint64_t> failure_mode{0};

private:
    struct Task {
        uint64_t sequence;
        Clock::time_point release;
        std::string name;
        Work work;
    };

    void loop();
    void run(Task& task);

    std::mutex mutex_;  // guards everything below that is not atomic
    std::condition_variable changed_;
    std::deque<Task> queue_;
    std::mt19937_64 random_;
    Clock::time_point last_release_{};
    uint64_t enqueued_ = 0;
    uint64_t done_ = 0;
    int error_ = 0;
    std::string error_text_;
    bool exited_ = false;
    std::thread thread_;

    std::atomic<uint64_t> demanded_{0};
    std::atomic<uint64_t> running_{0};
    std::atomic<bool> ending_{false};
};

// stream_of finds a live stream of the calling thread's context; null means the context's own. On refusal the
// result is empty and *code holds the code of the broken rule.
std::shared_ptr<Stream> stream_of(aclrtStream handle, int* code);

// synchronize waits for everything on the stream and turns what went wrong into an error of the running call.
int synchronize(Stream& stream, int32_t timeout_ms);

void end_streams_of(const std::shared_ptr<Context>& context);

}  // namespace emu
