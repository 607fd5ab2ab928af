// Compiles only when interface.h and entries.def of this package agree with another declaration of the CANN runtime (acl.h,
// errors are compile errors). interface_test.go compiles it.
#include <type_traits>

#include "acl.h"

#include "../interface.h"

// alike: what a caller by one declaration passes is what a callee by the other reads.
template <typename A, typename B>
constexpr bool alike()
{
    using X = std::remove_cv_t<A>;
    using Y = std::remove_cv_t<B>;
    if constexpr (std::is_pointer_v<X> != std::is_pointer_v<Y>) return false;
    else if constexpr (std::is_pointer_v<X>) {
        using P = std::remove_cv_t<std::remove_pointer_t<X>>;
        using Q = std::remove_cv_t<std::remove_pointer_t<Y>>;
        if constexpr (std::is_void_v<P>) return !std::is_pointer_v<Q>;
        else return alike<P, Q>();
    }
    else if constexpr (std::is_function_v<X> || std::is_function_v<Y>) return std::is_same_v<X, Y>;
    else if constexpr (std::is_class_v<X> || std::is_class_v<Y>) return std::is_class_v<X> && std::is_class_v<Y> && sizeof(X) == sizeof(Y) && alignof(X) == alignof(Y);
    else if constexpr (std::is_enum_v<Y>) return std::is_same_v<X, int> && sizeof(Y) == sizeof(int);
    else return std::is_same_v<X, Y>;
}

template <typename Ours, typename Theirs>
struct Same : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct Same<R(A...), S(B...)> {
    static constexpr bool all()
    {
        if constexpr (sizeof...(A) != sizeof...(B)) return false;
        else return alike<R, S>() && (alike<A, B>() && ...);
    }
    static constexpr bool value = all();
};

namespace ours {
#define ENTRY(need, since, name, parameters, arguments, lost) using name = int parameters;
#include "../entries.def"
#undef ENTRY
} // namespace ours
#define ENTRY(need, since, name, parameters, arguments, lost) static_assert(Same<ours::name, decltype(::name)>::value, #name);
#include "../entries.def"
#undef ENTRY
static_assert(Same<const char*(), decltype(aclrtGetSocName)>::value);
static_assert(Same<const char*(), decltype(aclGetRecentErrMsg)>::value);

#define FIELD(a, x, b, y) static_assert(offsetof(a, x) == offsetof(b, y) && sizeof(a::x) == sizeof(b::y), #a "." #x);
FIELD(gacl_location, id, aclrtMemLocation, id)
FIELD(gacl_location, type, aclrtMemLocation, type)
FIELD(gacl_physical, handle_type, aclrtPhysicalMemProp, handleType)
FIELD(gacl_physical, allocation_type, aclrtPhysicalMemProp, allocationType)
FIELD(gacl_physical, attribute, aclrtPhysicalMemProp, memAttr)
FIELD(gacl_physical, location, aclrtPhysicalMemProp, location)
FIELD(gacl_physical, reserved, aclrtPhysicalMemProp, reserve)
FIELD(gacl_pointer, location, aclrtPtrAttributes, location)
FIELD(gacl_pointer, page, aclrtPtrAttributes, pageSize)
FIELD(gacl_launch_attribute, id, aclrtLaunchKernelAttr, id)
FIELD(gacl_launch_attribute, value, aclrtLaunchKernelAttr, value)
FIELD(gacl_launch_config, attributes, aclrtLaunchKernelCfg, attrs)
FIELD(gacl_launch_config, count, aclrtLaunchKernelCfg, numAttrs)

#define VALUE(a, b) static_assert(int(a) == int(b), #a);
VALUE(GACL_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_HOST)
VALUE(GACL_HOST_TO_DEVICE, ACL_MEMCPY_HOST_TO_DEVICE)
VALUE(GACL_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_HOST)
VALUE(GACL_DEVICE_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_DEVICE)
VALUE(GACL_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_FIRST)
VALUE(GACL_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_HUGE_ONLY)
VALUE(GACL_HBM_HUGE, ACL_HBM_MEM_HUGE)
VALUE(GACL_LOCATION_DEVICE, ACL_MEM_LOCATION_TYPE_DEVICE)
VALUE(GACL_GRANULARITY_MINIMUM, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM)
VALUE(GACL_SHARE_DEFAULT, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT)
VALUE(GACL_SHARE_FABRIC, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC)
VALUE(GACL_FABRIC_BYTES, sizeof(aclrtMemFabricHandle))
VALUE(GACL_NO_PID_CHECK, ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
VALUE(GACL_NO_PID_CHECK, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
VALUE(GACL_IMPORT_PEER, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS)
VALUE(GACL_REGISTER_MAPPED, ACL_HOST_REGISTER_MAPPED)
VALUE(GACL_HOST_MAPPED, ACL_HOST_REG_MAPPED)
VALUE(GACL_HOST_PINNED, ACL_HOST_REG_PINNED)
VALUE(GACL_EVENT_SYNC, ACL_EVENT_SYNC)
VALUE(GACL_ATTRIBUTE_SCHEDULE, ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE)
VALUE(GACL_VECTOR_CORES, ACL_DEV_ATTR_VECTOR_CORE_NUM)
