/* Fully connected: y = weight x + bias over all values of the input, flattened row-major. */
#include "base/integers.h"
#include "inner/layers/fields.h"
#include "inner/loops/vector_loops.h"
#include "inner/step/builder.h"

static bpt_status parse(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                        const bpt_yaml_node *fields) {
    bpt_fc_config *config = l->config;
    BPT_TRY(bpt__field_channels(l, scope, doc, fields, "outputs", &config->outputs));
    return bpt__field_bool(l, doc, fields, "bias", true, &config->bias);
}

static int64_t n_inputs(const bpt_layer *l) {
    return l->in.c * l->in.h * l->in.w;
}

static bpt_status infer(bpt_layer *l, bpt_segments *s) {
    const bpt_fc_config *config = l->config;
    l->out = (bpt_shape){.c = config->outputs, .h = 1, .w = 1};
    const int64_t dims[] = {config->outputs, n_inputs(l)};
    return bpt__weights_infer(l, s, dims, 2, config->bias);
}

static uint64_t forward_flops(const bpt_layer *l) {
    return 2 * (uint64_t)l->out.c * (uint64_t)n_inputs(l);
}

/* The three products work on the whole batch and are cut along features: outputs for the forward
 * pass and the weights' gradient, inputs for the data's gradient. So no partial sums arise, and
 * each part of a large weight matrix is read by one core only. */
enum { MIN_PIECE = 64, MAX_PIECES = 16 };

typedef struct {
    int64_t begin, size;
} piece;

typedef struct {
    bpt_activation in;                  /* plain */
    bpt_ref weights;                    /* as kernels read them, row-major */
    bpt_deps weights_ready[MAX_PIECES]; /* of each piece of outputs; nothing for the master */
} fc_state;

/* Cuts n features in pieces; @return their number, at most MAX_PIECES. */
static size_t cut(int64_t n, piece pieces[MAX_PIECES]) {
    const int64_t lines = bpt_rounded_up(bpt_quotient_up(n, MAX_PIECES), 16); /* whole ones */
    const int64_t size = bpt_larger(lines, MIN_PIECE);
    size_t count = 0;
    for (int64_t begin = 0; begin < n; begin += size)
        pieces[count++] = (piece){begin, bpt_smaller(n - begin, size)};
    return count;
}

static size_t float_bytes(int64_t n) {
    return (size_t)n * sizeof(float);
}

/* Of activations, their gradients, and weights as kernels read them. */
static size_t value_bytes(const bpt_builder *b, int64_t n) {
    return (size_t)n * bpt_value_bytes(b->type);
}

static bpt_status plan_segments(const bpt_layer *l, bpt_builder *b) {
    const bpt_fc_config *config = l->config;
    const int64_t dims[] = {l->out.c, n_inputs(l)};
    const bpt_layout *layout;
    BPT_TRY(bpt_layout_plain(b->cpu, BPT_F32, dims, 2, &layout));
    bpt_builder_weights(b, l->first_segment, layout, 1);
    if (!config->bias) return BPT_OK;
    BPT_TRY(bpt_layout_plain(b->cpu, BPT_F32, dims, 1, &layout));
    bpt_builder_weights(b, l->first_segment + 1, layout, 1);
    return BPT_OK;
}

/* The master, or a copy of it in the type of activations, made anew in every step. */
static bpt_status view_weights(const bpt_layer *l, bpt_builder *b, fc_state *state) {
    const bpt_ref master = b->weights[l->first_segment].master;
    const int64_t c = n_inputs(l);
    piece pieces[MAX_PIECES];
    state->weights = master;
    if (b->type == BPT_F32) return BPT_OK;
    state->weights =
        bpt_blocks_reserve(b->blocks, BPT_BLOCK_PARTIALS, value_bytes(b, l->out.c * c));
    const size_t n_pieces = cut(l->out.c, pieces);
    for (size_t i = 0; i < n_pieces; i++) {
        const piece p = pieces[i];
        const int64_t dims[] = {p.size, c};
        const bpt_layout *from, *to;
        BPT_TRY(bpt_layout_plain(b->cpu, BPT_F32, dims, 2, &from));
        BPT_TRY(bpt_layout_plain(b->cpu, b->type, dims, 2, &to));
        BPT_TRY(bpt_builder_reorder(b, BPT_PHASE_FORWARD,
                                    (bpt_task_info){"reorder weights", l->name}, from,
                                    bpt_ref_plus(master, float_bytes(p.begin * c)), to,
                                    bpt_ref_plus(state->weights, value_bytes(b, p.begin * c)),
                                    (bpt_deps){0}, &state->weights_ready[i]));
        BPT_TRY(bpt_builder_weights_read(b, l->first_segment, state->weights_ready[i]));
    }
    return BPT_OK;
}

/* ---- forward ---- */

/* A product of few samples has few rows, for which its other factor, the weights, would be put in
 * another order. So from some samples on it is made the other way round, y' = weight x': weights
 * are read as they lie, and the result, which is small, is turned (docs/decisions.md). */
enum { MIN_TURNED = 8 };

typedef struct {
    const bpt_blocks *blocks;
    bpt_kernel *kernel;
    bpt_ref product, bias, out; /* product: floats [size][n]; out: of the first sample */
    bpt_value_type type;        /* of out */
    bool has_bias;
    int64_t n, size, stride; /* stride: values from a sample of out to the next */
} turned_task;

#define TURN(type, task, product, bias, out)                                                       \
    do {                                                                                           \
        bpt_mem_##type *restrict to = (out);                                                       \
        for (int64_t first = 0; first < (task)->size; first += BLOCK) {                            \
            const int64_t left = (task)->size - first,                                             \
                          end = first + (left < BLOCK ? left : BLOCK);                             \
            for (int64_t i = 0; i < (task)->n; i++)                                                \
                for (int64_t j = first; j < end; j++) {                                            \
                    const float y = (product)[j * (task)->n + i] + ((bias) ? (bias)[j] : 0.0f);    \
                    to[i * (task)->stride + j] = bpt_to_##type(y);                                 \
                }                                                                                  \
        }                                                                                          \
    } while (0)

static bpt_status run_turned(void *arg, unsigned worker) {
    enum { BLOCK = 16 }; /* of outputs, whose lines stay in the first-level cache */
    const turned_task *t = arg;
    const float *product = bpt_at(t->blocks, t->product);
    const float *bias = t->has_bias ? bpt_at(t->blocks, t->bias) : NULL;
    BPT_TRY(bpt_kernel_run(t->kernel, worker));
    BPT_FOR_TYPE(t->type, TURN, t, product, bias, bpt_at(t->blocks, t->out));
    return BPT_OK;
}

/* What a piece of outputs reads and writes. */
typedef struct {
    bpt_ref in, weights, bias, out;
    bool has_bias;
    int64_t size;
} forward_piece;

static bpt_status plan_turned(const bpt_layer *l, bpt_builder *b, const forward_piece *p,
                              bpt_deps after, bpt_deps *done) {
    const int64_t n = b->batch, c = n_inputs(l);
    turned_task *task;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
    *task = (turned_task){.blocks = b->blocks,
                          .bias = p->bias,
                          .out = p->out,
                          .type = b->type,
                          .has_bias = p->has_bias,
                          .n = n,
                          .size = p->size,
                          .stride = l->out.c};
    BPT_TRY(bpt_builder_workspace(b, float_bytes(p->size * n), &task->product));
    BPT_TRY(bpt_cpu_matmul(b->cpu, (bpt_matrix){p->size, c, c, 1, b->type},
                           (bpt_matrix){c, n, 1, c, b->type},
                           (bpt_matrix){p->size, n, n, 1, BPT_F32}, false, &task->kernel));
    bpt_kernel_bind(task->kernel, BPT_SLOT_SRC, p->weights);
    bpt_kernel_bind(task->kernel, BPT_SLOT_WEIGHTS, p->in);
    bpt_kernel_bind(task->kernel, BPT_SLOT_DST, task->product);
    return bpt_builder_task(b, BPT_PHASE_FORWARD, run_turned, task,
                            (bpt_task_info){"forward", l->name},
                            BPT_PLACES(p->in, task->product, p->out), after, done);
}

static bpt_status plan_straight(const bpt_layer *l, bpt_builder *b, const forward_piece *p,
                                bpt_deps after, bpt_deps *done) {
    const int64_t n = b->batch, c = n_inputs(l);
    bpt_kernel *k;
    BPT_TRY(bpt_cpu_matmul(b->cpu, (bpt_matrix){n, c, c, 1, b->type},
                           (bpt_matrix){c, p->size, 1, c, b->type},
                           (bpt_matrix){n, p->size, l->out.c, 1, b->type}, p->has_bias, &k));
    bpt_kernel_bind(k, BPT_SLOT_SRC, p->in);
    bpt_kernel_bind(k, BPT_SLOT_WEIGHTS, p->weights);
    bpt_kernel_bind(k, BPT_SLOT_BIAS, p->bias);
    bpt_kernel_bind(k, BPT_SLOT_DST, p->out);
    return bpt_builder_kernel(b, BPT_PHASE_FORWARD, k, (bpt_task_info){"forward", l->name}, after,
                              done);
}

static forward_piece piece_of(const bpt_layer *l, const bpt_builder *b, const fc_state *state,
                              const bpt_activation *out, piece p) {
    const bpt_fc_config *config = l->config;
    forward_piece f = {.in = state->in.value[0], .has_bias = config->bias, .size = p.size};
    f.weights = bpt_ref_plus(state->weights, value_bytes(b, p.begin * n_inputs(l)));
    f.out = bpt_ref_plus(out->value[0], value_bytes(b, p.begin));
    if (config->bias)
        f.bias = bpt_ref_plus(b->weights[l->first_segment + 1].master, float_bytes(p.begin));
    return f;
}

static bpt_status plan_products(const bpt_layer *l, bpt_builder *b, const fc_state *state,
                                bpt_deps in_ready, bpt_activation *out) {
    bpt_deps done = {0};
    piece pieces[MAX_PIECES];
    const size_t n_pieces = cut(l->out.c, pieces);
    for (size_t i = 0; i < n_pieces; i++) {
        const forward_piece p = piece_of(l, b, state, out, pieces[i]);
        bpt_deps after, part;
        BPT_TRY(bpt_deps_join(b, in_ready, state->weights_ready[i], &after));
        BPT_TRY(b->batch < MIN_TURNED ? plan_straight(l, b, &p, after, &part)
                                      : plan_turned(l, b, &p, after, &part));
        BPT_TRY(bpt_deps_join(b, done, part, &done));
    }
    for (size_t t = 0; t < b->n_tiles; t++) out->value_ready[t] = done;
    return BPT_OK;
}

static bpt_status plan_forward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                               bpt_activation *out, void **state_out) {
    fc_state *state;
    bpt_deps in_ready;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &state));
    BPT_TRY(plan_segments(l, b));
    BPT_TRY(view_weights(l, b, state));
    BPT_TRY(bpt_builder_convert_to_plain(b, l->name, inputs[0], b->type, &state->in));
    BPT_TRY(bpt_builder_plain(b, l->out, b->type, !b->frozen, out));
    BPT_TRY(bpt_deps_all_tiles(b, state->in.value_ready, &in_ready));
    *state_out = state;
    return plan_products(l, b, state, in_ready, out);
}

/* ---- backward ---- */

static bpt_status plan_backward_data(const bpt_layer *l, bpt_builder *b, fc_state *state,
                                     const bpt_activation *out, bpt_deps after) {
    const int64_t n = b->batch, c = n_inputs(l), k_all = l->out.c;
    bpt_deps done = {0};
    piece pieces[MAX_PIECES];
    const size_t n_pieces = cut(c, pieces);
    for (size_t i = 0; i < n_pieces; i++) {
        const piece p = pieces[i];
        bpt_deps part;
        bpt_kernel *k;
        BPT_TRY(bpt_cpu_matmul(b->cpu, (bpt_matrix){n, k_all, k_all, 1, b->type},
                               (bpt_matrix){k_all, p.size, c, 1, b->type},
                               (bpt_matrix){n, p.size, c, 1, b->type}, false, &k));
        bpt_kernel_bind(k, BPT_SLOT_SRC, out->grad[0]);
        bpt_kernel_bind(k, BPT_SLOT_WEIGHTS, bpt_ref_plus(state->weights, value_bytes(b, p.begin)));
        bpt_kernel_bind(k, BPT_SLOT_DST, bpt_ref_plus(state->in.grad[0], value_bytes(b, p.begin)));
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k,
                                   (bpt_task_info){"backward data", l->name}, after, &part));
        BPT_TRY(bpt_deps_join(b, done, part, &done));
    }
    for (size_t t = 0; t < b->n_tiles; t++) state->in.grad_ready[t] = done;
    return bpt_builder_weights_read(b, l->first_segment, done);
}

static bpt_status plan_backward_weights(const bpt_layer *l, bpt_builder *b, fc_state *state,
                                        const bpt_activation *out, bpt_deps after) {
    const int64_t n = b->batch, c = n_inputs(l), k_all = l->out.c;
    bpt_deps done = {0};
    piece pieces[MAX_PIECES];
    const size_t n_pieces = cut(k_all, pieces);
    for (size_t i = 0; i < n_pieces; i++) {
        const piece p = pieces[i];
        bpt_deps part;
        bpt_kernel *k;
        BPT_TRY(bpt_cpu_matmul(b->cpu, (bpt_matrix){p.size, n, 1, k_all, b->type},
                               (bpt_matrix){n, c, c, 1, b->type},
                               (bpt_matrix){p.size, c, c, 1, BPT_F32}, false, &k));
        bpt_kernel_bind(k, BPT_SLOT_SRC, bpt_ref_plus(out->grad[0], value_bytes(b, p.begin)));
        bpt_kernel_bind(k, BPT_SLOT_WEIGHTS, state->in.value[0]);
        bpt_kernel_bind(
            k, BPT_SLOT_DST,
            bpt_ref_plus(bpt_builder_partial(b, l->first_segment, 0), float_bytes(p.begin * c)));
        BPT_TRY(bpt_builder_kernel(b, BPT_PHASE_BACKWARD, k,
                                   (bpt_task_info){"backward weights", l->name}, after, &part));
        BPT_TRY(bpt_deps_join(b, done, part, &done));
    }
    return bpt_builder_weights_written(b, l->first_segment, done);
}

typedef struct {
    const bpt_blocks *blocks;
    bpt_ref out_grad, bias_grad;
    bpt_value_type type; /* of out_grad */
    int64_t n, k;
} bias_task;

/* Bias gradient: the sum of the output's gradient over the samples, in their order. */
static bpt_status run_bias(void *arg, unsigned worker) {
    (void)worker;
    const bias_task *task = arg;
    const void *grad = bpt_at(task->blocks, task->out_grad);
    float *bias = bpt_at(task->blocks, task->bias_grad);
    for (int64_t begin = 0; begin < task->k; begin += BPT_MAX_SUM_LANES) {
        const int64_t left = task->k - begin;
        const int64_t n = left < BPT_MAX_SUM_LANES ? left : BPT_MAX_SUM_LANES;
        double sums[BPT_MAX_SUM_LANES] = {0};
        bpt_sum_lanes(task->type, bpt_value_at(task->type, grad, begin), task->n, task->k, 1, n,
                      sums);
        for (int64_t k = 0; k < n; k++) bias[begin + k] = (float)sums[k];
    }
    return BPT_OK;
}

static bpt_status plan_backward_bias(const bpt_layer *l, bpt_builder *b, const bpt_activation *out,
                                     bpt_deps after) {
    bias_task *task;
    bpt_deps done;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &task));
    *task = (bias_task){
        .blocks = b->blocks,
        .out_grad = out->grad[0],
        .bias_grad = bpt_builder_partial(b, l->first_segment + 1, 0),
        .type = out->type,
        .n = b->batch,
        .k = l->out.c,
    };
    BPT_TRY(bpt_builder_task(b, BPT_PHASE_BACKWARD, run_bias, task,
                             (bpt_task_info){"backward bias", l->name}, BPT_PLACES(out->grad[0]),
                             after, &done));
    return bpt_builder_weights_written(b, l->first_segment + 1, done);
}

static bpt_status plan_backward(const bpt_layer *l, bpt_builder *b, bpt_activation *const *inputs,
                                const bpt_activation *out, void *arg) {
    bpt_activation *in = inputs[0];
    const bpt_fc_config *config = l->config;
    fc_state *state = arg;
    bpt_deps after;
    BPT_TRY(bpt_deps_all_tiles(b, out->grad_ready, &after));
    if (in->wants_grad) {
        BPT_TRY(plan_backward_data(l, b, state, out, after));
        BPT_TRY(bpt_builder_convert_back(b, l->name, in, &state->in));
    }
    BPT_TRY(plan_backward_weights(l, b, state, out, after));
    return config->bias ? plan_backward_bias(l, b, out, after) : BPT_OK;
}

static const char *const fields[] = {"outputs", "bias"};

const bpt_layer_kind bpt_layer_fc = {
    .name = "fc",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .config_bytes = sizeof(bpt_fc_config),
    .said_bytes = BPT__BYTES_TO(bpt_fc_config, bias),
    .parse = parse,
    .infer = infer,
    .forward_flops = forward_flops,
    .plan_forward = plan_forward,
    .plan_backward = plan_backward,
};
