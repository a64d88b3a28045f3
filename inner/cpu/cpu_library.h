/** @file inner/cpu/cpu_library.h
 * Which kernels there are: the library that makes them, and the instructions that it may use. Two
 * processes that agree in both run the same kernels for the same shapes.
 *
 * Threads: any. */
#ifndef BPT_INNER_CPU_LIBRARY_H
#define BPT_INNER_CPU_LIBRARY_H

#include <stddef.h>

/** Writes "oneDNN 2.6.3". @param size of @p text in bytes */
void bpt_cpu_library(char *text, size_t size);

/** @return oneDNN's number of the instruction set that its kernels use: the processor's best, or
 * what ONEDNN_MAX_CPU_ISA of the environment leaves of it */
unsigned bpt_cpu_instructions(void);

/** Writes both, and the architecture whose instructions they are: "oneDNN 2.6.3 on x86_64,
 * instructions 0x7f". @param size of @p text in bytes */
void bpt_cpu_kernels(char *text, size_t size);

#endif
