/** @file tools/precision.h
 * The option --precision of the programs that run networks.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_PRECISION_H
#define BPT_TOOLS_PRECISION_H

#include "base/status.h"
#include "inner/device.h"
#include "inner/loops/value_type.h"

/** Choices, in the order of BPT_PRECISIONS. */
typedef enum bpt_precision {
    BPT_PRECISION_FP32,
    BPT_PRECISION_BF16,          /* where processor or device multiply it, else refused */
    BPT_PRECISION_AUTO,          /* bf16 where they do, else fp32 */
    BPT_PRECISION_BF16_EMULATED, /* on cores: bf16 where its kernels run at all, however slowly */
    BPT_PRECISION_TF32,          /* on a device: floats, multiplied with 10 bits of mantissa */
} bpt_precision;

#define BPT_PRECISIONS "fp32|bf16|auto|bf16-emulated|tf32"

/** @param device where the network is to compute; NULL: on the processor's cores
 * @return BPT_OK, BPT_EUSAGE (it cannot; with hint) */
bpt_status bpt_precision_check(bpt_precision precision, const bpt_device *device);

/** @return what activations are, for a choice that bpt_precision_check() has taken */
bpt_value_type bpt_precision_type(bpt_precision precision, const bpt_device *device);

/** @return "bf16", "tf32" or "fp32": what such a choice has come to */
const char *bpt_precision_text(bpt_precision precision, const bpt_device *device);

#endif
