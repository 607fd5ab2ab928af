// How an operator is written: OPERATOR(Name, (parameters), work) makes the pair aclnnName and
// aclnnNameGetWorkspaceSize. `work` is an expression that gives the function to run on the stream; it must capture
// views and values, because the descriptors may be gone by then.
#pragma once

#include <functional>

#include "tensor.h"

namespace emu {
using Work = std::function<void()>;
}

struct aclOpExecutor {
    const char* name;
    emu::Work work;
};

namespace emu {
int begin(const char* name, const std::function<Work()>& plan, uint64_t* workspace, aclOpExecutor** executor);
int finish(aclOpExecutor* executor, aclrtStream stream);
}

#define OPERATOR_STRIP(...) __VA_ARGS__
#define OPERATOR(name, parameters, ...)                                                                          \
    extern "C" int aclnn##name##GetWorkspaceSize(OPERATOR_STRIP parameters, uint64_t* workspace_size_,      \
                                                 aclOpExecutor** executor_) {                                    \
        return ::emu::begin("aclnn" #name, [&]() -> ::emu::Work { return __VA_ARGS__; }, workspace_size_, executor_); \
    }                                                                                                            \
    extern "C" int aclnn##name(void*, uint64_t, aclOpExecutor* executor_, aclrtStream stream_) {                 \
        return ::emu::finish(executor_, stream_);                                                                \
    }
