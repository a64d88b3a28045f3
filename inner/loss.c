/* Softmax cross-entropy: logits -> log-probabilities (oneDNN) -> loss, hits and the gradient. */
#include "inner/network_private.h"

#include <inttypes.h>
#include <math.h>

typedef struct {
    bpt_network *net;
    bpt_kernel *log_softmax;
    bpt_ref log_p, labels, grad;
    int64_t n, classes;
    bpt_batch_result *result;
} loss_tile;

static int64_t arg_max(const float *x, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* Gradient of the mean loss: (softmax - one_hot(label)) / denominator; zero without a label. */
static void sample_gradient(const float *log_p, int32_t label, int64_t classes, float scale,
                            float *grad) {
    if (label < 0) scale = 0.0f;
    for (int64_t k = 0; k < classes; k++)
        grad[k] = (expf(log_p[k]) - (k == label ? 1.0f : 0.0f)) * scale;
}

static bpt_status run_loss(void *arg, unsigned worker) {
    const loss_tile *tile = arg;
    const bpt_blocks *blocks = &tile->net->blocks;
    BPT_TRY(bpt_kernel_run(tile->log_softmax, worker));
    const float *log_p = bpt_at(blocks, tile->log_p);
    const int32_t *labels = bpt_at(blocks, tile->labels);
    float *grad = bpt_at(blocks, tile->grad);
    const float scale = 1.0f / tile->net->denominator;
    bpt_batch_result result = {0};
    for (int64_t i = 0; i < tile->n; i++, log_p += tile->classes, grad += tile->classes) {
        const int32_t label = labels[i];
        if (label >= tile->classes)
            return bpt_fail(BPT_EDATA,
                            "a label is %" PRId32 ", and the model has %" PRId64 " classes", label,
                            tile->classes);
        sample_gradient(log_p, label, tile->classes, scale, grad);
        if (label < 0) continue;
        result.loss_sum -= (double)log_p[label];
        result.n_correct += arg_max(log_p, tile->classes) == label;
        result.n_samples++;
    }
    *tile->result = result;
    return BPT_OK;
}

static bpt_status plan_tile(bpt_network *net, const bpt_activation *logits, bpt_ref log_p, size_t t,
                            loss_tile *tile) {
    bpt_builder *b = &net->builder;
    const size_t first = (size_t)b->tile_start[t];
    *tile = (loss_tile){
        .net = net,
        .log_p = bpt_ref_plus(log_p, first * (size_t)net->model->classes * sizeof(float)),
        .labels = {BPT_BLOCK_LABELS, first * sizeof(int32_t)},
        .grad = logits->grad[t],
        .n = bpt_builder_tile_samples(b, t),
        .classes = net->model->classes,
        .result = &net->tiles[t].result,
    };
    BPT_TRY(bpt_cpu_log_softmax(net->cpu, tile->n, tile->classes, &tile->log_softmax));
    bpt_kernel_bind(tile->log_softmax, BPT_SLOT_SRC, logits->value[t]);
    bpt_kernel_bind(tile->log_softmax, BPT_SLOT_DST, tile->log_p);
    return BPT_OK;
}

bpt_status bpt__plan_loss(bpt_network *net, bpt_activation *logits) {
    bpt_builder *b = &net->builder;
    bpt_activation plain;
    BPT_TRY(bpt_builder_convert(b, "loss", logits, NULL, &plain));
    const size_t bytes = (size_t)(b->batch * net->model->classes) * sizeof(float);
    const bpt_ref log_p = bpt_blocks_reserve(b->blocks, BPT_BLOCK_ACTIVATIONS, bytes);
    for (size_t t = 0; t < b->n_tiles; t++) {
        loss_tile *tile;
        uint32_t id;
        BPT_TRY(bpt_builder_object(b, sizeof *tile, (void **)&tile));
        BPT_TRY(plan_tile(net, &plain, log_p, t, tile));
        BPT_TRY(bpt_builder_task(b, BPT_PHASE_LOSS, run_loss, tile, (bpt_task_info){"loss", "loss"},
                                 plain.value_ready[t], &id));
        BPT_TRY(bpt_deps_one(b, id, &plain.grad_ready[t]));
    }
    return bpt_builder_convert_back(b, "loss", logits, &plain);
}
