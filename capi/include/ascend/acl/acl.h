/* acl.h - stand-in for CANN's header of this name on hosts without an NPU; see acl_rt.h beside it. */
#ifndef ACLSHMEM_STAND_IN_ACL_H
#define ACLSHMEM_STAND_IN_ACL_H

#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline aclError aclInit(const char *configPath) {
  (void)configPath;
  return ACL_SUCCESS;
}
static inline aclError aclFinalize(void) { return ACL_SUCCESS; }
/* The words of this thread's last failure. */
static inline const char *aclGetRecentErrMsg(void) { return aclshmem_cpu_last_error(); }

#ifdef __cplusplus
}
#endif

#endif
