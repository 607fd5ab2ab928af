#include "profile.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emu {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

const Profile kProfiles[] = {
    {"910B1", "Ascend910B1", false, true, true, false, true, false, false, true, 8192, 48, 24, 192 << 10,
     192ll << 20, 2201, 64 * kGiB},
    {"910_93", "Ascend910_9391", true, true, false, false, true, true, true, false, 8192, 48, 24, 192 << 10,
     192ll << 20, 2201, 64 * kGiB},
    {"950", "Ascend950PR_9589", false, false, true, true, false, false, false, false, 65535, 64, 32, 248 << 10,
     128ll << 20, 3510, 128 * kGiB},
};

const char* text(const char* name, const char* otherwise) {
    const char* value = getenv(name);
    return value && *value ? value : otherwise;
}

// number reads decimal with an optional K, M or G suffix; anything else stops the process, because a test
// that runs with another setting than it asked for proves nothing.
uint64_t number(const char* name, uint64_t otherwise) {
    const char* value = text(name, nullptr);
    if (!value) return otherwise;
    char* end = nullptr;
    uint64_t n = strtoull(value, &end, 10);
    switch (*end) {
        case 'K': n <<= 10, ++end; break;
        case 'M': n <<= 20, ++end; break;
        case 'G': n <<= 30, ++end; break;
        default: break;
    }
    if (*end || end == value) {
        fprintf(stderr, "acl emulator: %s=%s is not a number\n", name, value);
        abort();
    }
    return n;
}

Profile chosen() {
    const char* key = text("ACLEMU_SOC", "910B1");
    for (const Profile& p : kProfiles) {
        if (!strcmp(p.key, key)) return p;
    }
    fprintf(stderr, "acl emulator: ACLEMU_SOC=%s is unknown; choose 910B1, 910_93 or 950\n", key);
    abort();
}

Settings read() {
    Settings s;
    s.profile = chosen();
    s.devices = static_cast<uint32_t>(number("ACLEMU_DEVICES", 8));
    s.memory = number("ACLEMU_MEMORY", s.profile.memory);
    s.late = strcmp(text("ACLEMU_SCHEDULE", "late"), "eager") != 0;
    s.seed = number("ACLEMU_SEED", 1);
    s.late_us = static_cast<uint32_t>(number("ACLEMU_LATE_US", 500));
    s.cann = text("ACLEMU_CANN", "8.5.0");
    s.driver = text("ACLEMU_DRIVER", "25.5.0");
    s.kernels = text("ACLEMU_KERNELS", nullptr);
    s.fail = text("ACLEMU_FAIL", nullptr);
    s.trace = text("ACLEMU_TRACE", nullptr);
    s.log_level = static_cast<int>(number("ACLEMU_LOG", 4));
    return s;
}

}  // namespace

const Settings& settings() {
    static const Settings& s = *new Settings(read());
    return s;
}

}  // namespace emu
