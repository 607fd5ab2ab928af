#include <stdint.h>

extern void gacl_called(uintptr_t which); /* stream_unsafe.go */
void gacl_host(void *which);

/* A host function of a stream: which is the number that stream_unsafe.go passed, never an address. */
void gacl_host(void *which) { gacl_called((uintptr_t)which); }
