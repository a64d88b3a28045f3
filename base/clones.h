/** @file base/clones.h
 * Loops over floats that are compiled for several instruction sets; the processor that runs them
 * chooses. The results have the same bits everywhere: no sums are reordered, no products fused.
 *
 * Threads: any. */
#ifndef BPT_BASE_CLONES_H
#define BPT_BASE_CLONES_H

/* Loops over 16-bit values want AVX-512 with BW, and only the level has a name here (GCC 12).
 * Sanitizers start later than the choice is made. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) &&    \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BPT_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define BPT_CLONES
#endif

#endif
