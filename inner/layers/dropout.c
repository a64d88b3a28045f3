/* Dropout (Srivastava, Hinton et al. 2014), inverted as is usual: in training a value is dropped
 * with probability p, else divided by 1 - p; in evaluation it passes.
 *
 * The mask is drawn anew in the backward pass, from the same numbers, rather than stored. */
#include "base/clones.h"
#include "base/random.h"
#include "inner/layers/fields.h"
#include "inner/step/builder.h"

#include <string.h>

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_dropout_config *config = l->config;
    (void)scope;
    return bpt__field_real(l, doc, fields, "rate", 0.0, 0.99, 0.5, &config->rate);
}

typedef struct {
    const bpt_builder *b;
    bpt_ref from, to;
    uint64_t layer, first_sample; /* of the tile, within the batch */
    int64_t n_samples;
    size_t n_values; /* of a sample */
    bpt_value_type type;
    double rate;
} mask_task;

/* Layer, step and sample in one number; a step beyond 2^28 begins anew.
 * @param i sample of the tile */
static bpt_random stream(const mask_task *task, int64_t i) {
    const bpt_draw *draw = &task->b->step->draw;
    const uint64_t sample = draw->first_sample + task->first_sample + (uint64_t)i;
    const uint64_t id = task->layer << 52 | (draw->step & 0xFFFFFFF) << 24 | (sample & 0xFFFFFF);
    return bpt_random_stream(draw->seed, BPT_PURPOSE_DROPOUT, id);
}

#define DRAWN 512 /* numbers at once */

#define DROP(T, n)                                                                                 \
    do {                                                                                           \
        const bpt_mem_##T *x = from;                                                               \
        bpt_mem_##T *y = to;                                                                       \
        _Pragma("GCC ivdep") for (size_t i = 0; i < (n); i++) {                                    \
            const float kept = bpt_from_##T(x[i]) * scale;                                         \
            y[i] = bpt_to_##T(drawn[i] < dropped ? 0.0F : kept);                                   \
        }                                                                                          \
    } while (0)

/* May work in place. */
BPT_CLONES static void drop(const void *from, bpt_value_type type, size_t n, const uint32_t *drawn,
                            uint32_t dropped, float scale, void *to) {
    BPT_FOR_TYPE(type, DROP, n);
}

static bpt_status run_mask(void *arg, unsigned worker) {
    const mask_task *task = arg;
    const char *from = bpt_at(task->b->blocks, task->from);
    char *to = bpt_at(task->b->blocks, task->to);
    const size_t value_bytes = bpt_value_bytes(task->type);
    const uint32_t dropped = (uint32_t)(task->rate * 0x1p32);
    const float scale = (float)(1.0 / (1.0 - task->rate));
    (void)worker;
    for (int64_t i = 0; i < task->n_samples; i++) {
        bpt_random r = stream(task, i);
        for (size_t at = 0; at < task->n_values; at += DRAWN) {
            const size_t n = task->n_values - at < DRAWN ? task->n_values - at : DRAWN;
            uint32_t drawn[DRAWN];
            bpt_random_fill(&r, drawn, n);
            drop(from, task->type, n, drawn, dropped, scale, to);
            from += n * value_bytes;
            to += n * value_bytes;
        }
    }
    return BPT_OK;
}

static bpt_status run_pass(void *arg, unsigned worker) {
    const mask_task *task = arg;
    const size_t n = (size_t)task->n_samples * task->n_values;
    (void)worker;
    if (bpt_ref_equal(task->from, task->to)) return BPT_OK;
    memcpy(bpt_at(task->b->blocks, task->to), bpt_at(task->b->blocks, task->from),
           n * bpt_value_bytes(task->type));
    return BPT_OK;
}

static bpt_status plan_tile(const bpt_layer *l, bpt_builder *b, bpt_phase phase, const char *kind,
                            bpt_task_fn fn, bpt_value_type type, size_t t, bpt_ref from, bpt_ref to,
                            bpt_deps after, bpt_deps *done) {
    const bpt_dropout_config *config = l->config;
    mask_task *task;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
    *task = (mask_task){
        .b = b,
        .from = from,
        .to = to,
        .layer = (uint64_t)l->number,
        .first_sample = (uint64_t)b->tile_start[t],
        .n_samples = bpt_builder_tile_samples(b, t),
        .n_values = (size_t)(l->in.c * l->in.h * l->in.w),
        .type = type,
        .rate = config->rate,
    };
    return bpt_builder_task(b, phase, fn, task, (bpt_task_info){kind, l->name},
                            BPT_PLACES(from, to), after, done);
}

static bpt_status plan_values(const bpt_layer *l, bpt_builder *b, bpt_phase phase, bpt_task_fn fn,
                              const bpt_activation *in, size_t t, const bpt_activation *out,
                              bpt_deps *done) {
    return plan_tile(l, b, phase, "forward", fn, in->type, t, in->value[t], out->value[t],
                     in->value_ready[t], done);
}

static bpt_status plan_both(const bpt_layer *l, bpt_builder *b, const bpt_activation *in, size_t t,
                            bpt_activation *out) {
    bpt_deps trained, passed;
    BPT_TRY(plan_values(l, b, BPT_PHASE_TRAINING, run_mask, in, t, out, &trained));
    BPT_TRY(plan_values(l, b, BPT_PHASE_INFERENCE, run_pass, in, t, out, &passed));
    return bpt_deps_join(b, trained, passed, &out->value_ready[t]);
}

/* The state: the input, plain. */
static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    bpt_activation *in;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &in));
    BPT_TRY(bpt_builder_convert_to_plain(b, l->name, inputs[0], inputs[0]->type, in));
    if (in->read_only)
        BPT_TRY(bpt_builder_alike(b, in, out));
    else
        *out = *in;
    for (size_t t = 0; t < b->n_tiles; t++)
        BPT_TRY(b->frozen ? plan_values(l, b, BPT_PHASE_FORWARD, run_pass, in, t, out,
                                        &out->value_ready[t])
                          : plan_both(l, b, in, t, out));
    *state = in;
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *state) {
    bpt_activation *in = state;
    if (!inputs[0]->wants_grad) return BPT_OK;
    for (size_t t = 0; t < b->n_tiles; t++)
        BPT_TRY(plan_tile(l, b, BPT_PHASE_BACKWARD, "backward", run_mask, in->type, t, out->grad[t],
                          in->grad[t], out->grad_ready[t], &in->grad_ready[t]));
    return bpt_builder_convert_back(b, l->name, inputs[0], in);
}

static const char *const fields[] = {"rate"};

const bpt_layer_kind bpt_layer_dropout = {
    .name = "dropout",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_dropout_config),
    .said_bytes = BPT__BYTES_TO(bpt_dropout_config, rate),
    .parse = parse,
    .infer = bpt__same_shape,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
