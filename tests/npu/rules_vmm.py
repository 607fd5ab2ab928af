"""Rules of reservations, physical memory and mappings. One function per rule: it breaks the rule. See rules.py."""

import ctypes

from acl import *  # noqa: F403
from breach import *  # noqa: F403


def refuse_reserve(rule, size=2 * MIB, alignment=0, at=None, flags=0):
    return refuse(rule, "aclrtReserveMemAddress", ctypes.byref(POINTER()), SIZE(size), SIZE(alignment), POINTER(at), U64(flags))


def refuse_map(rule, address, size, handle, offset=0, flags=0):
    return refuse(rule, "aclrtMapMem", POINTER(address), SIZE(size), SIZE(offset), POINTER(handle), U64(flags))


@case
def reserve_align():
    start()
    refuse_reserve("reserve_align", alignment=4096)


@case
def reserve_flags():
    start()
    refuse_reserve("reserve_flags", flags=2)
    reserve(2 * MIB, flags=1)


@case(soc=["910B1", "910_93"])
def reserve_expected():
    start()
    refuse_reserve("reserve_expected", at=15 * TIB)
    refuse_reserve("reserve_expected", size=4 * MIB, at=20 * TIB + 2 * MIB)
    refuse_reserve("reserve_expected", size=3 * GIB, at=20 * TIB + 512 * MIB)
    assert reserve(3 * GIB, at=20 * TIB + GIB) == 20 * TIB + GIB


@case(soc=["950"])
def reserve_chosen():
    start()
    refuse_reserve("reserve_chosen", at=20 * TIB)


@case(soc=["910B1", "910_93"])
def reserve_taken():
    start()
    reserve(2 * GIB, at=20 * TIB)
    refuse_reserve("reserve_taken", size=GIB, at=20 * TIB + GIB)


@case
def release_pointer():
    start()
    address = reserve(4 * MIB)
    refuse("release_pointer", "aclrtReleaseMemAddress", POINTER(address + 2 * MIB))
    call("aclrtReleaseMemAddress", POINTER(address))
    refuse("release_pointer", "aclrtReleaseMemAddress", POINTER(address))


@case
def release_mapped():
    start()
    address, _ = mapped()
    refuse("release_mapped", "aclrtReleaseMemAddress", POINTER(address))
    call("aclrtUnmapMem", POINTER(address))
    call("aclrtReleaseMemAddress", POINTER(address))


def refuse_physical(rule, size=2 * MIB, flags=0, **fields):
    wanted = prop(**{k: v for k, v in fields.items() if k in ("device", "attribute", "where")})
    for name in ("handle_type", "allocation_type", "reserve"):
        setattr(wanted, name, fields.get(name, 0))
    return refuse(rule, "aclrtMallocPhysical", ctypes.byref(POINTER()), SIZE(size), ctypes.byref(wanted), U64(flags))


@case
def physical_flags():
    start()
    refuse_physical("physical_flags", flags=1)


@case
def physical_size():
    start()
    refuse_physical("physical_size", size=2 * MIB + 4096)
    refuse_physical("physical_size", size=0)
    refuse_physical("physical_size", size=512 * MIB, attribute=10)


@case
def physical_prop():
    start()
    refuse_physical("physical_prop", handle_type=1)
    refuse_physical("physical_prop", allocation_type=1)
    refuse_physical("physical_prop", reserve=7)
    refuse_physical("physical_prop", device=99)
    refuse_physical("physical_prop", where=2)


@case
def physical_attr():
    start()
    refuse_physical("physical_attr", attribute=18)
    refuse_physical("physical_attr", attribute=DDR_NORMAL)
    refuse_physical("physical_attr", attribute=HBM_HUGE, where=0)
    soc = LIBRARY.aclrtGetSocName().decode()
    if "950" in soc:
        refuse_physical("physical_attr", size=GIB, attribute=14)
    if "_93" not in soc:
        refuse_physical("physical_attr", size=GIB, attribute=17)


@case
def physical_handle():
    start()
    handle = physical()
    call("aclrtFreePhysical", POINTER(handle))
    refuse("physical_handle", "aclrtFreePhysical", POINTER(handle))
    refuse_map("physical_handle", reserve(2 * MIB), 2 * MIB, handle)


@case
def map_size():
    start()
    refuse_map("map_size", reserve(8 * MIB), 2 * MIB, physical(4 * MIB))


@case
def map_offset():
    start()
    address, handle = reserve(4 * MIB), physical(2 * MIB)
    refuse_map("map_offset", address, 2 * MIB, handle, offset=4096)
    refuse_map("map_offset", address, 2 * MIB, handle, flags=1)


@case
def map_align():
    start()
    refuse_map("map_align", reserve(8 * MIB) + 4096, 2 * MIB, physical(2 * MIB))


@case
def map_reservation():
    start()
    address, handle = reserve(4 * MIB), physical(4 * MIB)
    refuse_map("map_reservation", address + 2 * MIB, 4 * MIB, handle)
    map_memory(address, 4 * MIB, handle)
    refuse_map("map_reservation", address + 2 * MIB, 2 * MIB, physical(2 * MIB))


@case
def map_mixed():
    start()
    address = reserve(8 * MIB)
    map_memory(address, 2 * MIB, physical(2 * MIB, device=0))
    refuse_map("map_mixed", address + 2 * MIB, 2 * MIB, physical(2 * MIB, device=1))
    with peer(EXPORT_VMM, 0, 1, 1) as other:
        imported = import_handle(bytes.fromhex(other.get()))
        refuse_map("map_mixed", address + 2 * MIB, 2 * MIB, imported)


@case
def map_peer():
    start(0)
    with peer(EXPORT_VMM, 1, 1, 1) as other:
        imported = import_handle(bytes.fromhex(other.get()))
        address = reserve(2 * MIB)
        refuse_map("map_peer", address, 2 * MIB, imported)
        call("aclrtDeviceEnablePeerAccess", 1, 0)
        map_memory(address, 2 * MIB, imported)
        assert read(address, 256) == bytes(range(256))


@case
def unmap_pointer():
    start()
    address, _ = mapped(4 * MIB)
    refuse("unmap_pointer", "aclrtUnmapMem", POINTER(address + 2 * MIB))
    call("aclrtUnmapMem", POINTER(address))
    refuse("unmap_pointer", "aclrtUnmapMem", POINTER(address))


@case
def access_range():
    start()
    address, _ = mapped(4 * MIB, attribute=DDR_P2P_HUGE, where=4)
    good = Access(3, Location(0, 1))
    for size, access, count in [(2 * MIB, good, 1), (4 * MIB, Access(1, Location(0, 1)), 1), (4 * MIB, good, 2)]:
        refuse("access_range", "aclrtMemSetAccess", POINTER(address), SIZE(size), ctypes.byref(access), SIZE(count))
    call("aclrtMemSetAccess", POINTER(address), SIZE(4 * MIB), ctypes.byref(good), SIZE(1))
