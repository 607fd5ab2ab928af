/* runtime.h: the loaded runtime, and one wrapper gacl_<entry point> for each line of entries.def.
 *
 * A wrapper makes the device's context current on the thread it runs on, calls, fetches the text of a failure (both are per
 * thread, so it happens within one call from Go), and gives the thread back the context it had. */
#ifndef GSHMEM_ACL_RUNTIME_H
#define GSHMEM_ACL_RUNTIME_H

#include "interface.h"

#define GACL_ABSENT (-1)     /* this release has no such entry point */
#define GACL_NO_CONTEXT (-2) /* the device's context could not be made current; text says why */
#define GACL_REFUSED (-3)    /* the launcher knows no such kernel with so many arguments */

typedef struct gacl_runtime {
    void *library;
    void *context; /* of the device; null before it is known: wrappers then leave the thread as it is */
    const char *(*soc_name)(void);
    const char *(*recent)(void);
#define ENTRY(need, since, name, parameters, arguments, lost) int(*name) parameters;
#include "entries.def"
#undef ENTRY
} gacl_runtime;

typedef struct gacl_error {
    int code;
    char *text; /* the runtime's own words, to be freed; may be null */
} gacl_error;

typedef struct gacl_entry {
    const char *name, *since, *lost;
    int required, present;
} gacl_entry;

/* The path that holds an address, from the dynamic linker; "" when unknown. Valid as long as the library is loaded. */
const char *gacl_origin(const void *address);

/* Opens a library; already says to take it only when the process has it. Null and *why (to be freed) when it cannot be opened. */
void *gacl_open(const char *path, int already, char **why);

/* Looks every entry point up. The result is to be freed, the library stays. */
gacl_runtime *gacl_bind(void *library);

/* Entry point number index of entries.def, name null past the end. */
gacl_entry gacl_look(const gacl_runtime *r, int index);

/* A function of a library, or null. */
void *gacl_symbol(void *library, const char *name);

/* The name of the chip, null when the runtime gives none. */
const char *gacl_soc(const gacl_runtime *r);

/* gshmem_launch of a library of kernels. */
int gacl_launch(gacl_runtime *r, gacl_error *e, void *launch, const char *name, uint32_t blocks, const void *arguments, size_t size, void *stream);

/* gshmem_starts_together of such a library; 0 when it has none. */
int gacl_together(void *f);

/* Calls uint64_t f(const char *) and uint64_t f(void): what an emulated runtime says of itself. */
uint64_t gacl_ask(void *f, const char *text);
uint64_t gacl_ask_plain(void *f);

int gacl_enter(gacl_runtime *r, gacl_error *e, void **before);
int gacl_leave(gacl_runtime *r, gacl_error *e, int code, void *before);

#define GACL_WITH(...) (gacl_runtime * r, gacl_error * e, __VA_ARGS__)
#define ENTRY(need, since, name, parameters, arguments, lost)      \
    static inline int gacl_##name GACL_WITH parameters             \
    {                                                              \
        void *before;                                              \
        if (!r->name) return e->code = GACL_ABSENT;                \
        if (gacl_enter(r, e, &before)) return e->code;             \
        return gacl_leave(r, e, r->name arguments, before);        \
    }
#include "entries.def"
#undef ENTRY

#endif
