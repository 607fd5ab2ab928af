#include "stream.h"

#include <map>
#include <vector>

#include "entry.h"
#include "profile.h"

namespace emu {
namespace {

// Registry knows the live streams, by handle.
struct Registry {
    std::mutex mutex;
    std::map<void*, std::shared_ptr<Stream>> streams;
    int32_t next_id = 0;
};

Registry& registry() {
    static Registry& one = *new Registry;
    return one;
}

int32_t next_id() {
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    return r.next_id++;
}

std::vector<std::shared_ptr<Stream>> streams_on(int32_t device) {
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    std::vector<std::shared_ptr<Stream>> found;
    for (const auto& entry : r.streams) {
        if (entry.second->device == device) found.push_back(entry.second);
    }
    return found;
}

void forget(Stream* stream) {
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    r.streams.erase(stream);
}

}  // namespace

Clock::time_point deadline_after(int32_t milliseconds) {
    if (milliseconds < 0) return Clock::now() + std::chrono::hours(24 * 365);
    return Clock::now() + std::chrono::milliseconds(milliseconds);
}

std::shared_ptr<Stream> Stream::make(const std::shared_ptr<Context>& context) {
    auto stream = std::make_shared<Stream>(context);
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    r.streams[stream.get()] = stream;
    return stream;
}

Stream::Stream(const std::shared_ptr<Context>& c)
    : context(c), device(c->device), id(next_id()), random_(settings().seed * 1000003 + static_cast<uint64_t>(id)) {}

uint64_t Stream::enqueue(const char* name, Work work) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto release = Clock::now();
    if (settings().late) release += std::chrono::microseconds(random_() % (settings().late_us + 1));
    if (release < last_release_) release = last_release_;
    last_release_ = release;
    queue_.push_back({++enqueued_, release, name, std::move(work)});
    if (!thread_.joinable() && !ending_) thread_ = std::thread([self = shared_from_this()] { self->loop(); });
    changed_.notify_all();
    return enqueued_;
}

namespace {
thread_local Stream* this_stream = nullptr;
}

Stream* Stream::running_here() { return this_stream; }

void Stream::loop() {
    this_stream = this;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        if (ending_) break;
        if (queue_.empty()) {
            changed_.wait(lock);
            continue;
        }
        if (queue_.front().sequence > demanded_ && Clock::now() < queue_.front().release) {
            changed_.wait_until(lock, queue_.front().release);
            continue;
        }
        Task task = std::move(queue_.front());
        queue_.pop_front();
        bool skip = error_ && failure_mode == ACL_STOP_ON_FAILURE;
        running_ = task.sequence;
        lock.unlock();
        if (!skip) run(task);
        task.work = nullptr;  // what it captured goes before anybody hears that it is done
        lock.lock();
        done_ = task.sequence;
        changed_.notify_all();
    }
    exited_ = true;
    changed_.notify_all();
}

void Stream::run(Task& task) {
    int code = injected("task:" + task.name);
    if (code) {
        set_failure_text("failure injected by ACLEMU_FAIL into task " + task.name);
    } else {
        code = task.work();
    }
    if (!code) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) error_ = code;
    if (error_text_.empty()) error_text_ = "task " + task.name + " failed";
}

void Stream::set_failure_text(const std::string& text) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (error_text_.empty()) error_text_ = text;
}

void Stream::demand(uint64_t upto) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (upto > demanded_) demanded_ = upto;
    changed_.notify_all();
}

bool Stream::wait(uint64_t upto, Clock::time_point deadline) {
    demand(upto);
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_until(lock, deadline, [&] { return done_ >= upto || ending_; });
}

int Stream::take_error() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) return 0;
    int code = report(error_, "stream " + std::to_string(id) + ": " + error_text_);
    if (failure_mode != ACL_STOP_ON_FAILURE) {
        error_ = 0;
        error_text_.clear();
    }
    return code;
}

bool Stream::finished() {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_ >= enqueued_;
}

uint64_t Stream::last() {
    std::lock_guard<std::mutex> lock(mutex_);
    return enqueued_;
}

void Stream::end() {
    std::deque<Task> dropped;
    std::unique_lock<std::mutex> lock(mutex_);
    ending_ = true;
    dropped.swap(queue_);
    changed_.notify_all();
    if (!thread_.joinable()) return;
    // A kernel that never ends must not take its caller with it: after two seconds its thread is left behind.
    bool self = thread_.get_id() == std::this_thread::get_id();
    bool left = !self && changed_.wait_for(lock, std::chrono::seconds(2), [&] { return exited_; });
    lock.unlock();
    if (left) {
        thread_.join();
    } else {
        thread_.detach();
    }
}

std::shared_ptr<Stream> stream_of(aclrtStream handle, int* code) {
    auto context = current();
    if (!handle) return context->default_stream;
    Registry& r = registry();
    std::shared_ptr<Stream> stream;
    {
        std::lock_guard<std::mutex> lock(r.mutex);
        auto at = r.streams.find(handle);
        if (at != r.streams.end()) stream = at->second;
    }
    if (!stream) {
        *code = breach(Rule::stream_handle, "stream %p", handle);
    } else if (stream->context.lock() != context) {
        *code = breach(Rule::stream_context, "stream %d is of device %d, the thread is on device %d", stream->id,
                       stream->device, context->device);
        stream = nullptr;
    }
    return stream;
}

int synchronize(Stream& stream, int32_t timeout_ms) {
    if (!stream.wait(stream.last(), deadline_after(timeout_ms))) {
        return breach(Rule::stream_timeout, "stream %d still has work after %d ms", stream.id, timeout_ms);
    }
    return stream.take_error();
}

void end_streams_of(const std::shared_ptr<Context>& context) {
    std::vector<std::shared_ptr<Stream>> ended;
    {
        Registry& r = registry();
        std::lock_guard<std::mutex> lock(r.mutex);
        for (auto at = r.streams.begin(); at != r.streams.end();) {
            bool ours = at->second->context.lock() == context;
            if (ours) ended.push_back(at->second);
            at = ours ? r.streams.erase(at) : std::next(at);
        }
    }
    for (const auto& stream : ended) stream->end();
    context->default_stream = nullptr;
}

}  // namespace emu

using namespace emu;

#define STREAM(variable, handle)                      \
    int variable##_code = 0;                          \
    auto variable = stream_of(handle, &variable##_code); \
    if (!variable) return variable##_code

aclError aclrtCreateStream(aclrtStream* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "stream is null");
    *out = Stream::make(current()).get();
    return ACL_SUCCESS;
}

aclError aclrtCreateStreamWithConfig(aclrtStream* out, uint32_t, uint32_t flag) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "stream is null");
    if (flag & ~0x3Fu) return breach(Rule::stream_flag, "flag 0x%x", flag);
    *out = Stream::make(current()).get();
    return ACL_SUCCESS;
}

namespace {

aclError destroy(aclrtStream handle, bool wait) {
    if (!handle) return breach(Rule::stream_handle, "the default stream cannot be destroyed");
    STREAM(stream, handle);
    if (stream == current()->default_stream) {
        return breach(Rule::stream_handle, "the default stream cannot be destroyed");
    }
    int code = wait ? synchronize(*stream, -1) : 0;
    forget(stream.get());
    stream->end();
    return code;
}

}  // namespace

aclError aclrtDestroyStream(aclrtStream handle) {
    ENTER(context);
    return destroy(handle, true);
}

aclError aclrtDestroyStreamForce(aclrtStream handle) {
    ENTER(context);
    return destroy(handle, false);
}

aclError aclrtSynchronizeStream(aclrtStream handle) {
    ENTER(context);
    STREAM(stream, handle);
    return synchronize(*stream, -1);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream handle, int32_t timeout) {
    ENTER(context);
    STREAM(stream, handle);
    return synchronize(*stream, timeout);
}

aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus* status) {
    ENTER(context);
    if (!status) return breach(Rule::null_out, "status is null");
    STREAM(stream, handle);
    *status = stream->finished() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

aclError aclrtStreamGetId(aclrtStream handle, int32_t* id) {
    ENTER(context);
    if (!id) return breach(Rule::null_out, "streamId is null");
    STREAM(stream, handle);
    *id = stream->id;
    return ACL_SUCCESS;
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "stream is null");
    *out = current()->default_stream.get();
    return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream handle, uint64_t mode) {
    ENTER(context);
    STREAM(stream, handle);
    if (mode > ACL_STOP_ON_FAILURE) return breach(Rule::stream_flag, "failure mode %lu", static_cast<unsigned long>(mode));
    stream->failure_mode = mode;
    return ACL_SUCCESS;
}

aclError aclrtLaunchHostFunc(aclrtStream handle, aclrtHostFunc function, void* argument) {
    ENTER(context);
    STREAM(stream, handle);
    if (!function) return breach(Rule::host_func, "fn is null");
    stream->enqueue(__func__, [=] { return function(argument), 0; });
    return ACL_SUCCESS;
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    ENTER(context);
    auto deadline = deadline_after(timeout);
    auto streams = streams_on(current()->device);
    for (const auto& stream : streams) stream->demand(stream->last());
    int first = 0;
    for (const auto& stream : streams) {
        if (!stream->wait(stream->last(), deadline)) {
            return breach(Rule::stream_timeout, "stream %d still has work after %d ms", stream->id, timeout);
        }
        int code = stream->take_error();
        if (code && !first) first = code;
    }
    return first;
}

aclError aclrtSynchronizeDevice() { return aclrtSynchronizeDeviceWithTimeout(-1); }

// aclemu_enqueue lets another emulated library (libopapi) put work on a stream. drop(argument) is called in any
// case, after work(argument) or instead of it.
extern "C" aclError aclemu_enqueue(aclrtStream handle, const char* name, int (*work)(void*), void (*drop)(void*),
                                   void* argument) {
    std::shared_ptr<void> owned(argument, drop);
    ENTER(context);
    STREAM(stream, handle);
    stream->enqueue(name, [work, owned] { return work(owned.get()); });
    return ACL_SUCCESS;
}

extern "C" int aclemu_report(int code, const char* text) { return report(code, text); }

// aclemu_task_text says why the task that runs on this thread is about to fail.
extern "C" void aclemu_task_text(const char* text) {
    if (Stream* stream = Stream::running_here()) stream->set_failure_text(text);
}
