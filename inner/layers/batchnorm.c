/* Batch normalisation (Ioffe, Szegedy 2015): y = (x - mean) / sqrt(var + eps) * weight + bias, with
 * mean and variance of each channel over all samples and pixels of the batch; in evaluation those
 * that were gathered in training. */
#include "inner/batchnorm_loops.h"
#include "inner/builder.h"
#include "inner/layers/fields.h"
#include "inner/rectify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_batchnorm_config *config = l->config;
    (void)scope;
    BPT_TRY(bpt__field_real(l, doc, fields, "momentum", 1e-6, 1.0, 0.1, &config->momentum));
    return bpt__field_real(l, doc, fields, "eps", 1e-12, 1.0, 1e-5, &config->eps);
}

enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR, N_SEGMENTS };

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    const bpt_batchnorm_config *config = l->config;
    const bpt_segment_role roles[] = {
        [WEIGHT] = {.initial = 1.0f},
        [BIAS] = {.initial = 0.0f},
        [RUNNING_MEAN] = {.initial = 0.0f, .running = (float)config->momentum},
        [RUNNING_VAR] = {.initial = 1.0f, .running = (float)config->momentum},
    };
    l->out = l->in;
    for (int i = 0; i < N_SEGMENTS; i++) {
        char name[BPT_NAME_SIZE];
        snprintf(name, sizeof name, "%s.%s", l->name, names[i]);
        BPT_TRY(bpt_segments_add(s, name, &l->in.c, 1, roles[i]));
    }
    return BPT_OK;
}

/* Arrays over channels that tasks hand on, with zeros in their spare lanes: those of the forward
 * pass, and those of the backward pass alone. */
enum { MEAN, INV_STD, SCALE, SHIFT, SLOPE_DY, SLOPE_X, CONSTANT, N_ARRAYS };

/* What the tasks of a layer share. */
typedef struct {
    const bpt_builder *b;
    int64_t channels;
    size_t n_channels; /* with spare lanes */
    double eps;
    bpt_lanes lanes[BPT_MAX_TILES];
    bool relu, add;                  /* these are done too */
    bpt_activation in, other;        /* in an order of lanes; other: what is added */
    bpt_activation out;              /* its gradients: behind the ReLU's backward pass */
    bpt_ref out_grad[BPT_MAX_TILES]; /* before it */
    bpt_ref moments[BPT_MAX_TILES];  /* of a tile: mean and dev, doubles, shape [2, n_channels] */
    bpt_ref sums[BPT_MAX_TILES];     /* of a tile: dy and dy * x, likewise */
    double count[BPT_MAX_TILES + 1]; /* of a tile's moments; the last of the whole batch's */
    bpt_ref arrays[N_ARRAYS];        /* floats, shape [n_channels] */
    bpt_ref master[N_SEGMENTS], gradient[N_SEGMENTS]; /* floats, shape [channels] */
    bpt_deps forward_ready;                           /* mean, scale and shift are there */
} batchnorm;

typedef struct {
    batchnorm *n;
    size_t t;
} tile_task;

/* ---- what tasks do ---- */

static float *array(const batchnorm *n, int which) {
    return bpt_at(n->b->blocks, n->arrays[which]);
}

static float *master(const batchnorm *n, int which) {
    return bpt_at(n->b->blocks, n->master[which]);
}

static float *gradient(const batchnorm *n, int which) {
    return bpt_at(n->b->blocks, n->gradient[which]);
}

/* Whole, since another buffer may have been at its place. */
static void clear_spare_lanes(const batchnorm *n, int first, int last) {
    const size_t n_spare = n->n_channels - (size_t)n->channels;
    for (int which = first; which <= last; which++)
        memset(array(n, which) + n->channels, 0, n_spare * sizeof(float));
}

static const int32_t *labels_of(const batchnorm *n, size_t t) {
    const size_t offset = (size_t)n->b->tile_start[t] * sizeof(int32_t);
    return bpt_at(n->b->blocks, bpt_ref_in(BPT_BLOCK_LABELS, offset));
}

static bpt_moments moments_of(const batchnorm *n, size_t t) {
    double *mean = bpt_at(n->b->blocks, n->moments[t]);
    return (bpt_moments){n->count[t], mean, mean + n->n_channels};
}

static bpt_status run_moments(void *arg, unsigned worker) {
    const tile_task *task = arg;
    batchnorm *n = task->n;
    const size_t t = task->t;
    (void)worker;
    bpt_moments m = moments_of(n, t);
    bpt_moments_of(&n->lanes[t], bpt_at(n->b->blocks, n->in.value[t]), labels_of(n, t), &m);
    n->count[t] = m.count;
    return BPT_OK;
}

/* y = (x - mean) * scale + shift does what the formula says. */
static void set_scale(const batchnorm *n, int64_t c, double mean, double var) {
    const double inv_std = 1.0 / sqrt(var + n->eps);
    const double scale = (double)master(n, WEIGHT)[c] * inv_std;
    array(n, MEAN)[c] = (float)mean;
    array(n, INV_STD)[c] = (float)inv_std;
    array(n, SCALE)[c] = (float)scale;
    array(n, SHIFT)[c] = master(n, BIAS)[c];
}

/* The tiles' moments, merged in the order of the tiles. The running statistics' gradient is their
 * distance to the batch's, so that they travel, are summed over ranks by samples, and are applied
 * as every gradient is. The variance that is gathered is that of the population. */
static bpt_status run_statistics(void *arg, unsigned worker) {
    batchnorm *n = arg;
    (void)worker;
    bpt_moments all = moments_of(n, 0);
    for (size_t t = 1; t < n->b->n_tiles; t++) {
        const bpt_moments tile = moments_of(n, t);
        bpt_moments_merge(n->n_channels, &all, &tile);
    }
    const double count = all.count, pixels = (double)n->lanes[0].n_pixels;
    const double share = count / pixels / (double)n->b->step->denominator;
    n->count[n->b->n_tiles] = count;
    clear_spare_lanes(n, MEAN, SHIFT);
    for (int64_t c = 0; c < n->channels; c++) {
        const double var = count > 0.0 ? all.dev[c] / count : 0.0;
        const double unbiased = count > 1.0 ? all.dev[c] / (count - 1.0) : var;
        set_scale(n, c, all.mean[c], var);
        gradient(n, RUNNING_MEAN)[c] =
            (float)(share * ((double)master(n, RUNNING_MEAN)[c] - all.mean[c]));
        gradient(n, RUNNING_VAR)[c] =
            (float)(share * ((double)master(n, RUNNING_VAR)[c] - unbiased));
    }
    return BPT_OK;
}

/* Asynchronous merges of several ranks could take a variance below zero. */
static bpt_status run_recall(void *arg, unsigned worker) {
    const batchnorm *n = arg;
    (void)worker;
    clear_spare_lanes(n, MEAN, SHIFT);
    for (int64_t c = 0; c < n->channels; c++)
        set_scale(n, c, (double)master(n, RUNNING_MEAN)[c],
                  fmax((double)master(n, RUNNING_VAR)[c], 0.0));
    return BPT_OK;
}

static bpt_status run_normalise(void *arg, unsigned worker) {
    const tile_task *task = arg;
    const batchnorm *n = task->n;
    const bpt_blocks *blocks = n->b->blocks;
    const size_t t = task->t;
    const float *addend = n->add ? bpt_at(blocks, n->other.value[t]) : NULL;
    (void)worker;
    bpt_batchnorm_forward(&n->lanes[t], bpt_at(blocks, n->in.value[t]), addend, array(n, MEAN),
                          array(n, SCALE), array(n, SHIFT), n->relu,
                          bpt_at(blocks, n->out.value[t]));
    return BPT_OK;
}

static bpt_status run_sums(void *arg, unsigned worker) {
    const tile_task *task = arg;
    const batchnorm *n = task->n;
    const bpt_blocks *blocks = n->b->blocks;
    const size_t t = task->t;
    const float *y = n->relu ? bpt_at(blocks, n->out.value[t]) : NULL;
    double *sum_dy = bpt_at(blocks, n->sums[t]);
    (void)worker;
    bpt_batchnorm_sums(&n->lanes[t], bpt_at(blocks, n->in.value[t]), bpt_at(blocks, n->out_grad[t]),
                       y, bpt_at(blocks, n->out.grad[t]), array(n, MEAN), sum_dy,
                       sum_dy + n->n_channels);
    return BPT_OK;
}

/* With M values of a channel and x^ = (x - mean) / std:
 *   dbias = sum dy,  dweight = sum dy x^,  dx = scale (dy - dbias / M - x^ dweight / M). */
static bpt_status run_slopes(void *arg, unsigned worker) {
    const batchnorm *n = arg;
    const double count = n->count[n->b->n_tiles], part = count > 0.0 ? 1.0 / count : 0.0;
    (void)worker;
    clear_spare_lanes(n, SLOPE_DY, CONSTANT);
    for (int64_t c = 0; c < n->channels; c++) {
        double sum_dy = 0.0, sum_dyx = 0.0;
        for (size_t t = 0; t < n->b->n_tiles; t++) {
            const double *sums = bpt_at(n->b->blocks, n->sums[t]);
            sum_dy += sums[c];
            sum_dyx += sums[n->n_channels + (size_t)c];
        }
        const double inv_std = (double)array(n, INV_STD)[c], scale = (double)array(n, SCALE)[c];
        gradient(n, WEIGHT)[c] = (float)(sum_dyx * inv_std);
        gradient(n, BIAS)[c] = (float)sum_dy;
        array(n, SLOPE_DY)[c] = (float)scale;
        array(n, SLOPE_X)[c] = (float)(-scale * inv_std * inv_std * sum_dyx * part);
        array(n, CONSTANT)[c] = (float)(-scale * sum_dy * part);
    }
    return BPT_OK;
}

static bpt_status run_data(void *arg, unsigned worker) {
    const tile_task *task = arg;
    const batchnorm *n = task->n;
    const bpt_blocks *blocks = n->b->blocks;
    const size_t t = task->t;
    (void)worker;
    const bpt_batchnorm_slopes slopes = {array(n, MEAN), array(n, SLOPE_DY), array(n, SLOPE_X),
                                         array(n, CONSTANT)};
    bpt_batchnorm_data(&n->lanes[t], bpt_at(blocks, n->in.value[t]), bpt_at(blocks, n->out.grad[t]),
                       labels_of(n, t), slopes, bpt_at(blocks, n->in.grad[t]));
    return BPT_OK;
}

/* ---- planning ---- */

/* The input in the order in which it comes, if that is one of lanes, else in the plain one. */
static bpt_status plan_input(const bpt_layer *l, bpt_builder *b, const bpt_activation *in,
                             batchnorm *n) {
    int64_t lanes = 0;
    for (size_t t = 0; t < b->n_tiles; t++) {
        const int64_t dims[] = {bpt_builder_tile_samples(b, t), l->in.c, l->in.h, l->in.w};
        int64_t of_tile;
        BPT_TRY(bpt_layout_lanes(b->cpu, in->layout[t], dims, &of_tile));
        lanes = t == 0 || of_tile == lanes ? of_tile : 0;
    }
    if (lanes == 0) {
        BPT_TRY(bpt_builder_convert(b, l->name, in, NULL, &n->in));
        lanes = 1;
    } else {
        n->in = *in;
    }
    for (size_t t = 0; t < b->n_tiles; t++)
        n->lanes[t] = (bpt_lanes){.n_samples = bpt_builder_tile_samples(b, t),
                                  .n_blocks = (l->in.c + lanes - 1) / lanes,
                                  .n_pixels = l->in.h * l->in.w,
                                  .lanes = lanes};
    n->channels = l->in.c;
    n->n_channels = bpt_lanes_channels(&n->lanes[0]);
    return BPT_OK;
}

/* Side by side. */
static bpt_status reserve_arrays(bpt_builder *b, batchnorm *n, int first, int last) {
    const size_t bytes = n->n_channels * sizeof(float);
    bpt_ref where;
    BPT_TRY(bpt_builder_workspace(b, (size_t)(last - first + 1) * bytes, &where));
    for (int i = first; i <= last; i++)
        n->arrays[i] = bpt_ref_plus(where, (size_t)(i - first) * bytes);
    return BPT_OK;
}

static bpt_status plan_memory(const bpt_layer *l, bpt_builder *b, batchnorm *n) {
    const bpt_layout *layout;
    BPT_TRY(bpt_layout_plain(b->cpu, &l->in.c, 1, &layout));
    for (int i = 0; i < N_SEGMENTS; i++) {
        const size_t segment = l->first_segment + (size_t)i;
        bpt_builder_weights(b, segment, layout, 1);
        n->master[i] = b->weights[segment].master;
        n->gradient[i] = b->weights[segment].gradient;
    }
    BPT_TRY(reserve_arrays(b, n, MEAN, SHIFT));
    BPT_TRY(reserve_arrays(b, n, SLOPE_DY, CONSTANT));
    for (size_t t = 0; t < b->n_tiles; t++) {
        const size_t bytes = 2 * n->n_channels * sizeof(double);
        BPT_TRY(bpt_builder_workspace(b, bytes, &n->moments[t]));
        BPT_TRY(bpt_builder_workspace(b, bytes, &n->sums[t]));
    }
    return BPT_OK;
}

static bpt_status add_tile_task(const bpt_layer *l, bpt_builder *b, bpt_phase phase,
                                const char *kind, bpt_task_fn fn, batchnorm *n, size_t t,
                                bpt_places touches, bpt_deps after, bpt_deps *done) {
    tile_task *task;
    uint32_t id;
    BPT_TRY(bpt_builder_object(b, sizeof *task, (void **)&task));
    *task = (tile_task){n, t};
    BPT_TRY(
        bpt_builder_task(b, phase, fn, task, (bpt_task_info){kind, l->name}, touches, after, &id));
    return bpt_deps_one(b, id, done);
}

/* @param tiles what it reads of each tile; besides it touches the arrays beginning at @p arrays */
static bpt_status add_task(const bpt_layer *l, bpt_builder *b, bpt_phase phase, const char *kind,
                           bpt_task_fn fn, batchnorm *n, const bpt_ref *tiles, int arrays,
                           bpt_deps after, bpt_deps *done) {
    bpt_ref touches[BPT_MAX_TILES + 2] = {n->arrays[MEAN], n->arrays[arrays]};
    const size_t n_tiles = tiles ? b->n_tiles : 0;
    uint32_t id;
    if (tiles) memcpy(touches + 2, tiles, n_tiles * sizeof *touches);
    BPT_TRY(bpt_builder_task(b, phase, fn, n, (bpt_task_info){kind, l->name},
                             (bpt_places){touches, n_tiles + 2}, after, &id));
    return bpt_deps_one(b, id, done);
}

/* What makes scale and shift: the batch in training, the running statistics in evaluation. */
static bpt_status plan_statistics(const bpt_layer *l, bpt_builder *b, batchnorm *n) {
    bpt_deps tiles[BPT_MAX_TILES], all, trained, recalled;
    for (size_t t = 0; t < b->n_tiles; t++)
        BPT_TRY(add_tile_task(l, b, BPT_PHASE_TRAINING, "moments", run_moments, n, t,
                              BPT_PLACES(n->in.value[t], n->moments[t]), n->in.value_ready[t],
                              &tiles[t]));
    BPT_TRY(bpt_deps_all_tiles(b, tiles, &all));
    BPT_TRY(add_task(l, b, BPT_PHASE_TRAINING, "statistics", run_statistics, n, n->moments, MEAN,
                     all, &trained));
    BPT_TRY(add_task(l, b, BPT_PHASE_INFERENCE, "statistics", run_recall, n, NULL, MEAN,
                     (bpt_deps){0}, &recalled));
    for (int i = 0; i < N_SEGMENTS; i++)
        BPT_TRY(bpt_builder_weights_read(b, l->first_segment + (size_t)i, trained));
    BPT_TRY(bpt_builder_weights_written(b, l->first_segment + RUNNING_MEAN, trained));
    BPT_TRY(bpt_builder_weights_written(b, l->first_segment + RUNNING_VAR, trained));
    return bpt_deps_join(b, trained, recalled, &n->forward_ready);
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state) {
    const bpt_batchnorm_config *config = l->config;
    batchnorm *n;
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
            l, b, BPT_PHASE_FORWARD, "forward", run_normalise, n, t,
            BPT_PLACES(n->in.value[t], n->other.value[t], n->arrays[MEAN], out->value[t]), after,
            &out->value_ready[t]));
    }
    n->out = *out;
    *state = n;
    return BPT_OK;
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *state) {
    batchnorm *n = state;
    bpt_deps tiles[BPT_MAX_TILES], all, slopes;
    memcpy(n->out_grad, out->grad, sizeof n->out_grad);
    n->out = *out;
    if (n->relu) BPT_TRY(bpt_rectify_plan(b, out, &n->out));
    for (size_t t = 0; t < b->n_tiles; t++) {
        BPT_TRY(add_tile_task(l, b, BPT_PHASE_BACKWARD, "backward sums", run_sums, n, t,
                              BPT_PLACES(n->in.value[t], out->value[t], out->grad[t],
                                         n->out.grad[t], n->arrays[MEAN], n->sums[t]),
                              out->grad_ready[t], &tiles[t]));
        if (n->relu) n->out.grad_ready[t] = tiles[t];
    }
    if (n->add) BPT_TRY(bpt_builder_pass_back(b, l->name, inputs[1], &n->other, &n->out));
    BPT_TRY(bpt_deps_all_tiles(b, tiles, &all));
    BPT_TRY(add_task(l, b, BPT_PHASE_BACKWARD, "backward weights", run_slopes, n, n->sums, SLOPE_DY,
                     all, &slopes));
    BPT_TRY(bpt_builder_weights_written(b, l->first_segment + WEIGHT, slopes));
    BPT_TRY(bpt_builder_weights_written(b, l->first_segment + BIAS, slopes));
    if (!inputs[0]->wants_grad) return BPT_OK;
    for (size_t t = 0; t < b->n_tiles; t++)
        BPT_TRY(add_tile_task(l, b, BPT_PHASE_BACKWARD, "backward data", run_data, n, t,
                              BPT_PLACES(n->in.value[t], n->out.grad[t], n->arrays[MEAN],
                                         n->arrays[SLOPE_DY], n->in.grad[t]),
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
