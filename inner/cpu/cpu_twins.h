/** @file inner/cpu/cpu_twins.h
 * Kernels that differ in nothing but where their operands are, as those of tiles that follow each
 * other: such twins share oneDNN's descriptor, which takes tens of kilobytes, and the code.
 *
 * Threads: the one that made the bpt_cpu. */
#ifndef BPT_INNER_CPU_TWINS_H
#define BPT_INNER_CPU_TWINS_H

#include "inner/cpu/cpu.h"

#include <stddef.h>
#include <stdint.h>

typedef enum bpt__operation {
    BPT__CONV_FORWARD = 1,
    BPT__CONV_BACKWARD_DATA,
    BPT__CONV_BACKWARD_WEIGHTS,
    BPT__POOL_FORWARD,
    BPT__POOL_BACKWARD,
    BPT__LRN_FORWARD,
    BPT__LRN_BACKWARD,
    BPT__RELU_FORWARD,
    BPT__RELU_BACKWARD,
    BPT__REORDER,
    BPT__MATMUL,
} bpt__operation;

enum { BPT__SPEC_NUMBERS = 28 };

/** All that decides what a kernel does, as numbers. */
typedef struct bpt__spec {
    size_t n; /* 0: of a kernel that has no twins */
    int64_t numbers[BPT__SPEC_NUMBERS];
} bpt__spec;

bpt__spec bpt__spec_of(bpt__operation operation);
void bpt__spec_number(bpt__spec *s, int64_t number);
void bpt__spec_real(bpt__spec *s, float number);
void bpt__spec_problem(bpt__spec *s, const bpt_conv_problem *p);
/** @param l NULL: of the kernel's own choice */
void bpt__spec_layout(bpt__spec *s, const bpt_layout *l);
/** @param k whose descriptor the kernel's is made from */
void bpt__spec_kernel(bpt__spec *s, const bpt_kernel *k);

/** Looks among the kernels that were made last for one of the same spec, and makes a twin of it.
 * @param[out] out NULL if there is none: who makes it sets its .spec
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__kernel_twin(bpt_cpu *cpu, const bpt__spec *s, bpt_kernel **out);

#endif
