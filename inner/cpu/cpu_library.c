#include "inner/cpu/cpu_library.h"

#include "inner/cpu/dnnl_version.h"

#include <sys/utsname.h>

#include <stdio.h>

void bpt_cpu_library(char *text, size_t size) {
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

unsigned bpt_cpu_instructions(void) {
    return (unsigned)dnnl_get_effective_cpu_isa();
}

void bpt_cpu_kernels(char *text, size_t size) {
    char library[32];
    struct utsname system;
    bpt_cpu_library(library, sizeof library);
    snprintf(text, size, "%s on %.20s, instructions 0x%x", library,
             uname(&system) == 0 ? system.machine : "?", bpt_cpu_instructions());
}
