#include "inner/network.h"

#include "base/memory.h"
#include "inner/network_private.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- planning ---- */

static bpt_status plan_input(bpt_network *net, bpt_activation *in) {
    bpt_builder *b = &net->builder;
    const bpt_shape s = net->model->input;
    const size_t sample_bytes = (size_t)(s.c * s.h * s.w) * sizeof(float);
    *in = (bpt_activation){.shape = s, .plain = true, .read_only = true};
    for (size_t t = 0; t < b->n_tiles; t++) {
        const int64_t dims[] = {bpt_builder_tile_samples(b, t), s.c, s.h, s.w};
        BPT_TRY(bpt_layout_plain(net->cpu, dims, 4, &in->layout[t]));
        in->value[t] = (bpt_ref){BPT_BLOCK_INPUT, (size_t)b->tile_start[t] * sample_bytes};
    }
    return BPT_OK;
}

/* The views of an activation, one for each reader, in the order of the layers. */
static bpt_status plan_views(bpt_network *net) {
    const bpt_model *model = net->model;
    const size_t n = model->n_layers + 1;
    void *memory;
    BPT_TRY(bpt_builder_object(&net->builder, n * sizeof *net->n_views, (void **)&net->n_views));
    BPT_TRY(bpt_builder_object(&net->builder, n * sizeof *net->views, (void **)&net->views));
    for (size_t i = 0; i < model->n_layers; i++)
        for (size_t j = 0; j < model->layers[i].n_inputs; j++)
            net->n_views[model->layers[i].inputs[j]]++;
    for (size_t a = 0; a < n; a++) {
        BPT_TRY(bpt_builder_object(&net->builder, net->n_views[a] * sizeof **net->views, &memory));
        net->views[a] = memory;
    }
    return BPT_OK;
}

/* What is known of the layers while they are planned. */
typedef struct {
    size_t *n_taken;      /* readers of each activation so far, shape [n_layers + 1] */
    bpt_activation ***in; /* inputs of each layer, shape [n_layers] */
    void **states;        /* of each layer's kind, shape [n_layers] */
} layer_plans;

static bpt_activation *take_view(bpt_network *net, layer_plans *plans, size_t activation) {
    return &net->views[activation][plans->n_taken[activation]++];
}

/* The inputs of a layer, and behind them the other input of an add that it does too. */
static bpt_status take_inputs(bpt_network *net, layer_plans *plans, const bpt_layer *l) {
    bpt_activation ***in = &plans->in[l->index];
    BPT_TRY(bpt_builder_object(&net->builder, (l->n_inputs + 1) * sizeof **in, (void **)in));
    if (l->fusion.done) { /* of an add, the one input that is not taken yet */
        (*in)[0] = take_view(net, plans, l->inputs[l->fusion.own]);
        return BPT_OK;
    }
    for (size_t j = 0; j < l->n_inputs; j++) (*in)[j] = take_view(net, plans, l->inputs[j]);
    if (l->fusion.add) {
        const bpt_layer *add = &net->model->layers[l->fusion.add - 1];
        (*in)[l->n_inputs] = take_view(net, plans, add->inputs[1 - add->fusion.own]);
    }
    return BPT_OK;
}

static bpt_status plan_forward(bpt_network *net, layer_plans *plans, const bpt_layer *l) {
    bpt_activation *out = &net->activations[l->index + 1];
    bpt_activation **in;
    BPT_TRY(take_inputs(net, plans, l));
    in = plans->in[l->index];
    if (l->fusion.done)
        *out = *in[0];
    else
        BPT_TRY(l->kind->plan_forward(l, &net->builder, in, out, &plans->states[l->index]));
    bpt_builder_fork(&net->builder, out, net->n_views[l->index + 1], net->views[l->index + 1]);
    return BPT_OK;
}

static bpt_status plan_backward(bpt_network *net, layer_plans *plans, const bpt_layer *l) {
    const size_t n_views = net->n_views[l->index + 1];
    bpt_activation *out = &net->activations[l->index + 1], **in = plans->in[l->index];
    if (n_views > 0)
        BPT_TRY(bpt_builder_join(&net->builder, l->name, out, net->views[l->index + 1], n_views));
    if (!l->fusion.done)
        return l->kind->plan_backward(l, &net->builder, in, out, plans->states[l->index]);
    memcpy(in[0]->grad, out->grad, sizeof out->grad);
    memcpy(in[0]->grad_ready, out->grad_ready, sizeof out->grad_ready);
    in[0]->grad_read_only = out->grad_read_only;
    return BPT_OK;
}

static bpt_status plan_layers(bpt_network *net) {
    const bpt_model *model = net->model;
    const size_t n = model->n_layers;
    bpt_builder *b = &net->builder;
    layer_plans plans;
    BPT_TRY(plan_views(net));
    BPT_TRY(bpt_builder_object(b, n * sizeof *plans.states, (void **)&plans.states));
    BPT_TRY(bpt_builder_object(b, n * sizeof *plans.in, (void **)&plans.in));
    BPT_TRY(bpt_builder_object(b, (n + 1) * sizeof *plans.n_taken, (void **)&plans.n_taken));
    bpt_builder_fork(b, &net->activations[0], net->n_views[0], net->views[0]);
    for (size_t i = 0; i < n; i++) BPT_TRY(plan_forward(net, &plans, &model->layers[i]));
    BPT_TRY(bpt__plan_loss(net, &net->activations[n]));
    for (size_t i = n; i-- > 0;) BPT_TRY(plan_backward(net, &plans, &model->layers[i]));
    return BPT_OK;
}

static bpt_status plan(bpt_network *net) {
    bpt_builder *b = &net->builder;
    const bpt_segments *segments = &net->model->segments;
    BPT_TRY(BPT_NEW("weight plans", segments->n, &b->weights));
    for (size_t i = 0; i < segments->n; i++) b->weights[i].segment = &segments->items[i];
    BPT_TRY(BPT_NEW("activations", net->model->n_layers + 1, &net->activations));
    BPT_TRY(BPT_NEW("tile results", b->n_tiles, &net->tiles));
    BPT_TRY(plan_input(net, &net->activations[0]));
    BPT_TRY(plan_layers(net));
    BPT_TRY(bpt__plan_updates(net));
    return bpt__plan_transfers(net);
}

/* ---- graphs: the tasks of some phases, with the edges among them ---- */

enum {
    COMPUTE = BPT_PHASE_FORWARD | BPT_PHASE_TRAINING | BPT_PHASE_LOSS | BPT_PHASE_BACKWARD,
};

static const unsigned phases_of[BPT_N_GRAPHS] = {
    [BPT_GRAPH_TRAIN] = COMPUTE | BPT_PHASE_UPDATE,
    [BPT_GRAPH_GRADIENT] = COMPUTE | BPT_PHASE_REDUCE,
    [BPT_GRAPH_APPLY] = BPT_PHASE_APPLY,
    [BPT_GRAPH_EVALUATE] = BPT_PHASE_FORWARD | BPT_PHASE_INFERENCE | BPT_PHASE_LOSS,
    [BPT_GRAPH_EXPORT] = BPT_PHASE_EXPORT,
    [BPT_GRAPH_IMPORT] = BPT_PHASE_IMPORT,
};

static unsigned phases(const bpt_network *net, bpt_graph_role role) {
    if (role == BPT_GRAPH_TRAIN && net->wants_norms)
        return COMPUTE | BPT_PHASE_REDUCE | BPT_PHASE_APPLY;
    return phases_of[role];
}

static void count_graph(const bpt_builder *b, unsigned set, size_t *n_tasks, size_t *n_edges) {
    *n_tasks = *n_edges = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        if (!(b->tasks[i].phase & set)) continue;
        ++*n_tasks;
        *n_edges += b->tasks[i].after.n;
    }
}

/* @param ids    scratch: graph id of each task of the plan, shape [b->n_tasks]
 * @param edges  scratch, shape [number of edges] */
static bpt_status fill_graph(const bpt_builder *b, unsigned set, bpt_graph *g, uint32_t *ids,
                             uint32_t *edges) {
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_step_task *task = &b->tasks[i];
        if (!(task->phase & set)) continue;
        size_t n = 0;
        for (size_t d = 0; d < task->after.n; d++)
            if (b->tasks[task->after.ids[d]].phase & set) edges[n++] = ids[task->after.ids[d]];
        BPT_TRY(bpt_graph_add(g, task->fn, task->arg, task->info, 0, edges, n, &ids[i]));
    }
    return BPT_OK;
}

static bpt_status make_graph(bpt_network *net, bpt_graph_role role) {
    const bpt_builder *b = &net->builder;
    const unsigned set = phases(net, role);
    size_t n_tasks, n_edges;
    uint32_t *ids = NULL, *edges = NULL;
    bpt_status status;
    count_graph(b, set, &n_tasks, &n_edges);
    BPT_TRY(bpt_graph_create(n_tasks ? n_tasks : 1, n_edges, &net->graphs[role]));
    BPT_TRY_GOTO(status, BPT_NEW("task ids", b->n_tasks, &ids), done);
    BPT_TRY_GOTO(status, BPT_NEW("task edges", n_edges, &edges), done);
    BPT_TRY_GOTO(status, fill_graph(b, set, net->graphs[role], ids, edges), done);
    if (role == BPT_GRAPH_TRAIN) {
        BPT_TRY_GOTO(status, BPT_NEW("task ids", n_tasks, &net->train_ids), done);
        for (size_t i = 0; i < b->n_tasks; i++)
            if (b->tasks[i].phase & set) net->train_ids[ids[i]] = (uint32_t)i;
    }
done:
    bpt_free(edges);
    bpt_free(ids);
    return status;
}

static bpt_status reserve(bpt_network *net) {
    BPT_TRY(bpt_blocks_allocate(&net->blocks));
    for (int block = BPT_BLOCK_WEIGHTS; block < BPT_N_BLOCKS; block++)
        BPT_TRY(bpt_cpu_resolve(net->cpu, (bpt_block)block, net->blocks.base[block]));
    return bpt_cpu_reserve_scratch(net->cpu);
}

bpt_status bpt_network_create(const bpt_model *model, int64_t batch, bpt_learning learning,
                              bpt_pool *pool, bpt_network **out) {
    bpt_network *net;
    assert(batch >= 1);
    if (batch > INT32_MAX) /* oneDNN counts samples in an int; the rest of the sizes fit then */
        return bpt_fail(BPT_ENOMEM, "a batch of %" PRId64 " samples is too large", batch);
    BPT_TRY(BPT_NEW("network", 1, &net));
    net->model = model;
    net->pool = pool;
    net->learning = learning;
    net->learning.optimizer = bpt_learning_optimizer(&learning);
    net->wants_norms = learning.clip_norm > 0.0 || net->learning.optimizer->trust;
    net->clip_scale = 1.0f;
    net->step.denominator = 1.0f;
    bpt_status status;
    BPT_TRY_GOTO(status, bpt_cpu_create(bpt_pool_n_workers(pool), &net->cpu), err_free);
    net->builder.cpu = net->cpu;
    net->builder.blocks = &net->blocks;
    net->builder.step = &net->step;
    bpt_builder_cut(&net->builder, batch);
    BPT_TRY_GOTO(status, plan(net), err_free);
    BPT_TRY_GOTO(status, reserve(net), err_free);
    for (int role = 0; role < BPT_N_GRAPHS; role++)
        BPT_TRY_GOTO(status, make_graph(net, (bpt_graph_role)role), err_free);
    *out = net;
    return BPT_OK;
err_free:
    bpt_network_free(net);
    return status;
}

void bpt_network_free(bpt_network *net) {
    if (!net) return;
    for (int role = 0; role < BPT_N_GRAPHS; role++) bpt_graph_free(net->graphs[role]);
    bpt_free(net->train_ids);
    bpt_free(net->activations);
    bpt_free(net->tiles);
    bpt_blocks_release(&net->blocks);
    bpt_builder_release(&net->builder);
    bpt_cpu_free(net->cpu);
    bpt_free(net);
}

/* ---- running ---- */

/* Tasks set the flag; the end of the run orders them before its reader. */
static bpt_status run_graph(bpt_network *net, bpt_graph_role role, bpt_run_stats *stats) {
    atomic_store_explicit(&net->not_finite, false, memory_order_relaxed);
    return bpt_pool_run(net->pool, net->graphs[role], stats);
}

/* The first run tells which paths are long; from then on the longest go first. The order changes
 * no bit of the results. */
static void learn_costs(bpt_network *net, bpt_graph_role role) {
    bpt_graph *g = net->graphs[role];
    if (net->costs_known[role]) return;
    for (size_t i = 0; i < bpt_graph_n_tasks(g); i++)
        bpt_graph_set_cost(g, (uint32_t)i, bpt_graph_measured(g, (uint32_t)i));
    net->costs_known[role] = true;
}

static bpt_status run_batch(bpt_network *net, bpt_graph_role role, const float *pixels,
                            const int32_t *labels, bpt_batch_result *result) {
    net->blocks.base[BPT_BLOCK_INPUT] = (char *)pixels; /* tasks only read these two */
    net->blocks.base[BPT_BLOCK_LABELS] = (char *)labels;
    net->wants_logits_grad = role != BPT_GRAPH_EVALUATE;
    BPT_TRY(bpt_cpu_resolve(net->cpu, BPT_BLOCK_INPUT, (char *)pixels));
    BPT_TRY(run_graph(net, role, &net->last_run));
    learn_costs(net, role);
    *result = (bpt_batch_result){0};
    for (size_t t = 0; t < net->builder.n_tiles; t++) {
        const bpt_batch_result *tile = &net->tiles[t].result;
        result->loss_sum += tile->loss_sum;
        result->n_correct += tile->n_correct;
        result->n_samples += tile->n_samples;
    }
    return bpt__check_batch(net, result->loss_sum,
                            role == BPT_GRAPH_GRADIENT ? BPT_BLOCK_GRADIENTS : BPT_BLOCK_WEIGHTS);
}

void bpt_network_set_draw(bpt_network *net, bpt_draw draw) {
    net->step.draw = draw;
}

bpt_status bpt_network_train(bpt_network *net, const float *pixels, const int32_t *labels,
                             float rate, float denominator, bpt_batch_result *result) {
    net->step.rate = rate;
    net->step.denominator = denominator;
    net->updates++;
    return run_batch(net, BPT_GRAPH_TRAIN, pixels, labels, result);
}

bpt_status bpt_network_gradient(bpt_network *net, const float *pixels, const int32_t *labels,
                                float denominator, bpt_batch_result *result) {
    net->step.denominator = denominator;
    return run_batch(net, BPT_GRAPH_GRADIENT, pixels, labels, result);
}

bpt_status bpt_network_apply(bpt_network *net, float rate) {
    net->step.rate = rate;
    net->updates++;
    BPT_TRY(run_graph(net, BPT_GRAPH_APPLY, NULL));
    return bpt__check_weights(net);
}

bpt_status bpt_network_evaluate(bpt_network *net, const float *pixels, const int32_t *labels,
                                bpt_batch_result *result) {
    return run_batch(net, BPT_GRAPH_EVALUATE, pixels, labels, result);
}

bpt_learning bpt_network_learning(const bpt_network *net) {
    return net->learning;
}

size_t bpt_network_n_states(const bpt_network *net) {
    return net->learning.optimizer->n_states(&net->learning);
}

uint64_t bpt_network_updates(const bpt_network *net) {
    return net->updates;
}

void bpt_network_set_updates(bpt_network *net, uint64_t n) {
    net->updates = n;
}

size_t bpt_network_bytes(const bpt_network *net) {
    size_t bytes = bpt_cpu_scratch_bytes(net->cpu);
    for (int block = BPT_BLOCK_WEIGHTS; block < BPT_N_BLOCKS; block++)
        bytes += net->blocks.bytes[block];
    return bytes;
}

bpt_run_stats bpt_network_last_run(const bpt_network *net) {
    return net->last_run;
}

uint64_t bpt_network_critical_path(const bpt_network *net) {
    return bpt_graph_measured_path(net->graphs[BPT_GRAPH_TRAIN]);
}

void bpt_network_visit_times(const bpt_network *net,
                             void (*visit)(void *context, const char *label, const char *kind,
                                           unsigned n_tasks, uint64_t ns),
                             void *context) {
    const bpt_graph *g = net->graphs[BPT_GRAPH_TRAIN];
    const size_t n = bpt_graph_n_tasks(g);
    for (size_t i = 0; i < n;) {
        const bpt_task_info info = net->builder.tasks[net->train_ids[i]].info;
        unsigned n_tasks = 0;
        uint64_t ns = 0;
        for (; i < n; i++, n_tasks++) { /* tasks of one layer and kind follow each other */
            const bpt_task_info next = net->builder.tasks[net->train_ids[i]].info;
            if (strcmp(next.kind, info.kind) != 0 || strcmp(next.label, info.label) != 0) break;
            ns += bpt_graph_measured(g, (uint32_t)i);
        }
        visit(context, info.label, info.kind, n_tasks, ns);
    }
}
