/** @file tools/precision.h
 * The option --precision of the programs that run networks.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_PRECISION_H
#define BPT_TOOLS_PRECISION_H

#include "base/status.h"
#include "inner/value_type.h"

/** Choices, in the order of BPT_PRECISIONS. */
typedef enum bpt_precision {
    BPT_PRECISION_FP32,
    BPT_PRECISION_BF16,          /* where the processor has the instructions, else refused */
    BPT_PRECISION_AUTO,          /* bf16 where it has them, else fp32 */
    BPT_PRECISION_BF16_EMULATED, /* bf16 where kernels for it run at all, however slowly */
} bpt_precision;

#define BPT_PRECISIONS "fp32|bf16|auto|bf16-emulated"

/** @return BPT_OK, BPT_EUSAGE (this processor cannot; with hint) */
bpt_status bpt_precision_check(bpt_precision precision);

/** @return what activations are, for a choice that bpt_precision_check() has taken */
bpt_value_type bpt_precision_type(bpt_precision precision);

#endif
