/* What is done with a network: runs of its graphs, and what they leave behind. */
#include "inner/network/network.h"
#include "inner/network/network_border.h"
#include "inner/network/network_private.h"

#include <assert.h>
#include <string.h>

/* ---- graphs ---- */

/* Tasks set the flags; the end of the run orders them before their reader. */
static bpt_status run_graph(bpt_network *net, bpt_graph_role role, bpt_run_stats *stats) {
    assert(net->graphs[role]);
    if (role == BPT_GRAPH_GRADIENT && net->parts.take)
        BPT_TRY(bpt__bind_transfer(net, BPT_VECTOR_GRADIENTS, net->parts.flat));
    atomic_store_explicit(&net->bad_border, false, memory_order_relaxed);
    atomic_store_explicit(&net->bad_gradient, false, memory_order_relaxed);
    atomic_store_explicit(&net->bad_weight, false, memory_order_relaxed);
    const bool updates = role == BPT_GRAPH_TRAIN || role == BPT_GRAPH_APPLY;
    net->updates += updates; /* first: an optimiser looks at it */
    const bpt_status status = bpt_pool_run(net->pool, net->graphs[role], stats);
    if (status != BPT_OK) net->updates -= updates; /* a loss that is none ends it before */
    return status;
}

/* The first runs tell which paths are long; from then on the longest go first. Of these the last
 * counts: the first of all touches most of its memory for the first time, and takes what the system
 * takes to give it. The order changes no bit of the results. */
static void learn_costs(bpt_network *net, bpt_graph_role role) {
    bpt_graph *g = net->graphs[role];
    if (net->runs_learned[role] == BPT__LEARNING_RUNS) return;
    for (size_t i = 0; i < bpt_graph_n_tasks(g); i++)
        bpt_graph_set_cost(g, (uint32_t)i, bpt_graph_measured(g, (uint32_t)i));
    if (role == BPT_GRAPH_GRADIENT) bpt__hurry_to_border(net);
    net->runs_learned[role]++;
}

static bpt_status take_batch(bpt_network *net, const void *input, const int32_t *labels) {
    net->blocks.base[BPT_BLOCK_INPUT] = (char *)input; /* tasks only read these two */
    net->blocks.base[BPT_BLOCK_LABELS] = (char *)labels;
    return bpt_cpu_resolve(net->cpu, BPT_BLOCK_INPUT, &net->blocks);
}

void bpt__sum_chunks(const bpt_network *net, bpt_batch_result *result) {
    *result = (bpt_batch_result){0};
    for (size_t c = 0; c < net->builder.n_chunks; c++) {
        const bpt_batch_result *chunk = &net->chunks[c].result;
        result->loss_sum += chunk->loss_sum;
        result->n_correct += chunk->n_correct;
        result->n_samples += chunk->n_samples;
    }
}

static bpt_status run_one(bpt_network *net, bpt_graph_role role, const void *input,
                          const int32_t *labels, bpt_batch_result *result) {
    assert(net->model->role != BPT_MODEL_HEAD);
    net->step.trains = role != BPT_GRAPH_EVALUATE;
    BPT_TRY(take_batch(net, input, labels));
    net->last_role = role;
    const bpt_status status = run_graph(net, role, &net->last_run);
    if (status == BPT_ENUMERIC) return bpt__trace_loss(net, role);
    BPT_TRY(status);
    learn_costs(net, role);
    bpt__sum_chunks(net, result);
    return bpt__check_batch(net, role);
}

static bpt_status run_batch(bpt_network *net, bpt_graph_role role, const void *input,
                            const int32_t *labels, bpt_batch_result *result) {
    const bpt_status status = run_one(net, role, input, labels, result);
    bpt_network_set_second(net, NULL, NULL); /* of that batch alone */
    return status;
}

void bpt_network_set_draw(bpt_network *net, bpt_draw draw) {
    net->step.draw = draw;
}

void bpt_network_set_next(bpt_network *net, const void *input) {
    net->next = input;
}

void bpt_network_set_second(bpt_network *net, const int32_t *labels, const float *parts) {
    net->second.labels = labels;
    net->second.parts = parts;
}

void bpt_network_tell_answers(bpt_network *net, bpt_answer *answers) {
    assert(!net->device);
    net->answers = answers;
}

/* ---- whole networks and tails ---- */

bpt_status bpt_network_train(bpt_network *net, const void *input, const int32_t *labels, float rate,
                             float denominator, bpt_batch_result *result) {
    net->step.rate = rate;
    net->step.denominator = denominator;
    if (net->device) return bpt__device_run(net, BPT_DEVICE_TRAIN, input, labels, result);
    return run_batch(net, BPT_GRAPH_TRAIN, input, labels, result);
}

bpt_status bpt_network_gradient(bpt_network *net, const void *input, const int32_t *labels,
                                float denominator, bpt_batch_result *result) {
    net->step.denominator = denominator;
    if (net->device) return bpt__device_run(net, BPT_DEVICE_GRADIENT, input, labels, result);
    return run_batch(net, BPT_GRAPH_GRADIENT, input, labels, result);
}

bpt_status bpt_network_apply(bpt_network *net, float rate) {
    net->step.rate = rate;
    if (net->device) return bpt__device_run(net, BPT_DEVICE_APPLY, NULL, NULL, NULL);
    BPT_TRY(run_graph(net, BPT_GRAPH_APPLY, NULL));
    learn_costs(net, BPT_GRAPH_APPLY);
    return bpt__check_updates(net);
}

bpt_status bpt_network_evaluate(bpt_network *net, const void *input, const int32_t *labels,
                                bpt_batch_result *result) {
    assert(net->model->role == BPT_MODEL_WHOLE);
    if (net->device) return bpt__device_run(net, BPT_DEVICE_EVALUATE, input, labels, result);
    return run_batch(net, BPT_GRAPH_EVALUATE, input, labels, result);
}

/* ---- heads ---- */

bpt_status bpt_network_forward(bpt_network *net, const float *pixels, const int32_t *labels,
                               float denominator) {
    assert(net->model->role == BPT_MODEL_HEAD);
    net->step.denominator = denominator;
    net->step.trains = true;
    BPT_TRY(take_batch(net, pixels, labels));
    BPT_TRY(run_graph(net, BPT_GRAPH_FORWARD, &net->last_run));
    learn_costs(net, BPT_GRAPH_FORWARD);
    return bpt__check_border(net);
}

static bpt_status run_backward(bpt_network *net, bpt_graph_role role) {
    bpt_run_stats second, *all = &net->last_run;
    assert(net->model->role == BPT_MODEL_HEAD);
    net->last_role = role;
    BPT_TRY(run_graph(net, role, &second));
    learn_costs(net, role);
    all->wall_ns += second.wall_ns;
    all->busy_ns += second.busy_ns;
    all->n_tasks += second.n_tasks;
    all->n_stolen += second.n_stolen;
    return bpt__check_batch(net, role);
}

bpt_status bpt_network_backward_train(bpt_network *net, float rate) {
    net->step.rate = rate;
    return run_backward(net, BPT_GRAPH_TRAIN);
}

bpt_status bpt_network_backward(bpt_network *net) {
    return run_backward(net, BPT_GRAPH_GRADIENT);
}

/* ---- asking ---- */

const bpt_device *bpt_network_device(const bpt_network *net) {
    return net->device;
}

const char *bpt_network_sharing(const bpt_network *net) {
    if (!net->device || !net->device->kind->sharing) return NULL;
    return net->device->kind->sharing(net->on_device);
}

bpt_network_memory bpt_network_host_memory_of(const bpt_network *net) {
    if (!net->device || !net->device->kind->host_memory) return (bpt_network_memory){0};
    return net->device->kind->host_memory(net->on_device);
}

uint64_t bpt_network_products_ns(const bpt_network *net) {
    return net->device ? net->device->kind->products_ns(net->on_device) : 0;
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
    if (net->device) return net->last_run.wall_ns; /* one thing after another */
    bpt_graph *first = net->graphs[BPT_GRAPH_FORWARD];
    assert(net->last_role != BPT_GRAPH_FORWARD); /* as it is before the first run */
    assert(net->graphs[net->last_role]);
    return (first ? bpt_graph_measured_path(first) : 0) +
           bpt_graph_measured_path(net->graphs[net->last_role]);
}

typedef struct {
    const bpt_model *model;
    double *seconds; /* of each layer */
    double second;   /* in nanoseconds of tasks */
} layer_times;

/* Tasks of updates are called by their segment, which no layer is. */
static void add_layer_time(void *context, bpt_task_info info, uint64_t ns) {
    const layer_times *t = context;
    for (size_t i = 0; i < t->model->n_layers; i++)
        if (strcmp(t->model->layers[i].name, info.label) == 0)
            t->seconds[i] += (double)ns / t->second;
}

void bpt_network_layer_times(const bpt_network *net, double *seconds) {
    if (net->device) {
        bpt__device_layer_times(net, seconds);
        return;
    }
    const bpt_run_stats *run = &net->last_run;
    layer_times t = {net->model, seconds, 1e9 * (double)run->busy_ns / (double)run->wall_ns};
    for (size_t i = 0; i < net->model->n_layers; i++) seconds[i] = 0.0;
    if (run->busy_ns > 0) bpt__visit_step(net, add_layer_time, &t);
}

/* Tasks that follow each other and are of one layer and kind. */
typedef struct {
    bpt_visit_times visit;
    void *context;
    bpt_task_info info;
    unsigned n_tasks;
    uint64_t ns;
} kind_times;

static void end_kind(kind_times *k) {
    if (k->n_tasks > 0) k->visit(k->context, k->info.label, k->info.kind, k->n_tasks, k->ns);
    k->n_tasks = 0;
    k->ns = 0;
}

static void add_time(void *context, bpt_task_info info, uint64_t ns) {
    kind_times *k = context;
    if (k->n_tasks > 0 &&
        (strcmp(info.kind, k->info.kind) != 0 || strcmp(info.label, k->info.label) != 0))
        end_kind(k);
    k->info = info;
    k->n_tasks++;
    k->ns += ns;
}

void bpt_network_visit_times(const bpt_network *net, bpt_visit_times visit, void *context) {
    if (net->device) {
        bpt__device_visit_times(net, visit, context);
        return;
    }
    kind_times k = {.visit = visit, .context = context};
    bpt__visit_step(net, add_time, &k);
    end_kind(&k);
}
