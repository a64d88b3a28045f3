#include "inner/cpu/cpu_library.h"

#include "inner/cpu/dnnl_version.h"

#include <stdio.h>

void bpt_cpu_library(char *text, size_t size) {
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

unsigned bpt_cpu_instructions(void) {
    return (unsigned)dnnl_get_effective_cpu_isa();
}
