#include "inner/network.h"

#include "base/memory.h"
#include "inner/network_private.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- life ---- */

/* Everything but memory of its own; @p n_workers will run it. On error @p net is to be freed. */
static bpt_status plan(bpt_network *net, const bpt_model *model, int64_t batch,
                       bpt_value_type activations, bpt_learning learning, unsigned n_workers) {
    assert(batch >= 1);
    if (batch > INT32_MAX) /* oneDNN counts samples in an int; the rest of the sizes fit then */
        return bpt_fail(BPT_ENOMEM, "a batch of %" PRId64 " samples is too large", batch);
    net->model = model;
    net->learning = learning;
    net->learning.optimizer = bpt_learning_optimizer(&learning);
    net->wants_norms = learning.clip_norm > 0.0 || net->learning.optimizer->trust;
    net->clip_scale = 1.0f;
    net->step.denominator = 1.0f;
    BPT_TRY(bpt_cpu_create(n_workers, &net->cpu));
    net->builder.cpu = net->cpu;
    net->builder.blocks = &net->blocks;
    net->builder.step = &net->step;
    net->builder.type = activations;
    net->builder.costs = model->costs;
    bpt_builder_cut(&net->builder, batch);
    BPT_TRY(bpt__network_plan(net));
    BPT_TRY(bpt__network_place(net));
    return bpt__network_count(net);
}

static bpt_status reserve(bpt_network *net) {
    BPT_TRY(bpt_blocks_allocate(&net->blocks));
    BPT_TRY(bpt_cpu_prepare(net->cpu));
    for (int block = BPT_BLOCK_WEIGHTS; block < BPT_N_BLOCKS; block++)
        BPT_TRY(bpt_cpu_resolve(net->cpu, (bpt_block)block, &net->blocks));
    for (int role = 0; role < BPT_N_GRAPHS; role++)
        if (bpt__graph_exists(net, (bpt_graph_role)role))
            BPT_TRY(bpt__network_graph(net, (bpt_graph_role)role));
    return BPT_OK;
}

static bpt_status create(const bpt_model *model, int64_t batch, bpt_value_type activations,
                         bpt_learning learning, bool forward_only, bpt_pool *pool,
                         bpt_network **out) {
    bpt_network *net;
    BPT_TRY(BPT_NEW("network", 1, &net));
    net->pool = pool;
    net->builder.forward_only = forward_only;
    bpt_status status = plan(net, model, batch, activations, learning, bpt_pool_n_workers(pool));
    if (status == BPT_OK) status = reserve(net);
    if (status == BPT_OK)
        *out = net;
    else
        bpt_network_free(net);
    return status;
}

bpt_status bpt_network_create(const bpt_model *model, int64_t batch, bpt_value_type activations,
                              bpt_learning learning, bpt_pool *pool, bpt_network **net) {
    return create(model, batch, activations, learning, false, pool, net);
}

bpt_status bpt_network_create_forward(const bpt_model *model, int64_t batch,
                                      bpt_value_type activations, bpt_pool *pool,
                                      bpt_network **net) {
    return create(model, batch, activations, (bpt_learning){0}, true, pool, net);
}

bpt_status bpt_network_plan(const bpt_model *model, int64_t batch, bpt_value_type activations,
                            bpt_learning learning, unsigned n_workers, bpt_network_memory *memory) {
    bpt_network *net;
    BPT_TRY(BPT_NEW("network", 1, &net));
    const bpt_status status = plan(net, model, batch, activations, learning, n_workers);
    if (status == BPT_OK) *memory = net->memory;
    bpt_network_free(net);
    return status;
}

void bpt_network_free(bpt_network *net) {
    if (!net) return;
    for (int role = 0; role < BPT_N_GRAPHS; role++) bpt_graph_free(net->graphs[role]);
    bpt_free(net->train_ids);
    bpt_free(net->activations);
    bpt_free(net->forward_end);
    bpt_free(net->tiles);
    bpt_blocks_release(&net->blocks);
    bpt_builder_release(&net->builder);
    bpt_cpu_free(net->cpu);
    bpt_free(net);
}

/* ---- running ---- */

/* Tasks set the flags; the end of the run orders them before their reader. */
static bpt_status run_graph(bpt_network *net, bpt_graph_role role, bpt_run_stats *stats) {
    assert(net->graphs[role]);
    atomic_store_explicit(&net->bad_gradient, false, memory_order_relaxed);
    atomic_store_explicit(&net->bad_weight, false, memory_order_relaxed);
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
    BPT_TRY(bpt_cpu_resolve(net->cpu, BPT_BLOCK_INPUT, &net->blocks));
    const bpt_status status = run_graph(net, role, &net->last_run);
    if (status == BPT_ENUMERIC) return bpt__trace_loss(net, role);
    BPT_TRY(status);
    learn_costs(net, role);
    *result = (bpt_batch_result){0};
    for (size_t t = 0; t < net->builder.n_tiles; t++) {
        const bpt_batch_result *tile = &net->tiles[t].result;
        result->loss_sum += tile->loss_sum;
        result->n_correct += tile->n_correct;
        result->n_samples += tile->n_samples;
    }
    return bpt__check_batch(net, role);
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
    return bpt__check_updates(net);
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
