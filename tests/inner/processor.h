/** @file tests/inner/processor.h
 * Instructions that this processor has, where tests depend on them. Others than x86-64 have none of
 * these.
 *
 * Threads: any. */
#ifndef TESTS_INNER_PROCESSOR_H
#define TESTS_INNER_PROCESSOR_H

#include <stdbool.h>

#if defined(__x86_64__)
#define PROCESSOR_HAS(set) __builtin_cpu_supports(set)
#else
#define PROCESSOR_HAS(set) 0
#endif

/** @return whether there is AVX2 */
static inline bool processor_has_avx2(void) {
    return PROCESSOR_HAS("avx2");
}

/** @return whether matrices of bfloat16 are multiplied by instructions of their own */
static inline bool processor_has_amx(void) {
    return PROCESSOR_HAS("amx-bf16");
}

#undef PROCESSOR_HAS

#endif
