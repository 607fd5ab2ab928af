// What the machine says of itself: chip, versions, sizes, topology.
#include <cstdio>
#include <cstring>
#include <string>

#include "device.h"
#include "entry.h"
#include "profile.h"

using namespace emu;

namespace {

struct Version {
    int part[3] = {0, 0, 0};
};

Version parse(const char* text) {
    Version v;
    sscanf(text, "%d.%d.%d", &v.part[0], &v.part[1], &v.part[2]);
    return v;
}

bool is_driver(const char* package) { return package && !strcmp(package, "driver"); }

}  // namespace

const char* aclrtGetSocName() {
    Entry entry(__func__, Need::nothing);
    return entry.code ? nullptr : settings().profile.soc;
}

aclError aclrtGetVersion(int32_t* major, int32_t* minor, int32_t* patch) {
    ENTER(nothing);
    if (!major || !minor || !patch) return breach(Rule::null_out, "a version pointer is null");
    *major = 1, *minor = 17, *patch = 0;
    return ACL_SUCCESS;
}

aclError aclsysGetVersionStr(char* package, char* out) {
    ENTER(nothing);
    if (!package || !out) return breach(Rule::null_out, "pkgName or versionStr is null");
    strcpy(out, is_driver(package) ? settings().driver : settings().cann);
    return ACL_SUCCESS;
}

aclError aclsysGetVersionNum(char* package, int32_t* out) {
    ENTER(nothing);
    if (!package || !out) return breach(Rule::null_out, "pkgName or versionNum is null");
    Version v = parse(is_driver(package) ? settings().driver : settings().cann);
    *out = v.part[0] * 10000000 + v.part[1] * 100000 + v.part[2] * 1000;
    return ACL_SUCCESS;
}

namespace {

// The layout of the older version call: text, then its parts.
struct PackageVersion {
    char version[128];
    char major[64];
    char minor[64];
    char release[64];
    char patch[64];
    char reserved[128];
};

constexpr int kDriverPackage = 7;

}  // namespace

extern "C" aclError aclsysGetCANNVersion(int package, PackageVersion* out) {
    ENTER(nothing);
    if (!out) return breach(Rule::null_out, "version is null");
    memset(out, 0, sizeof *out);
    const char* text = package == kDriverPackage ? settings().driver : settings().cann;
    Version v = parse(text);
    snprintf(out->version, sizeof out->version, "%s", text);
    snprintf(out->major, sizeof out->major, "%d", v.part[0]);
    snprintf(out->minor, sizeof out->minor, "%d", v.part[1]);
    snprintf(out->release, sizeof out->release, "%d", v.part[2]);
    return ACL_SUCCESS;
}

aclError aclrtGetRunMode(aclrtRunMode* mode) {
    ENTER(nothing);
    if (!mode) return breach(Rule::null_out, "runMode is null");
    *mode = ACL_HOST;
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t* value) {
    ENTER(nothing);
    if (!value) return breach(Rule::null_out, "value is null");
    if (!device_exists(device)) return breach(Rule::device_id, "device %u of %u", device, settings().devices);
    const Profile& chip = settings().profile;
    switch (attribute) {
        case ACL_DEV_ATTR_AICPU_CORE_NUM: *value = 6; break;
        case ACL_DEV_ATTR_AICORE_CORE_NUM:
        case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = chip.cube_cores; break;
        case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = chip.vector_cores; break;
        case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE: *value = chip.ub_bytes; break;
        case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = static_cast<int64_t>(settings().memory); break;
        case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = chip.l2_bytes; break;
        case ACL_DEV_ATTR_SMP_ID: *value = 0; break;
        case ACL_DEV_ATTR_PHY_CHIP_ID: *value = device; break;
        case ACL_DEV_ATTR_SUPER_POD_DEVICE_ID: *value = device; break;
        case ACL_DEV_ATTR_SUPER_POD_SERVER_ID: *value = chip.fabric_handles ? 0 : 0x3FF; break;
        case ACL_DEV_ATTR_SUPER_POD_ID: *value = chip.fabric_handles ? 0 : 0xFFFFFFFF; break;
        case ACL_DEV_ATTR_MAINBOARD_ID: *value = 0; break;
        case ACL_DEV_ATTR_NPU_ARCH: *value = chip.npu_arch; break;
        default: return report(ACL_ERROR_RT_PARAM_INVALID, "attribute " + std::to_string(attribute) + " is not emulated");
    }
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceCapability(int32_t device, aclrtDevFeatureType, int32_t* value) {
    ENTER(nothing);
    if (!value) return breach(Rule::null_out, "value is null");
    if (!device_exists(device)) return breach(Rule::device_id, "device %d of %u", device, settings().devices);
    *value = 0;
    return ACL_SUCCESS;
}

aclError aclrtGetDevicesTopo(uint32_t device, uint32_t other, uint64_t* value) {
    ENTER(nothing);
    if (!value) return breach(Rule::null_out, "value is null");
    if (!device_exists(device) || !device_exists(other)) {
        return breach(Rule::device_id, "devices %u and %u of %u", device, other, settings().devices);
    }
    bool same_card = settings().profile.link_choice && device / 2 == other / 2;
    bool apart = settings().profile.reach_by_eight && device / 8 != other / 8;
    *value = apart ? ACL_RT_DEVS_TOPOLOGY_SYS : same_card ? ACL_RT_DEVS_TOPOLOGY_SIO : ACL_RT_DEVS_TOPOLOGY_HCCS;
    return ACL_SUCCESS;
}

aclError aclrtDeviceGetUuid(int32_t device, aclrtUuid* out) {
    ENTER(nothing);
    if (!out) return breach(Rule::null_out, "uuid is null");
    if (!device_exists(device)) return breach(Rule::device_id, "device %d of %u", device, settings().devices);
    memset(out, 0, sizeof *out);
    snprintf(out->bytes, sizeof out->bytes, "emulated-%d", device);
    return ACL_SUCCESS;
}

namespace {

int same_id(int32_t from, int32_t* to) {
    if (!to) return breach(Rule::null_out, "the id to fill is null");
    if (!device_exists(from)) return breach(Rule::device_id, "device %d of %u", from, settings().devices);
    *to = from;
    return 0;
}

}  // namespace

aclError aclrtGetPhyDevIdByUserDevId(const int32_t from, int32_t* const to) {
    ENTER(nothing);
    return same_id(from, to);
}

aclError aclrtGetPhyDevIdByLogicDevId(const int32_t from, int32_t* const to) {
    ENTER(nothing);
    return same_id(from, to);
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t from, int32_t* const to) {
    ENTER(nothing);
    return same_id(from, to);
}

aclError aclrtGetUserDevIdByLogicDevId(const int32_t from, int32_t* const to) {
    ENTER(nothing);
    return same_id(from, to);
}

// The model's kernels need no address for hardware synchronisation; a real one differs per chip.
aclError aclrtGetHardwareSyncAddr(void** out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "addr is null");
    *out = nullptr;
    return ACL_SUCCESS;
}
