// The front door of every entry point: counting, injected failures, thread and device checks, error texts.
#pragma once

#include <string>

#include "../interface/acl.h"
#include "../interface/errors.h"

namespace emu {

enum class Rule {
#define ACL_RULE(identifier, code, sentence) identifier,
#include "rules.def"
#undef ACL_RULE
};

enum class Need { nothing, init, context };

// Entry is made first in every entry point. code is non-zero when the call must be refused at once: an injected
// failure, a call before aclInit, a thread without a device, a forked child.
class Entry {
public:
    Entry(const char* function, Need need);
    ~Entry();
    int code = 0;

private:
    const char* outer_;
};

#define ENTER(need)                           \
    ::emu::Entry entry(__func__, ::emu::Need::need); \
    if (entry.code) return entry.code

// breach records that the running entry point was called against a rule and gives the rule's code.
int breach(Rule rule, const char* format, ...) __attribute__((format(printf, 2, 3)));

// report records a failure that no rule covers (a device error, an injected one) and gives code back.
int report(int code, const std::string& text);

// record sets the calling thread's error text and last error without breaking off anything.
void record(int code, const std::string& text);

// injected says which code the n-th passage of a named point must fail with; 0 for none. Entry asks it for
// entry points; streams ask it for tasks, by names such as "task:aclrtMemcpyAsync".
int injected(const std::string& point);

const char* code_name(int code);

}  // namespace emu
