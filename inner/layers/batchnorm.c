/* Batch normalisation (Ioffe, Szegedy 2015): y = (x - mean) / sqrt(var + eps) * weight + bias, with
 * mean and variance of each channel over all samples and pixels of the batch; in evaluation those
 * that were gathered in training. */
#include "base/integers.h"
#include "inner/layers/batchnorm_tasks.h"
#include "inner/layers/fields.h"
#include "inner/step/rectify.h"

#include <stdio.h>
#include <string.h>

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_batchnorm_config *config = l->config;
    (void)scope;
    BPT_TRY(bpt__field_real(l, doc, fields, "momentum", 1e-6, 1.0, 0.1, &config->momentum));
    return bpt__field_real(l, doc, fields, "eps", 1e-12, 1.0, 1e-5, &config->eps);
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    const bpt_batchnorm_config *config = l->config;
    const bpt_segment_role roles[] = {
        [BPT__BN_WEIGHT] = {.initial = 1.0f},
        [BPT__BN_BIAS] = {.initial = 0.0f},
        [BPT__BN_RUNNING_MEAN] = {.initial = 0.0f, .running = (float)config->momentum},
        [BPT__BN_RUNNING_VAR] = {.initial = 1.0f,
                                 .running = (float)config->momentum,
                                 .variance = true},
    };
    l->out = l->in;
    for (int i = 0; i < BPT__BN_SEGMENTS; i++) {
        char name[BPT_NAME_SIZE];
        snprintf(name, sizeof name, "%s.%s", l->name, names[i]);
        BPT_TRY(bpt_segments_add(s, name, &l->in.c, 1, roles[i]));
    }
    return BPT_OK;
}

/* The input in the order in which it comes, if that is one of lanes, else in the plain one. */
static bpt_status plan_input(const bpt_layer *l, bpt_builder *b, const bpt_activation *in,
                             bpt__batchnorm *n) {
    int64_t lanes = 0;
    for (size_t t = 0; t < b->n_tiles; t++) {
        const int64_t dims[] = {bpt_builder_tile_samples(b, t), l->in.c, l->in.h, l->in.w};
        int64_t of_tile;
        BPT_TRY(bpt_layout_lanes(b->cpu, in->layout[t], dims, &of_tile));
        lanes = t == 0 || of_tile == lanes ? of_tile : 0;
    }
    if (lanes == 0) {
        BPT_TRY(bpt_builder_convert_to_plain(b, l->name, in, in->type, &n->in));
        lanes = 1;
    } else {
        n->in = *in;
    }
    const bpt_lanes sample = {.n_samples = 1,
                              .n_blocks = bpt_quotient_up(l->in.c, lanes),
                              .n_pixels = l->in.h * l->in.w,
                              .lanes = lanes,
                              .type = in->type};
    for (size_t t = 0; t < b->n_tiles; t++) {
        n->tile[t] = sample;
        n->tile[t].n_samples = bpt_builder_tile_samples(b, t);
    }
    for (size_t c = 0; c < b->n_chunks; c++) {
        n->chunk[c] = sample;
        n->chunk[c].n_samples = bpt_builder_chunk_samples(b, c);
    }
    n->channels = l->in.c;
    n->n_channels = bpt_lanes_channels(&sample);
    return BPT_OK;
}

/* Side by side. */
static bpt_status reserve_arrays(bpt_builder *b, bpt__batchnorm *n, int first, int last) {
    const size_t bytes = n->n_channels * sizeof(float);
    bpt_ref where;
    BPT_TRY(bpt_builder_workspace(b, (size_t)(last - first + 1) * bytes, &where));
    for (int i = first; i <= last; i++)
        n->arrays[i] = bpt_ref_plus(where, (size_t)(i - first) * bytes);
    return BPT_OK;
}

static bpt_status plan_memory(const bpt_layer *l, bpt_builder *b, bpt__batchnorm *n) {
    const bpt_layout *layout;
    BPT_TRY(bpt_layout_plain(b->cpu, BPT_F32, &l->in.c, 1, &layout));
    for (int i = 0; i < BPT__BN_SEGMENTS; i++) {
        const size_t segment = l->first_segment + (size_t)i;
        bpt_builder_weights(b, segment, layout, 1);
        n->master[i] = b->weights[segment].master;
        n->gradient[i] = bpt_builder_partial(b, segment, 0);
    }
    BPT_TRY(reserve_arrays(b, n, BPT__BN_MEAN, BPT__BN_SHIFT));
    BPT_TRY(reserve_arrays(b, n, BPT__BN_SLOPE_DY, BPT__BN_CONSTANT));
    for (size_t c = 0; c < b->n_chunks; c++) {
        const size_t bytes = 2 * n->n_channels * sizeof(double);
        BPT_TRY(bpt_builder_workspace(b, bytes, &n->moments[c]));
        BPT_TRY(bpt_builder_workspace(b, bytes, &n->sums[c]));
    }
    return BPT_OK;
}

static bpt_status add_tile_task(const bpt_layer *l, bpt_builder *b, bpt_phase phase,
                                const char *kind, bpt_task_fn fn, bpt__batchnorm *n, size_t t,
                                bpt_places touches, bpt_deps after, bpt_deps *done) {
    bpt__batchnorm_tile *task;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
    *task = (bpt__batchnorm_tile){n, t};
    return bpt_builder_task(b, phase, fn, task, (bpt_task_info){kind, l->name}, touches, after,
                            done);
}

/* Sums over a chunk: in as many parts, by channels, as it has tiles.
 * @param touches what all of them read and write
 * @param[out] done all of them */
static bpt_status add_chunk_tasks(const bpt_layer *l, bpt_builder *b, bpt_phase phase,
                                  const char *kind, bpt_task_fn fn, bpt__batchnorm *n, size_t c,
                                  bpt_places touches, bpt_deps after, bpt_deps *done) {
    const size_t n_parts = b->chunk_tile[c + 1] - b->chunk_tile[c];
    *done = (bpt_deps){0};
    for (size_t i = 0; i < n_parts; i++) {
        const bpt_channels channels = bpt_channels_cut(&n->chunk[c], i, n_parts);
        bpt__batchnorm_part *task;
        bpt_deps part;
        if (channels.first == channels.end) continue;
        BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
        *task = (bpt__batchnorm_part){n, c, channels};
        BPT_TRY(bpt_builder_task(b, phase, fn, task, (bpt_task_info){kind, l->name}, touches, after,
                                 &part));
        BPT_TRY(bpt_deps_join(b, *done, part, done));
    }
    return BPT_OK;
}

/* @param chunks what it reads of each chunk; besides it touches the arrays beginning at @p arrays
 */
static bpt_status add_task(const bpt_layer *l, bpt_builder *b, bpt_phase phase, const char *kind,
                           bpt_task_fn fn, bpt__batchnorm *n, const bpt_ref *chunks, int arrays,
                           bpt_deps after, bpt_deps *done) {
    bpt_ref touches[BPT_MAX_CHUNKS + 2] = {n->arrays[BPT__BN_MEAN], n->arrays[arrays]};
    const size_t n_chunks = chunks ? b->n_chunks : 0;
    if (chunks) memcpy(touches + 2, chunks, n_chunks * sizeof *touches);
    return bpt_builder_task(b, phase, fn, n, (bpt_task_info){kind, l->name},
                            (bpt_places){touches, n_chunks + 2}, after, done);
}

static bpt_status plan_moments(const bpt_layer *l, bpt_builder *b, bpt__batchnorm *n,
                               bpt_deps *all) {
    *all = (bpt_deps){0};
    for (size_t c = 0; c < b->n_chunks; c++) {
        const bpt_ref values = n->in.value[b->chunk_tile[c]];
        bpt_deps after, done;
        BPT_TRY(bpt_deps_of_chunk(b, n->in.value_ready, c, &after));
        BPT_TRY(add_chunk_tasks(l, b, BPT_PHASE_TRAINING, "moments", bpt__batchnorm_moments, n, c,
                                BPT_PLACES(values, n->moments[c]), after, &done));
        BPT_TRY(bpt_deps_join(b, *all, done, all));
    }
    return BPT_OK;
}

static bpt_status plan_recall(const bpt_layer *l, bpt_builder *b, bpt_phase phase,
                              bpt__batchnorm *n, bpt_deps *done) {
    return add_task(l, b, phase, "statistics", bpt__batchnorm_recall, n, NULL, BPT__BN_MEAN,
                    (bpt_deps){0}, done);
}

/* What makes scale and shift: the batch in training, the running statistics in evaluation, and in
 * both where the layer is frozen. */
static bpt_status plan_statistics(const bpt_layer *l, bpt_builder *b, bpt__batchnorm *n) {
    bpt_deps all, trained, recalled;
    if (b->frozen) return plan_recall(l, b, BPT_PHASE_FORWARD, n, &n->forward_ready);
    BPT_TRY(plan_moments(l, b, n, &all));
    BPT_TRY(add_task(l, b, BPT_PHASE_TRAINING, "statistics", bpt__batchnorm_statistics, n,
                     n->moments, BPT__BN_MEAN, all, &trained));
    BPT_TRY(plan_recall(l, b, BPT_PHASE_INFERENCE, n, &recalled));
    for (int i = 0; i < BPT__BN_SEGMENTS; i++)
        BPT_TRY(bpt_builder_weights_read(b, l->first_segment + (size_t)i, trained));
    return bpt_deps_join(b, trained, recalled, &n->forward_ready);
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    const bpt_batchnorm_config *config = l->config;
    bpt__batchnorm *n;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &n));
    n->b = b;
    n->eps = config->eps;
    n->relu = l->fusion.relu;
    n->add = l->fusion.add != 0;
    BPT_TRY(plan_input(l, b, inputs[0], n));
    if (n->add) BPT_TRY(bpt_builder_convert(b, l->name, inputs[1], n->in.layout, &n->other));
    BPT_TRY(plan_memory(l, b, n));
    bpt_activation like = n->in;
    like.wants_grad = !b->frozen;
    BPT_TRY(bpt_builder_alike(b, &like, out));
    out->read_only = n->relu && !b->frozen; /* the backward pass needs it */
    BPT_TRY(plan_statistics(l, b, n));
    for (size_t t = 0; t < b->n_tiles; t++) {
        bpt_deps after;
        BPT_TRY(bpt_deps_join(b, n->in.value_ready[t], n->forward_ready, &after));
        if (n->add) BPT_TRY(bpt_deps_join(b, n->other.value_ready[t], after, &after));
        BPT_TRY(add_tile_task(
            l, b, BPT_PHASE_FORWARD, "forward", bpt__batchnorm_normalise, n, t,
            BPT_PLACES(n->in.value[t], n->other.value[t], n->arrays[BPT__BN_MEAN], out->value[t]),
            after, &out->value_ready[t]));
    }
    n->out = *out;
    *state = n;
    return BPT_OK;
}

/* Of a chunk, behind which the masked gradients of its tiles are there too. */
static bpt_status plan_chunk_sums(const bpt_layer *l, bpt_builder *b, bpt__batchnorm *n,
                                  const bpt_activation *out, size_t c, bpt_deps *done) {
    const size_t first = b->chunk_tile[c];
    const bpt_ref y = n->relu ? out->value[first] : (bpt_ref){0}; /* tells what was rectified */
    bpt_deps after;
    BPT_TRY(bpt_deps_of_chunk(b, out->grad_ready, c, &after));
    BPT_TRY(add_chunk_tasks(l, b, BPT_PHASE_BACKWARD, "backward sums", bpt__batchnorm_backward_sums,
                            n, c,
                            BPT_PLACES(n->in.value[first], y, out->grad[first], n->out.grad[first],
                                       n->arrays[BPT__BN_MEAN], n->sums[c]),
                            after, done));
    for (size_t t = first; n->relu && t < b->chunk_tile[c + 1]; t++) n->out.grad_ready[t] = *done;
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *state) {
    bpt__batchnorm *n = state;
    bpt_deps all = {0}, slopes;
    memcpy(n->out_grad, out->grad, sizeof n->out_grad);
    n->out = *out;
    if (n->relu) BPT_TRY(bpt_rectify_plan(b, out, &n->out));
    for (size_t c = 0; c < b->n_chunks; c++) {
        bpt_deps done;
        BPT_TRY(plan_chunk_sums(l, b, n, out, c, &done));
        BPT_TRY(bpt_deps_join(b, all, done, &all));
    }
    if (n->add) BPT_TRY(bpt_builder_pass_back(b, l->name, inputs[1], &n->other, &n->out));
    BPT_TRY(add_task(l, b, BPT_PHASE_BACKWARD, "backward weights", bpt__batchnorm_backward_weights,
                     n, n->sums, BPT__BN_SLOPE_DY, all, &slopes));
    /* Those of the running statistics are there since the forward pass, but are not to be applied
     * before the loss is known to be a number. */
    for (int i = 0; i < BPT__BN_SEGMENTS; i++)
        BPT_TRY(bpt_builder_weights_written(b, l->first_segment + (size_t)i, slopes));
    if (!inputs[0]->wants_grad) return BPT_OK;
    for (size_t t = 0; t < b->n_tiles; t++)
        BPT_TRY(add_tile_task(l, b, BPT_PHASE_BACKWARD, "backward data",
                              bpt__batchnorm_backward_data, n, t,
                              BPT_PLACES(n->in.value[t], n->out.grad[t], n->arrays[BPT__BN_MEAN],
                                         n->arrays[BPT__BN_SLOPE_DY], n->in.grad[t]),
                              slopes, &n->in.grad_ready[t]));
    return bpt_builder_convert_back(b, l->name, inputs[0], &n->in);
}

static const char *const fields[] = {"momentum", "eps"};

const bpt_layer_kind bpt_layer_batchnorm = {
    .name = "batchnorm",
    .fuses_add = true,
    .fuses_relu = true,
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_batchnorm_config),
    .said_bytes = BPT__BYTES_TO(bpt_batchnorm_config, eps),
    .parse = parse,
    .infer = infer,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
