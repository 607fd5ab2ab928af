#include "op.h"

#include <cstdio>

extern "C" int aclemu_enqueue(aclrtStream stream, const char* name, int (*work)(void*), void (*drop)(void*),
                              void* argument);
extern "C" int aclemu_report(int code, const char* text);
extern "C" void aclemu_task_text(const char* text);

namespace emu {
namespace {

constexpr int kRefused = 161002;   // what operators answer to parameters they cannot take
constexpr int kTaskFailed = 507035;

int run(void* argument) {
    auto* executor = static_cast<aclOpExecutor*>(argument);
    try {
        executor->work();
        return 0;
    } catch (const std::exception& e) {
        aclemu_task_text((std::string(executor->name) + ": " + e.what()).c_str());
        return kTaskFailed;
    }
}

void drop(void* argument) { delete static_cast<aclOpExecutor*>(argument); }

}  // namespace

int begin(const char* name, const std::function<Work()>& plan, uint64_t* workspace, aclOpExecutor** executor) {
    try {
        *executor = new aclOpExecutor{name, plan()};
        *workspace = 0;
        return 0;
    } catch (const std::exception& e) {
        return aclemu_report(kRefused, (std::string(name) + ": " + e.what()).c_str());
    }
}

int finish(aclOpExecutor* executor, aclrtStream stream) {
    return aclemu_enqueue(stream, executor->name, run, drop, executor);
}

}  // namespace emu

extern "C" int aclDestroyAclOpExecutor(aclOpExecutor* executor) {
    delete executor;
    return 0;
}
