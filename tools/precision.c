#include "tools/precision.h"

#include "inner/cpu/cpu.h"

static bpt_status check_cores(bpt_precision precision) {
    const bpt_bf16_support has = bpt_cpu_bf16();
    const bool emulated = precision == BPT_PRECISION_BF16_EMULATED;
    bpt_status status;
    if (precision == BPT_PRECISION_TF32) {
        status =
            bpt_fail(BPT_EUSAGE, "--precision tf32 is of GPUs, and this computes on the cores");
        bpt_hint("use fp32; bpt-train and bpt-eval compute on a GPU with --device cuda");
        return status;
    }
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

static bpt_status check_device(bpt_precision precision, const bpt_device *device) {
    bpt_status status;
    if (precision == BPT_PRECISION_BF16_EMULATED) {
        status = bpt_fail(BPT_EUSAGE,
                          "--precision bf16-emulated is of the processor's cores, not "
                          "of %s",
                          device->name);
        bpt_hint("use bf16, or compute on the cores (--device cpu)");
        return status;
    }
    if (precision != BPT_PRECISION_BF16 || device->bf16) return BPT_OK;
    status = bpt_fail(BPT_EUSAGE, "--precision bf16: %s does not multiply bfloat16", device->name);
    bpt_hint("use fp32, or auto where only some GPUs do");
    return status;
}

bpt_status bpt_precision_check(bpt_precision precision, const bpt_device *device) {
    if (precision == BPT_PRECISION_FP32 || precision == BPT_PRECISION_AUTO) return BPT_OK;
    return device ? check_device(precision, device) : check_cores(precision);
}

static bool multiplies_bf16(const bpt_device *device) {
    return device ? device->bf16 : bpt_cpu_bf16() == BPT_BF16_NATIVE;
}

bpt_value_type bpt_precision_type(bpt_precision precision, const bpt_device *device) {
    switch (precision) {
    case BPT_PRECISION_FP32:
    case BPT_PRECISION_TF32:
        break;
    case BPT_PRECISION_AUTO:
        return multiplies_bf16(device) ? BPT_BF16 : BPT_F32;
    case BPT_PRECISION_BF16:
    case BPT_PRECISION_BF16_EMULATED:
        return BPT_BF16;
    }
    return BPT_F32;
}

const char *bpt_precision_text(bpt_precision precision, const bpt_device *device) {
    if (bpt_precision_type(precision, device) == BPT_BF16) return "bf16";
    return precision == BPT_PRECISION_TF32 ? "tf32" : "fp32";
}
