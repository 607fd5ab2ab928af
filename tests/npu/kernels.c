/* Stands in for the kernel library (kernels/cpu_model/launch.h) where a test wants one kernel it understands:
 * emulator_test_add(state, vector, n) adds block_dim to each of n 64-bit words at device address `vector`;
 * emulator_test_break reports a broken rule; emulator_test_spin never ends. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

static __thread char report[200];

int32_t km_launch(const char* name, uint32_t blocks, const void* args, size_t size, const km_device_t* dev) {
    const uint64_t* a = args;
    report[0] = 0;
    if (size != 24 || dev->size != sizeof *dev) return KM_BAD_ARGUMENT;
    if (!strcmp(name, "emulator_test_break")) {
        snprintf(report, sizeof report, "kernel.cpp:12: flag 3 was set twice");
        return KM_RULE_BROKEN;
    }
    while (!strcmp(name, "emulator_test_spin")) usleep(1000);
    uint64_t* words = dev->translate(dev->translate_ctx, a[1], 8 * a[2]);
    if (!words) {
        snprintf(report, sizeof report, "0x%llx is not device memory", (unsigned long long)a[1]);
        return KM_RULE_BROKEN;
    }
    for (uint64_t i = 0; i < a[2]; i++) words[i] += blocks;
    return KM_OK;
}

const char* km_last_report(void) { return report; }

int64_t km_kernel_args_size(const char* name) { return strncmp(name, "emulator_test_", 14) ? -1 : 24; }
