/*
 * aclshmem.h - the Ascend SHMEM host interface under its own names only.
 *
 * What ascend/shmem.h gives without the short shmem_* names, so that it can stand beside other headers. Files inside:
 * ascend/host/init (life), mem (heap), data_plane (access, signals, waits, barriers), team, utils (log, profiler).
 */
#ifndef ACLSHMEM_H
#define ACLSHMEM_H

#define ACLSHMEM_NO_ALIASES
#include "ascend/shmem.h"

#endif
