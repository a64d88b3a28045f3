#include "tools/precision.h"

#include "inner/cpu/cpu.h"

bpt_status bpt_precision_check(bpt_precision precision) {
    const bpt_bf16_support has = bpt_cpu_bf16();
    const bool emulated = precision == BPT_PRECISION_BF16_EMULATED;
    bpt_status status;
    if (precision == BPT_PRECISION_FP32 || precision == BPT_PRECISION_AUTO) return BPT_OK;
    if (has == BPT_BF16_NATIVE || (has == BPT_BF16_EMULATED && emulated)) return BPT_OK;
    status = bpt_fail(BPT_EUSAGE, "--precision %s: this processor has no %s",
                      emulated ? "bf16-emulated" : "bf16",
                      has == BPT_BF16_EMULATED ? "instructions for bfloat16 (avx512_bf16)"
                                               : "AVX-512, which kernels for bfloat16 need");
    if (has == BPT_BF16_EMULATED)
        bpt_hint(
            "use fp32, or auto where only some machines have them; bf16-emulated computes the "
            "same slowly");
    else
        bpt_hint("use fp32, or auto where only some machines have it");
    return status;
}

bpt_value_type bpt_precision_type(bpt_precision precision) {
    if (precision == BPT_PRECISION_FP32) return BPT_F32;
    return precision == BPT_PRECISION_AUTO && bpt_cpu_bf16() != BPT_BF16_NATIVE ? BPT_F32
                                                                                : BPT_BF16;
}
