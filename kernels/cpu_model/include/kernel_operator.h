// kernel_operator.h of the CPU model: the subset of Ascend C that README.md lists.
// Kernel sources include this name; with bisheng it is CANN's own header instead.
#ifndef KM_KERNEL_OPERATOR_H
#define KM_KERNEL_OPERATOR_H

#include "km/pipe.h"
#include <cstdio>

#endif
