#include "entry.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "device.h"
#include "profile.h"

namespace emu {
namespace {

struct RuleText {
    const char* identifier;
    int code;
    const char* sentence;
};

const RuleText kRules[] = {
#define ACL_RULE(identifier, code, sentence) {#identifier, code, sentence},
#include "rules.def"
#undef ACL_RULE
};

// What a thread did last. The text given out stays valid until the thread asks again.
thread_local std::string recent;
thread_local std::string given;
thread_local int last_error = 0;
thread_local const char* running = "";

struct Injection {
    std::string point;
    uint64_t passage;  // counted from 1; 0 fails every passage
    int code;
};

// Injector holds the failures to come and how often each point was passed.
class Injector {
public:
    Injector() { add(settings().fail); }

    // add parses "point:n:code[;point:n:code...]".
    bool add(const char* text) {
        std::lock_guard<std::mutex> lock(mutex_);
        std::string rest = text ? text : "";
        while (!rest.empty()) {
            std::string one = rest.substr(0, rest.find(';'));
            rest = one.size() == rest.size() ? "" : rest.substr(one.size() + 1);
            size_t last = one.rfind(':'), middle = last == 0 ? std::string::npos : one.rfind(':', last - 1);
            if (last == std::string::npos || middle == std::string::npos) return false;
            Injection i{one.substr(0, middle), strtoull(one.c_str() + middle + 1, nullptr, 10),
                        atoi(one.c_str() + last + 1)};
            if (i.passage) i.passage += passed_[i.point];
            pending_.push_back(i);
        }
        return true;
    }

    void clear() {
        std::lock_guard<std::mutex> lock(mutex_);
        pending_.clear();
    }

    int pass(const std::string& point) {
        std::lock_guard<std::mutex> lock(mutex_);
        uint64_t n = ++passed_[point];
        for (const Injection& i : pending_) {
            if (i.point == point && (i.passage == 0 || i.passage == n)) return i.code;
        }
        return 0;
    }

    uint64_t passed(const std::string& point) {
        std::lock_guard<std::mutex> lock(mutex_);
        return passed_[point];
    }

private:
    std::mutex mutex_;
    std::map<std::string, uint64_t> passed_;
    std::vector<Injection> pending_;
};

Injector& injector() {
    static Injector& one = *new Injector;
    return one;
}

void trace(const char* function) {
    static FILE* file = settings().trace ? fopen(settings().trace, "a") : nullptr;
    if (!file) return;
    fprintf(file, "%d %s\n", static_cast<int>(getpid()), function);
    fflush(file);
}

}  // namespace

const char* code_name(int code) {
    switch (code) {
#define NAME(x) case x: return #x
        NAME(ACL_ERROR_UNINITIALIZE);
        NAME(ACL_ERROR_RT_PARAM_INVALID);
        NAME(ACL_ERROR_RT_CONTEXT_NULL);
        NAME(ACL_ERROR_RT_INVALID_HANDLE);
        NAME(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
        NAME(ACL_ERROR_RT_MEMORY_ALLOCATION);
        NAME(ACL_ERROR_RT_NO_PERMISSION);
        NAME(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
        NAME(ACL_ERROR_RT_DEVICE_MEM_ERROR);
        NAME(ACL_ERROR_RT_DRV_INTERNAL_ERROR);
#undef NAME
        default: return "error";
    }
}

int injected(const std::string& point) { return injector().pass(point); }

void record(int code, const std::string& text) {
    last_error = code;
    recent = text;
}

int report(int code, const std::string& text) {
    record(code, std::string(running) + ": " + text + " (" + code_name(code) + " " + std::to_string(code) + ")");
    return code;
}

int breach(Rule rule, const char* format, ...) {
    char detail[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    const RuleText& r = kRules[static_cast<int>(rule)];
    return report(r.code, std::string(detail) + "; rule [" + r.identifier + "]: " + r.sentence);
}

Entry::Entry(const char* function, Need need) : outer_(running) {
    running = function;
    trace(function);
    if (int wanted = injected(function)) {
        code = report(wanted, "failure injected by ACLEMU_FAIL");
    } else if (need != Need::nothing) {
        code = admit(need == Need::context);
    }
}

Entry::~Entry() { running = outer_; }

}  // namespace emu

using namespace emu;

const char* aclGetRecentErrMsg() {
    if (recent.empty()) return nullptr;
    given.swap(recent);
    recent.clear();
    return given.c_str();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel) { return last_error; }

aclError aclrtGetLastError(aclrtLastErrLevel) {
    int code = last_error;
    last_error = 0;
    return code;
}

// Test controls, beside the vendor's interface.
extern "C" {

// aclemu_inject adds failures ("aclrtMapMem:3:207001", counted from now; n = 0 means always); null clears them.
int aclemu_inject(const char* text) {
    if (text) return injector().add(text) ? 0 : -1;
    injector().clear();
    return 0;
}

// aclemu_calls says how often an entry point was called.
uint64_t aclemu_calls(const char* function) { return injector().passed(function); }

// aclemu_rule gives the i-th rule as "identifier code", or null after the last.
const char* aclemu_rule(int i) {
    static thread_local std::string line;
    if (i < 0 || static_cast<size_t>(i) >= sizeof kRules / sizeof *kRules) return nullptr;
    line = std::string(kRules[i].identifier) + " " + std::to_string(kRules[i].code);
    return line.c_str();
}
}
