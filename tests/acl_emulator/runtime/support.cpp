// Entry points that torch_npu needs beside the runtime proper: settings that change nothing here, logging, the
// older operator interface (which names the operator that is missing), profiling hooks.
#include <cstdarg>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "device.h"
#include "entry.h"
#include "profile.h"

using namespace emu;

#define NOTHING_TO_DO(name, parameters)  \
    extern "C" aclError name parameters { \
        ENTER(nothing);                  \
        return ACL_SUCCESS;              \
    }
#define NOT_EMULATED(name, parameters)                                       \
    extern "C" aclError name parameters {                                    \
        ENTER(nothing);                                                      \
        return report(ACL_ERROR_FEATURE_UNSUPPORTED, "not emulated");        \
    }

extern "C" aclError aclrtGetSysParamOpt(int, int64_t* value) {
    ENTER(nothing);
    if (!value) return breach(Rule::null_out, "value is null");
    *value = 0;
    return ACL_SUCCESS;
}

extern "C" aclError aclrtCtxGetSysParamOpt(int option, int64_t* value) { return aclrtGetSysParamOpt(option, value); }

NOTHING_TO_DO(aclrtSetSysParamOpt, (int, int64_t))
NOTHING_TO_DO(aclrtCtxSetSysParamOpt, (int, int64_t))
NOTHING_TO_DO(aclrtSetDeviceSatMode, (int))
NOTHING_TO_DO(aclrtSetOpExecuteTimeOut, (uint32_t))
NOTHING_TO_DO(aclrtSetOpWaitTimeout, (uint32_t))
NOTHING_TO_DO(aclrtSetStreamAttribute, (aclrtStream, int, void*))
NOTHING_TO_DO(aclrtSetStreamOverflowSwitch, (aclrtStream, uint32_t))
NOTHING_TO_DO(aclmdlInitDump, ())
NOTHING_TO_DO(aclmdlSetDump, (const char*))
NOTHING_TO_DO(aclmdlFinalizeDump, ())
NOTHING_TO_DO(aclrtSubscribeReport, (uint64_t, aclrtStream))
NOTHING_TO_DO(aclrtUnSubscribeReport, (uint64_t, aclrtStream))
NOT_EMULATED(rtDevBinaryRegister, (const void*, void**))
NOT_EMULATED(rtFunctionRegister, (void*, const void*, const char*, const void*, uint32_t))
NOT_EMULATED(rtKernelLaunch, (const void*, uint32_t, void*, uint32_t, void*, aclrtStream))

extern "C" aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actual) {
    ENTER(nothing);
    if (actual) *actual = timeout;
    return ACL_SUCCESS;
}

extern "C" aclError rtGetC2cCtrlAddr(uint64_t* address, uint32_t* length) {
    ENTER(nothing);
    if (address) *address = 0;
    if (length) *length = 0;
    return ACL_SUCCESS;
}

// Nothing is ever reported this way (host functions run on the stream's thread), but the call must wait.
extern "C" aclError aclrtProcessReport(int32_t timeout_ms) {
    ENTER(nothing);
    std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms < 0 ? 1000 : timeout_ms));
    return ACL_ERROR_RT_WAIT_TIMEOUT;
}

extern "C" aclError aclrtGetStreamOverflowSwitch(aclrtStream, uint32_t* flag) {
    ENTER(nothing);
    if (flag) *flag = 0;
    return ACL_SUCCESS;
}

extern "C" aclError aclrtGetPrimaryCtxState(int32_t device, uint32_t* flags, int32_t* active) {
    ENTER(nothing);
    if (!device_exists(device)) return breach(Rule::device_id, "device %d of %u", device, settings().devices);
    if (flags) *flags = 0;
    if (active) *active = 1;
    return ACL_SUCCESS;
}

extern "C" aclError aclGetCannAttribute(int attribute, int32_t* value) {
    ENTER(nothing);
    if (!value) return breach(Rule::null_out, "value is null");
    *value = attribute == 0 || attribute == 1;  // infinity and NaN, bfloat16; operators are not compiled
    return ACL_SUCCESS;
}

extern "C" aclError aclGetCannAttributeList(const int** list, size_t* count) {
    ENTER(nothing);
    static const int attributes[] = {0, 1};
    if (!list || !count) return breach(Rule::null_out, "list or count is null");
    *list = attributes;
    *count = 2;
    return ACL_SUCCESS;
}

extern "C" aclError aclGetDeviceCapability(uint32_t device, int what, int64_t* value) {
    ENTER(nothing);
    if (!value) return breach(Rule::null_out, "value is null");
    if (!device_exists(device)) return breach(Rule::device_id, "device %u of %u", device, settings().devices);
    const Profile& chip = settings().profile;
    *value = what == 0 ? chip.cube_cores : what == 1 ? chip.vector_cores : chip.l2_bytes;
    return ACL_SUCCESS;
}

extern "C" void aclAppLog(int level, const char* first, const char* second, uint32_t line, const char* format, ...) {
    if (level < settings().log_level) return;
    fprintf(stderr, "[acl %d] %s %s:%u ", level, first, second, line);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

// Compile options

extern "C" aclError aclSetCompileopt(int, const char*) {
    ENTER(nothing);
    return ACL_SUCCESS;
}

extern "C" size_t aclGetCompileoptSize(int) { return 8; }

extern "C" aclError aclGetCompileopt(int, char* value, size_t length) {
    ENTER(nothing);
    if (!value || length < 8) return breach(Rule::null_out, "value is null or shorter than 8");
    strcpy(value, "disable");
    return ACL_SUCCESS;
}

// Descriptors of the older operator interface

struct aclTensorDesc {
    int type;
    int format;
    std::vector<int64_t> dims;
};

struct aclDataBuffer {
    void* data;
    size_t size;
};

struct aclopAttr {};

extern "C" {

aclTensorDesc* aclCreateTensorDesc(int type, int count, const int64_t* dims, int format) {
    return new aclTensorDesc{type, format, count > 0 ? std::vector<int64_t>(dims, dims + count) : std::vector<int64_t>()};
}

void aclDestroyTensorDesc(const aclTensorDesc* desc) { delete desc; }
int aclGetTensorDescType(const aclTensorDesc* desc) { return desc->type; }
int aclGetTensorDescFormat(const aclTensorDesc* desc) { return desc->format; }
size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) { return desc->dims.size(); }
void aclSetTensorDescName(aclTensorDesc*, const char*) {}

aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* size) {
    if (index >= desc->dims.size()) return ACL_ERROR_INVALID_PARAM;
    *size = desc->dims[index];
    return ACL_SUCCESS;
}

aclError aclSetTensorFormat(aclTensorDesc* desc, int format) {
    desc->format = format;
    return ACL_SUCCESS;
}

aclError aclSetTensorShape(aclTensorDesc* desc, int count, const int64_t* dims) {
    desc->dims.assign(dims, dims + count);
    return ACL_SUCCESS;
}

aclError aclSetTensorPlaceMent(aclTensorDesc*, int) { return ACL_SUCCESS; }
aclError aclSetTensorConst(aclTensorDesc*, void*, size_t) { return ACL_SUCCESS; }
aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) { return new aclDataBuffer{data, size}; }

aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
    delete buffer;
    return ACL_SUCCESS;
}

aclopAttr* aclopCreateAttr() { return new aclopAttr; }
void aclopDestroyAttr(const aclopAttr* attr) { delete attr; }
aclError aclopSetAttrBool(aclopAttr*, const char*, uint8_t) { return ACL_SUCCESS; }
aclError aclopSetAttrInt(aclopAttr*, const char*, int64_t) { return ACL_SUCCESS; }
aclError aclopSetAttrFloat(aclopAttr*, const char*, float) { return ACL_SUCCESS; }
aclError aclopSetAttrString(aclopAttr*, const char*, const char*) { return ACL_SUCCESS; }
aclError aclopSetAttrDataType(aclopAttr*, const char*, int) { return ACL_SUCCESS; }
aclError aclopSetAttrListBool(aclopAttr*, const char*, int, const uint8_t*) { return ACL_SUCCESS; }
aclError aclopSetAttrListInt(aclopAttr*, const char*, int, const int64_t*) { return ACL_SUCCESS; }
aclError aclopSetAttrListFloat(aclopAttr*, const char*, int, const float*) { return ACL_SUCCESS; }
aclError aclopSetAttrListListInt(aclopAttr*, const char*, int, const int*, const int64_t* const*) { return ACL_SUCCESS; }
}

// torch_npu comes here when libopapi has no function for an operator: the name is what its user needs.
extern "C" aclError aclopCompileAndExecute(const char* type, int, const aclTensorDesc* const*, const aclDataBuffer* const*,
                                           int, const aclTensorDesc* const*, aclDataBuffer* const*, const aclopAttr*,
                                           int, int, const char*, aclrtStream) {
    ENTER(nothing);
    return report(ACL_ERROR_FEATURE_UNSUPPORTED, std::string("operator ") + type +
                  " has no CPU loop in the emulator; add it to tests/acl_emulator/operators");
}

extern "C" aclError aclopCompileAndExecuteV2(const char* type, int, aclTensorDesc**, aclDataBuffer**, int, aclTensorDesc**,
                                             aclDataBuffer**, aclopAttr*, int, int, const char*, aclrtStream) {
    return aclopCompileAndExecute(type, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, 0, 0, nullptr, nullptr);
}

// Profiling hooks: accepted and dropped.

extern "C" {
uint64_t MsprofGetHashId(const char*, size_t) { return 0; }
int32_t MsprofRegisterCallback(uint32_t, void*) { return 0; }
int32_t MsprofReportApi(uint32_t, const void*) { return 0; }
int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t) { return 0; }
int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) { return 0; }

uint64_t MsprofSysCycleTime() {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
}
