#include "tools/train/bench/bench_batches.h"

#include "tools/shaped_model.h"
#include "tools/train/options/learning_options.h"

/* As in a training on one rank: a larger batch would hold samples twice. */
static bpt_status check_size(const bpt_bench_batches *b) {
    if (b->batch_size <= b->split->count) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--batch-size %u: a step takes %u samples, split \"%s\" has %u",
                 b->batch_size, b->batch_size, b->split->name, b->split->count);
    bpt_hint("give --batch-size %u or less", b->split->count);
    return status;
}

static bpt_status check_augmentation(const bpt_bench_batches *b, const bpt_train_options *o) {
    const bpt_dataset_info *info = bpt_dataset_describe(b->dataset);
    const bpt_augment augment = bpt_train_augment(o);
    return bpt_augment_check_images(&augment, info->encoded, info->H, info->W);
}

bpt_status bpt_bench_batches_open(bpt_bench_batches *b, const bpt_train_options *o) {
    b->batch_size = (uint32_t)o->batch_size;
    if (!o->data) return BPT_OK;
    const bpt_shaped_model wanted = {o->model, o->data, o->input_size, o->classes};
    BPT_TRY(bpt_shaped_model_open_data(&wanted, o->train_split, &b->dataset, &b->split));
    BPT_TRY(check_size(b));
    return check_augmentation(b, o);
}

static bpt_status open_feed(bpt_bench_batches *b, const bpt_train_options *o, bool as_images) {
    const bpt_loader_options loader = bpt_feed_options(o, b->split, b->batch_size, as_images);
    bpt_sampler *sampler;
    BPT_TRY(
        bpt_sampler_create_global(bpt_train_order(o), b->split->count, b->batch_size, 0, &sampler));
    return bpt_feed_create(b->dataset, b->split, &loader, NULL, 0, sampler, &b->feed);
}

bpt_status bpt_bench_batches_start(bpt_bench_batches *b, const bpt_train_options *o,
                                   const bpt_model *model, bool as_images) {
    if (b->dataset) return open_feed(b, o, as_images);
    return bpt_synthetic_make(model, b->batch_size, (uint64_t)o->seed, as_images, &b->made);
}

bpt_status bpt_bench_batches_next(bpt_bench_batches *b, bpt_batch *batch) {
    if (b->feed) return bpt_feed_next(b->feed, batch);
    *batch = (bpt_batch){.n = b->batch_size,
                         .input = b->made.input,
                         .pixels = b->made.pixels,
                         .labels = b->made.labels};
    return BPT_OK;
}

const void *bpt_bench_batches_peek(const bpt_bench_batches *b) {
    return b->feed ? bpt_feed_peek(b->feed) : b->made.input;
}

uint64_t bpt_bench_batches_wait_ns(const bpt_bench_batches *b) {
    return b->feed ? bpt_feed_wait_ns(b->feed) : 0;
}

void bpt_bench_batches_close(bpt_bench_batches *b) {
    bpt_feed_free(b->feed);
    bpt_dataset_close(b->dataset);
    bpt_synthetic_release(&b->made);
    *b = (bpt_bench_batches){0};
}
