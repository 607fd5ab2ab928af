/*
 * shmem_host_team.h - teams. Numbers are small and of this PE alone: the same team may have other numbers elsewhere.
 *
 * int results are 0 or a code of aclshmem_error_code_t. Instances other than 0 have teams as well. Threads: any.
 */
#ifndef SHMEM_HOST_TEAM_H
#define SHMEM_HOST_TEAM_H

#include "../../host_device/shmem_common_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A team of parent members pe_start, pe_start + pe_stride, ... (pe_size of them); -1 in *new_team and result 0 for a PE that is none.
   Collective: over the members of the new team; others may call it or not. Blocks: until all members called. */
ACLSHMEM_HOST_API int aclshmem_team_split_strided(aclshmem_team_t parent_team, int pe_start, int pe_stride, int pe_size,
                                                  aclshmem_team_t *new_team);
/* Rows of x_range members (the last may be shorter) and columns. Collective: over the parent. Blocks: until all came. */
ACLSHMEM_HOST_API int aclshmem_team_split_2d(aclshmem_team_t parent_team, int x_range, aclshmem_team_t *x_team, aclshmem_team_t *y_team);

/* The number in dest_team of member src_pe of src_team; -1 when it is none, or a team is not valid. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API int aclshmem_team_translate_pe(aclshmem_team_t src_team, int src_pe, aclshmem_team_t dest_team);
ACLSHMEM_HOST_API int aclshmem_team_my_pe(aclshmem_team_t team); /* -1 when not valid */
ACLSHMEM_HOST_API int aclshmem_team_n_pes(aclshmem_team_t team); /* -1 when not valid */
ACLSHMEM_HOST_API int aclshmem_team_get_config(aclshmem_team_t team, aclshmem_team_config_t *config);

/* Ends this PE's number at once; ACLSHMEM_TEAM_WORLD stays. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API void aclshmem_team_destroy(aclshmem_team_t team);

#ifdef __cplusplus
}
#endif

#include "../../shmem_aliases.h"

#endif
