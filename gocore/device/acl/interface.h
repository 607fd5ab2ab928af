/* interface.h: what of the CANN runtime this package calls, declared by ourselves, so that nothing of CANN is needed to build.
 *
 * Handles are void*, enumerations are int (the vendor's have 4 bytes), structs have the vendor's layout. testdata/agrees.cpp compiles this
 * beside another declaration of the same interface and compares both. */
#ifndef GSHMEM_ACL_INTERFACE_H
#define GSHMEM_ACL_INTERFACE_H

#include <stddef.h>
#include <stdint.h>

typedef struct gacl_location {
    uint32_t id;
    int type;
} gacl_location;

typedef struct gacl_physical {
    int handle_type;
    int allocation_type;
    int attribute;
    gacl_location location;
    uint64_t reserved;
} gacl_physical;

typedef struct gacl_pointer {
    gacl_location location;
    uint32_t page;
    uint32_t reserved[4];
} gacl_pointer;

typedef struct gacl_launch_attribute {
    int id;
    union {
        uint8_t schedule;
        uint32_t words[4];
    } value;
} gacl_launch_attribute;

typedef struct gacl_launch_config {
    gacl_launch_attribute *attributes;
    size_t count;
} gacl_launch_config;

typedef void (*gacl_host_function)(void *);

enum {
    GACL_HOST_TO_HOST = 0,
    GACL_HOST_TO_DEVICE = 1,
    GACL_DEVICE_TO_HOST = 2,
    GACL_DEVICE_TO_DEVICE = 3,
    GACL_MALLOC_HUGE_FIRST = 0,
    GACL_MALLOC_HUGE_ONLY = 1,
    GACL_HBM_HUGE = 4,
    GACL_LOCATION_DEVICE = 1,
    GACL_GRANULARITY_MINIMUM = 0,
    GACL_SHARE_DEFAULT = 1,
    GACL_SHARE_FABRIC = 2,
    GACL_FABRIC_BYTES = 128,
    GACL_KEY_BYTES = 65,
    GACL_NO_PID_CHECK = 1,    /* of an export, by handle and by key alike */
    GACL_IMPORT_PEER = 1,     /* an import by key enables peer access itself */
    GACL_REGISTER_MAPPED = 0,             /* of the older call */
    GACL_HOST_MAPPED = 0x2,               /* of the newer one */
    GACL_HOST_PINNED = 0x10000000,
    GACL_EVENT_SYNC = 1,
    GACL_ATTRIBUTE_SCHEDULE = 1,
    GACL_SCHEDULE_BATCH = 1,
    GACL_VECTOR_CORES = 201,
};

#endif
