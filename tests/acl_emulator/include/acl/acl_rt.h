/* acl_rt.h - see acl.h beside it. */
#ifndef ACL_EMULATOR_ACL_RT_H
#define ACL_EMULATOR_ACL_RT_H

#include "../../interface/acl.h"

#define ACL_SUCCESS 0

#endif
