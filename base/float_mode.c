#include "base/float_mode.h"

#if defined(__SSE2__)
#include <pmmintrin.h>

bool bpt_float_flush_denormals(void) {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
    return true;
}

#elif defined(__aarch64__)
#include <stdint.h>

bool bpt_float_flush_denormals(void) {
    const uint64_t flush_to_zero = (uint64_t)1 << 24; /* FPCR.FZ */
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | flush_to_zero));
    return true;
}

#else

bool bpt_float_flush_denormals(void) {
    return false;
}

#endif
