// shmem_device_team.h: who is in a team.
#ifndef ACLSHMEM_DEVICE_TEAM_H
#define ACLSHMEM_DEVICE_TEAM_H

#include "device/shmem_def.h"

ACLSHMEM_DEVICE int aclshmem_my_pe(void) { return gshmem::context().me; }
ACLSHMEM_DEVICE int aclshmem_n_pes(void) { return gshmem::context().n; }

// -1 for a team that does not exist.
ACLSHMEM_DEVICE int aclshmem_team_my_pe(aclshmem_team_t team)
{
    return gshmem::team_of(team).me;
}
ACLSHMEM_DEVICE int aclshmem_team_n_pes(aclshmem_team_t team)
{
    const gshmem::Team t = gshmem::team_of(team);
    return t.address ? t.n : -1;
}
// The world PE of a member; -1 outside 0..size-1.
ACLSHMEM_DEVICE int aclshmem_team_pe_mapping(aclshmem_team_t team, int pe)
{
    const gshmem::Team t = gshmem::team_of(team);
    return pe >= 0 && pe < t.n ? t.pe(pe) : -1;
}
// The number in dest_team of the PE that is src_pe in src_team; -1 when it is not there.
ACLSHMEM_DEVICE int aclshmem_team_translate_pe(aclshmem_team_t src_team, int src_pe, aclshmem_team_t dest_team)
{
    const int world = aclshmem_team_pe_mapping(src_team, src_pe);
    const gshmem::Team d = gshmem::team_of(dest_team);
    return world < 0 || !d.address ? -1 : d.pe(GSHMEM_MAX_PES + world);
}

#endif
