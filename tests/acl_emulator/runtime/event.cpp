// Events: marks in a stream that the host, other streams and other processes wait for.
#include <unistd.h>

#include <atomic>

#include <cstring>
#include <map>
#include <mutex>

#include "cell.h"
#include "entry.h"
#include "profile.h"
#include "stream.h"

namespace emu {
namespace {

struct Event {
    uint32_t flag = 0;
    bool extended = false;  // made by aclrtCreateEventExWithFlag
    std::shared_ptr<CellRef> cell;
    std::mutex mutex;  // guards the two below: where the last record went
    std::weak_ptr<Stream> stream;
    uint64_t sequence = 0;
    std::atomic<int64_t> time_ns{0};
};

using EventRef = std::shared_ptr<Event>;

struct Registry {
    std::mutex mutex;
    std::map<void*, EventRef> events;
};

Registry& registry() {
    static Registry& one = *new Registry;
    return one;
}

EventRef add(EventRef event) {
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    r.events[event.get()] = event;
    return event;
}

EventRef find(aclrtEvent handle) {
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    auto at = r.events.find(handle);
    return at == r.events.end() ? nullptr : at->second;
}

int create(aclrtEvent* out, uint32_t flag, bool extended) {
    if (!out) return breach(Rule::null_out, "event is null");
    if (flag & ~0x7Bu || (flag & ACL_EVENT_IPC && flag != ACL_EVENT_IPC)) {
        return breach(Rule::event_flag, "flag 0x%x", flag);
    }
    auto event = std::make_shared<Event>();
    event->flag = flag;
    event->extended = extended;
    event->cell = CellRef::make(current()->device);
    if (!event->cell) return report(ACL_ERROR_RT_NO_EVENT_RESOURCE, "no memory for an event");
    *out = add(event).get();
    return ACL_SUCCESS;
}

bool complete(const Event& event, uint64_t upto) {
    return (*event.cell)->completed.load(std::memory_order_acquire) >= upto;
}

// hurry lets the stream on which the event was last recorded go ahead up to the record.
void hurry(Event& event) {
    std::shared_ptr<Stream> stream;
    uint64_t sequence;
    {
        std::lock_guard<std::mutex> lock(event.mutex);
        stream = event.stream.lock();
        sequence = event.sequence;
    }
    if (stream) stream->demand(sequence);
}

int wait_for(const EventRef& event, Stream& stream, int32_t timeout_ms) {
    uint64_t upto = (*event->cell)->recorded.load(std::memory_order_acquire);
    stream.enqueue("aclrtStreamWaitEvent", [event, upto, timeout_ms, s = &stream] {
        bool done = wait_on(*s, deadline_after(timeout_ms), [&] { return complete(*event, upto); },
                            [&] { hurry(*event); });
        if (done || s->ending()) return 0;
        s->set_failure_text("the event was not recorded in time; rule [wait_timeout]");
        return static_cast<int>(ACL_ERROR_RT_WAIT_TIMEOUT);
    });
    return ACL_SUCCESS;
}

int synchronize_event(aclrtEvent handle, int32_t timeout_ms) {
    EventRef event = find(handle);
    if (!event) return breach(Rule::event_handle, "event %p", handle);
    uint64_t upto = (*event->cell)->recorded.load(std::memory_order_acquire);
    auto deadline = deadline_after(timeout_ms);
    auto pause = std::chrono::microseconds(5);
    while (!complete(*event, upto)) {
        if (Clock::now() > deadline) return breach(Rule::event_timeout, "after %d ms", timeout_ms);
        hurry(*event);
        std::this_thread::sleep_for(pause);
        if (pause < std::chrono::microseconds(300)) pause *= 2;
    }
    return ACL_SUCCESS;
}

}  // namespace
}  // namespace emu

using namespace emu;

#define EVENT(variable, handle)       \
    EventRef variable = find(handle); \
    if (!variable) return breach(Rule::event_handle, "event %p", handle)

#define STREAM(variable, handle)                      \
    int variable##_code = 0;                          \
    auto variable = stream_of(handle, &variable##_code); \
    if (!variable) return variable##_code

aclError aclrtCreateEvent(aclrtEvent* out) {
    ENTER(context);
    return create(out, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE, false);
}

aclError aclrtCreateEventWithFlag(aclrtEvent* out, uint32_t flag) {
    ENTER(context);
    return create(out, flag, false);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* out, uint32_t flag) {
    ENTER(context);
    return create(out, flag, true);
}

aclError aclrtDestroyEvent(aclrtEvent handle) {
    ENTER(context);
    EVENT(event, handle);
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    r.events.erase(handle);
    return ACL_SUCCESS;
}

aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream stream_handle) {
    ENTER(context);
    EVENT(event, handle);
    STREAM(stream, stream_handle);
    std::lock_guard<std::mutex> lock(event->mutex);
    uint64_t count = (*event->cell)->recorded.fetch_add(1, std::memory_order_acq_rel) + 1;
    event->stream = stream;
    event->sequence = stream->enqueue(__func__, [event, count] {
        event->time_ns = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
        // Release: pairs with the acquire in complete(), here and in other processes.
        (*event->cell)->completed.store(count, std::memory_order_release);
        return 0;
    });
    return ACL_SUCCESS;
}

extern "C" aclError aclrtResetEvent(aclrtEvent handle, aclrtStream stream_handle) {
    ENTER(context);
    EVENT(event, handle);
    STREAM(stream, stream_handle);
    if (event->extended) return breach(Rule::event_reset, "event %p", handle);
    stream->enqueue(__func__, [] { return 0; });
    return ACL_SUCCESS;
}

aclError aclrtStreamWaitEvent(aclrtStream stream_handle, aclrtEvent handle) {
    ENTER(context);
    EVENT(event, handle);
    STREAM(stream, stream_handle);
    return wait_for(event, *stream, -1);
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream_handle, aclrtEvent handle, int32_t timeout) {
    ENTER(context);
    EVENT(event, handle);
    STREAM(stream, stream_handle);
    return wait_for(event, *stream, timeout);
}

aclError aclrtSynchronizeEvent(aclrtEvent handle) {
    ENTER(context);
    return synchronize_event(handle, -1);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent handle, int32_t timeout) {
    ENTER(context);
    return synchronize_event(handle, timeout);
}

aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus* status) {
    ENTER(context);
    if (!status) return breach(Rule::null_out, "status is null");
    EVENT(event, handle);
    uint64_t upto = (*event->cell)->recorded;
    bool done = upto && complete(*event, upto);
    *status = done ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

// The status of waiting for an event; the same as the event's own here.
extern "C" aclError aclrtQueryEventWaitStatus(aclrtEvent handle, int* status) {
    aclrtEventRecordedStatus recorded;
    int code = aclrtQueryEventStatus(handle, &recorded);
    if (!code) *status = recorded == ACL_EVENT_RECORDED_STATUS_COMPLETE ? 0 : 1;
    return code;
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent start, aclrtEvent end) {
    ENTER(context);
    if (!ms) return breach(Rule::null_out, "ms is null");
    EVENT(first, start);
    EVENT(second, end);
    for (const EventRef& event : {first, second}) {
        uint64_t upto = (*event->cell)->recorded;
        if (!upto || !complete(*event, upto) || !(event->flag & ACL_EVENT_TIME_LINE)) {
            return breach(Rule::event_time, "flags 0x%x, recorded %lu times", event->flag, static_cast<unsigned long>(upto));
        }
    }
    *ms = static_cast<float>(second->time_ns - first->time_ns) / 1e6f;
    return ACL_SUCCESS;
}

extern "C" aclError aclrtEventGetTimestamp(aclrtEvent handle, uint64_t* timestamp) {
    ENTER(context);
    if (!timestamp) return breach(Rule::null_out, "timestamp is null");
    EVENT(event, handle);
    *timestamp = static_cast<uint64_t>(event->time_ns / 1000);
    return ACL_SUCCESS;
}

aclError aclrtIpcGetEventHandle(aclrtEvent handle, aclrtIpcEventHandle* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "handle is null");
    EVENT(event, handle);
    if (!(event->flag & ACL_EVENT_IPC)) return breach(Rule::event_not_ipc, "flags 0x%x", event->flag);
    memset(out, 0, sizeof *out);
    memcpy(out->reserved, passport_text(event->cell->passport()).c_str(), sizeof out->reserved - 1);
    return ACL_SUCCESS;
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "event is null");
    Passport passport;
    handle.reserved[sizeof handle.reserved - 1] = 0;
    if (!passport_read(handle.reserved, &passport)) return breach(Rule::event_handle, "the handle is damaged");
    if (passport.pid == getpid()) return breach(Rule::event_same_process, "process %d made it", passport.pid);
    auto event = std::make_shared<Event>();
    event->flag = ACL_EVENT_IPC;
    event->cell = CellRef::open(passport);
    if (!event->cell) return breach(Rule::import_dead, "process %d is gone", passport.pid);
    *out = add(event).get();
    return ACL_SUCCESS;
}

extern "C" uint64_t aclemu_live_events() {
    std::lock_guard<std::mutex> lock(registry().mutex);
    return registry().events.size();
}
