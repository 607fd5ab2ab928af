// Devices and contexts. A context is alive until its device is reset; threads hold a reference to theirs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace emu {

class Stream;

struct Context {
    Context(int32_t id, bool is_primary) : device(id), primary(is_primary) {}
    const int32_t device;
    const bool primary;
    std::atomic<bool> alive{true};
    std::shared_ptr<Stream> default_stream;  // made with the context, ended with it
};

// admit checks what Entry must check before a call goes on; 0 or the code of the broken rule.
int admit(bool needs_context);

// current gives the calling thread's context; admit(true) has made sure that there is one.
std::shared_ptr<Context> current();

// peer_enabled says whether memory of device `to` may be used from device `from`.
bool peer_enabled(int32_t from, int32_t to);

bool device_exists(int64_t id);

}  // namespace emu
