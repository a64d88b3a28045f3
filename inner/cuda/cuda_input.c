#include "inner/cuda/cuda_input.h"

#include "base/images.h"

#include <assert.h>

enum { ALIGNMENT = 16 };

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Pixels are last, so that what a batch has less of them need not be copied. */
bpt_cuda_input bpt_cuda_input_of(bool images, int64_t n, bpt_shape shape) {
    bpt_cuda_input in = {.images = images, .n = n, .c = shape.c, .h = shape.h, .w = shape.w};
    const size_t scales = (size_t)shape.c * sizeof(float);
    if (!images) {
        in.bytes = (size_t)n * bpt_shape_bytes(shape, BPT_F32);
        return in;
    }
    in.shifts = aligned(scales);
    in.moves = in.shifts + aligned(scales);
    in.pixels = in.moves + aligned((size_t)n * sizeof(bpt_image_move));
    in.bytes = in.pixels + (size_t)(n * shape.c * shape.h * shape.w);
    return in;
}

static void add(bpt_cuda_batch *batch, const void *from, size_t at, size_t bytes) {
    assert(batch->n_spans < BPT_CUDA_BATCH_SPANS);
    batch->spans[batch->n_spans++] = (bpt_cuda_span){from, at, bytes};
}

bpt_cuda_batch bpt_cuda_input_batch(const bpt_cuda_input *in, const void *given) {
    bpt_cuda_batch batch = {.given = given};
    if (!in->images) {
        add(&batch, given, 0, in->bytes);
        return batch;
    }
    const bpt_images *images = given;
    const size_t scales = (size_t)in->c * sizeof(float);
    assert(images->n <= in->n);
    add(&batch, images->scale, 0, scales);
    add(&batch, images->shift, in->shifts, scales);
    if (images->moves) add(&batch, images->moves, in->moves, images->n * sizeof *images->moves);
    add(&batch, images->pixels, in->pixels, images->n * (size_t)(in->c * in->h * in->w));
    return batch;
}
