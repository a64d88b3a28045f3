#include "tools/synthetic.h"

#include "base/memory.h"
#include "base/random.h"

#include <math.h>

enum { MIDDLE = 128, DEVIATION = 32 }; /* of bytes */

static bpt_status allocate(const bpt_model *model, size_t n, bool as_images, bpt_synthetic *batch) {
    const bpt_shape in = model->input;
    const size_t C = (size_t)in.c, values = n * (size_t)(in.c * in.h * in.w);
    BPT_TRY(BPT_NEW("synthetic labels", n, &batch->labels));
    if (!as_images) {
        BPT_TRY(BPT_NEW("synthetic pixels", values, &batch->pixels));
        batch->input = batch->pixels;
        return BPT_OK;
    }
    BPT_TRY(BPT_NEW("synthetic images", values, &batch->bytes));
    BPT_TRY(BPT_NEW("synthetic scales", 2 * C, &batch->scales));
    for (size_t c = 0; c < C; c++) {
        batch->scales[c] = 1.0f / DEVIATION;
        batch->scales[C + c] = (float)-MIDDLE / DEVIATION;
    }
    batch->images = (bpt_images){
        .pixels = batch->bytes,
        .scale = batch->scales,
        .shift = batch->scales + C,
        .n = (uint32_t)n,
    };
    batch->input = &batch->images;
    return BPT_OK;
}

static uint8_t byte_of(float x) {
    const float byte = roundf(MIDDLE + DEVIATION * x);
    return (uint8_t)(byte < 0 ? 0 : byte > UINT8_MAX ? UINT8_MAX : byte);
}

bpt_status bpt_synthetic_make(const bpt_model *model, int64_t n, uint64_t seed, bool as_images,
                              bpt_synthetic *batch) {
    const bpt_shape in = model->input;
    const size_t sample = (size_t)(in.c * in.h * in.w);
    *batch = (bpt_synthetic){0};
    BPT_TRY(allocate(model, (size_t)n, as_images, batch));
    for (size_t i = 0; i < (size_t)n; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_SYNTHETIC, i);
        for (size_t p = i * sample; p < (i + 1) * sample; p++) {
            const float x = bpt_random_normal(&r);
            if (as_images)
                batch->bytes[p] = byte_of(x);
            else
                batch->pixels[p] = x;
        }
        batch->labels[i] = (int32_t)bpt_random_below(&r, (uint32_t)model->classes);
    }
    return BPT_OK;
}

void bpt_synthetic_release(bpt_synthetic *batch) {
    bpt_free(batch->pixels);
    bpt_free(batch->bytes);
    bpt_free(batch->scales);
    bpt_free(batch->labels);
    *batch = (bpt_synthetic){0};
}
