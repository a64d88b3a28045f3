#include "tools/synthetic.h"

#include "base/memory.h"
#include "base/random.h"

bpt_status bpt_synthetic_make(const bpt_model *model, int64_t n, uint64_t seed,
                              bpt_synthetic *batch) {
    const bpt_shape in = model->input;
    const size_t sample = (size_t)(in.c * in.h * in.w);
    *batch = (bpt_synthetic){0};
    BPT_TRY(BPT_NEW("synthetic pixels", (size_t)n * sample, &batch->pixels));
    BPT_TRY(BPT_NEW("synthetic labels", (size_t)n, &batch->labels));
    for (size_t i = 0; i < (size_t)n; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_SYNTHETIC, i);
        for (size_t p = 0; p < sample; p++) batch->pixels[i * sample + p] = bpt_random_normal(&r);
        batch->labels[i] = (int32_t)bpt_random_below(&r, (uint32_t)model->classes);
    }
    return BPT_OK;
}

void bpt_synthetic_release(bpt_synthetic *batch) {
    bpt_free(batch->pixels);
    bpt_free(batch->labels);
    *batch = (bpt_synthetic){0};
}
