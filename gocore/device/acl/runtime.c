#define _GNU_SOURCE
#include "runtime.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

const char *gacl_origin(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

void *gacl_open(const char *path, int already, char **why)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | (already ? RTLD_NOLOAD : 0));
    const char *text = library ? NULL : dlerror();
    if (!library) *why = strdup(text ? text : "it is not loaded");
    return library;
}

void *gacl_symbol(void *library, const char *name) { return dlsym(library, name); }

/* dlsym gives an object pointer; the copy of its bytes is how POSIX makes it a function's. */
static void find(void *library, const char *name, void *out)
{
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof symbol);
}

gacl_runtime *gacl_bind(void *library)
{
    gacl_runtime *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->library = library;
    find(library, "aclrtGetSocName", &r->soc_name);
    find(library, "aclGetRecentErrMsg", &r->recent);
#define ENTRY(need, since, name, parameters, arguments, lost) find(library, #name, &r->name);
#include "entries.def"
#undef ENTRY
    return r;
}

gacl_entry gacl_look(const gacl_runtime *r, int index)
{
    enum { REQUIRED = 1, OPTIONAL = 0 };
    const gacl_entry all[] = {
        {"aclrtGetSocName", "8.1.RC1", "the name of the chip", REQUIRED, r->soc_name != NULL},
        {"aclGetRecentErrMsg", "8.1.RC1", "the runtime's words for a failure", OPTIONAL, r->recent != NULL},
#define ENTRY(need, since, name, parameters, arguments, lost) {#name, since, lost, need, r->name != NULL},
#include "entries.def"
#undef ENTRY
    };
    const gacl_entry end = {0};
    return index >= 0 && (size_t)index < sizeof all / sizeof *all ? all[index] : end;
}

const char *gacl_soc(const gacl_runtime *r) { return r->soc_name ? r->soc_name() : NULL; }

static int fail(gacl_runtime *r, gacl_error *e, int code)
{
    const char *text = r->recent ? r->recent() : NULL;
    if (text && *text && !e->text) e->text = strdup(text);
    return e->code = code;
}

/* A thread without a context is left with ours; one with another gets that back. */
int gacl_enter(gacl_runtime *r, gacl_error *e, void **before)
{
    *before = NULL;
    if (!r->context) return 0;
    if (r->aclrtGetCurrentContext(before)) *before = NULL;
    if (*before == r->context) return 0;
    int code = r->aclrtSetCurrentContext(r->context);
    return code ? (fail(r, e, code), e->code = GACL_NO_CONTEXT) : 0;
}

int gacl_leave(gacl_runtime *r, gacl_error *e, int code, void *before)
{
    if (code) fail(r, e, code);
    if (before && r->context && before != r->context) r->aclrtSetCurrentContext(before);
    return e->code = code;
}

uint64_t gacl_ask(void *f, const char *text)
{
    uint64_t (*ask)(const char *);
    memcpy(&ask, &f, sizeof ask);
    return ask(text);
}

uint64_t gacl_ask_plain(void *f)
{
    uint64_t (*ask)(void);
    memcpy(&ask, &f, sizeof ask);
    return ask();
}

int gacl_launch(gacl_runtime *r, gacl_error *e, void *launch, const char *name, uint32_t blocks, const void *arguments, size_t size, void *stream)
{
    int32_t (*run)(const char *, uint32_t, const void *, size_t, void *);
    void *before;
    memcpy(&run, &launch, sizeof run);
    if (gacl_enter(r, e, &before)) return e->code;
    return gacl_leave(r, e, run(name, blocks, arguments, size, stream) ? GACL_REFUSED : 0, before);
}

int gacl_together(void *f)
{
    int32_t (*ask)(void);
    memcpy(&ask, &f, sizeof ask);
    return f && ask();
}
