/* acl.h - what CANN's header of this name declares, as far as the emulator has it: a program compiled against this folder is one for a device. */
#ifndef ACL_EMULATOR_ACL_H
#define ACL_EMULATOR_ACL_H

#include "acl_rt.h"

#endif
