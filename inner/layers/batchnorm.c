/* Batch normalisation (Ioffe, Szegedy 2015): y = (x - mean) / sqrt(var + eps) * weight + bias, with
 * mean and variance of each channel over all samples and pixels of the batch; in evaluation those
 * that were gathered in training. */
#include "inner/layers/batchnorm_tasks.h"
#include "inner/layers/fields.h"
#include "inner/rectify.h"

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
    for (size_t t = 0; t < b->n_tiles; t++)
        n->lanes[t] = (bpt_lanes){.n_samples = bpt_builder_tile_samples(b, t),
                                  .n_blocks = (l->in.c + lanes - 1) / lanes,
                                  .n_pixels = l->in.h * l->in.w,
                                  .lanes = lanes,
                                  .type = in->type};
    n->channels = l->in.c;
    n->n_channels = bpt_lanes_channels(&n->lanes[0]);
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
    for (size_t t = 0; t < b->n_tiles; t++) {
        const size_t bytes = 2 * n->n_channels * sizeof(double);
        BPT_TRY(bpt_builder_workspace(b, bytes, &n->moments[t]));
        BPT_TRY(bpt_builder_workspace(b, bytes, &n->sums[t]));
    }
    return BPT_OK;
}

static bpt_status add_tile_task(const bpt_layer *l, bpt_builder *b, bpt_phase phase,
                                const char *kind, bpt_task_fn fn, bpt__batchnorm *n, size_t t,
                                bpt_places touches, bpt_deps after, bpt_deps *done) {
    bpt__batchnorm_tile *task;
    BPT_TRY(bpt_builder_object(b, sizeof *task, (void **)&task));
    *task = (bpt__batchnorm_tile){n, t};
    return bpt_builder_task(b, phase, fn, task, (bpt_task_info){kind, l->name}, touches, after,
                            done);
}

/* @param tiles what it reads of each tile; besides it touches the arrays beginning at @p arrays */
static bpt_status add_task(const bpt_layer *l, bpt_builder *b, bpt_phase phase, const char *kind,
                           bpt_task_fn fn, bpt__batchnorm *n, const bpt_ref *tiles, int arrays,
                           bpt_deps after, bpt_deps *done) {
    bpt_ref touches[BPT_MAX_TILES + 2] = {n->arrays[BPT__BN_MEAN], n->arrays[arrays]};
    const size_t n_tiles = tiles ? b->n_tiles : 0;
    if (tiles) memcpy(touches + 2, tiles, n_tiles * sizeof *touches);
    return bpt_builder_task(b, phase, fn, n, (bpt_task_info){kind, l->name},
                            (bpt_places){touches, n_tiles + 2}, after, done);
}

/* What makes scale and shift: the batch in training, the running statistics in evaluation. */
static bpt_status plan_statistics(const bpt_layer *l, bpt_builder *b, bpt__batchnorm *n) {
    bpt_deps tiles[BPT_MAX_TILES], all, trained, recalled;
    for (size_t t = 0; t < b->n_tiles; t++)
        BPT_TRY(add_tile_task(l, b, BPT_PHASE_TRAINING, "moments", bpt__batchnorm_moments, n, t,
                              BPT_PLACES(n->in.value[t], n->moments[t]), n->in.value_ready[t],
                              &tiles[t]));
    BPT_TRY(bpt_deps_all_tiles(b, tiles, &all));
    BPT_TRY(add_task(l, b, BPT_PHASE_TRAINING, "statistics", bpt__batchnorm_statistics, n,
                     n->moments, BPT__BN_MEAN, all, &trained));
    BPT_TRY(add_task(l, b, BPT_PHASE_INFERENCE, "statistics", bpt__batchnorm_recall, n, NULL,
                     BPT__BN_MEAN, (bpt_deps){0}, &recalled));
    for (int i = 0; i < BPT__BN_SEGMENTS; i++)
        BPT_TRY(bpt_builder_weights_read(b, l->first_segment + (size_t)i, trained));
    BPT_TRY(bpt_builder_weights_written(b, l->first_segment + BPT__BN_RUNNING_MEAN, trained));
    BPT_TRY(bpt_builder_weights_written(b, l->first_segment + BPT__BN_RUNNING_VAR, trained));
    return bpt_deps_join(b, trained, recalled, &n->forward_ready);
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    const bpt_batchnorm_config *config = l->config;
    bpt__batchnorm *n;
    BPT_TRY(bpt_builder_object(b, sizeof *n, (void **)&n));
    n->b = b;
    n->eps = config->eps;
    n->relu = l->fusion.relu;
    n->add = l->fusion.add != 0;
    BPT_TRY(plan_input(l, b, inputs[0], n));
    if (n->add) BPT_TRY(bpt_builder_convert(b, l->name, inputs[1], n->in.layout, &n->other));
    BPT_TRY(plan_memory(l, b, n));
    bpt_activation like = n->in;
    like.wants_grad = true;
    BPT_TRY(bpt_builder_alike(b, &like, out));
    out->read_only = n->relu; /* the backward pass needs it */
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

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *state) {
    bpt__batchnorm *n = state;
    bpt_deps tiles[BPT_MAX_TILES], all, slopes;
    memcpy(n->out_grad, out->grad, sizeof n->out_grad);
    n->out = *out;
    if (n->relu) BPT_TRY(bpt_rectify_plan(b, out, &n->out));
    for (size_t t = 0; t < b->n_tiles; t++) {
        BPT_TRY(add_tile_task(l, b, BPT_PHASE_BACKWARD, "backward sums",
                              bpt__batchnorm_backward_sums, n, t,
                              BPT_PLACES(n->in.value[t], out->value[t], out->grad[t],
                                         n->out.grad[t], n->arrays[BPT__BN_MEAN], n->sums[t]),
                              out->grad_ready[t], &tiles[t]));
        if (n->relu) n->out.grad_ready[t] = tiles[t];
    }
    if (n->add) BPT_TRY(bpt_builder_pass_back(b, l->name, inputs[1], &n->other, &n->out));
    BPT_TRY(bpt_deps_all_tiles(b, tiles, &all));
    BPT_TRY(add_task(l, b, BPT_PHASE_BACKWARD, "backward weights", bpt__batchnorm_backward_weights,
                     n, n->sums, BPT__BN_SLOPE_DY, all, &slopes));
    BPT_TRY(bpt_builder_weights_written(b, l->first_segment + BPT__BN_WEIGHT, slopes));
    BPT_TRY(bpt_builder_weights_written(b, l->first_segment + BPT__BN_BIAS, slopes));
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
    .parse = parse,
    .infer = infer,
    .forward_flops = bpt__no_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
