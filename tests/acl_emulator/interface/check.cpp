// Compiles only when a set of CANN headers agrees with the tables. Built twice by tests/npu/test_interface.py:
// against the emulator's acl.h, and with -DVENDOR against the headers of an installed torch_npu.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifdef VENDOR
#include <acl/acl.h>
#include <acl/error_codes/rt_error_codes.h>
typedef int aclrtMemLinkType;  // newer than the headers that torch_npu ships
#include "absent.h"  // made by the test: newer entry points that these headers lack
#else
#include "acl.h"
#include "errors.h"
#endif

#define ACL_CONSTANT(name, value) static_assert(static_cast<long long>(name) == (value), #name);
#include "constants.def"

#define ACL_SIZE(type, size) static_assert(sizeof(type) == (size), #type);
#define ACL_FIELD(type, field, at) static_assert(offsetof(type, field) == (at), #type "." #field);
#include "layouts.def"

namespace table {
#define ACL_FUNCTION(since, result, name, parameters) using name = result parameters;
#include "functions.def"
#undef ACL_FUNCTION
}

template <typename Table, typename Header>
constexpr bool same = std::is_same_v<Table, Header>;
#define ACL_FUNCTION(since, result, name, parameters) CHECK_##since(name)
#define CHECK(name) static_assert(same<table::name, decltype(::name)>, #name);
#define CHECK_8_1(name) CHECK(name)
#define CHECK_8_5(name) CHECK(name)
#define CHECK_9_0(name) CHECK(name)
#define CHECK_9_1(name) CHECK(name)
#define CHECK_9_2b1(name) CHECK(name)
#define CHECK_master(name) CHECK(name)
#include "functions.def"
