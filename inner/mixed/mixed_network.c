/* The life of a network that a device and the cores have in common. */
#include "inner/mixed/mixed_network.h"

#include "base/memory.h"
#include "inner/cpu/cpu.h"
#include "inner/mixed/mixed_split.h"
#include "inner/mixed/mixed_trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- parts ---- */

static bool cores_can(const bpt_device_wish *w) {
    return w->activations != BPT_BF16 || bpt_cpu_bf16() == BPT_BF16_NATIVE;
}

static bpt_status create_fast(bpt_mixed_network *m, bpt_network_memory *memory) {
    bpt_device *fast = m->device->fast;
    bpt_device_wish wish = m->wish;
    wish.batch -= m->n_cores;
    return fast->kind->create(fast, &wish, &m->fast, memory);
}

/* Beside a device the cores update nothing. */
static bpt_learning learning_of_cores(const bpt_mixed_network *m) {
    if (m->n_cores == m->wish.batch) return m->wish.learning;
    return (bpt_learning){.label_smoothing = m->wish.learning.label_smoothing};
}

static bpt_status create_cores(bpt_mixed_network *m) {
    const bpt_device_wish *w = &m->wish;
    if (w->forward_only)
        return bpt_network_create_forward(w->model, m->n_cores, w->activations, w->pool, &m->cores);
    return bpt_network_create(w->model, m->n_cores, w->activations, learning_of_cores(m), w->pool,
                              &m->cores);
}

static void describe(bpt_mixed_network *m) {
    const char *name = m->device->fast->name;
    const unsigned n_workers = bpt_pool_n_workers(m->wish.pool);
    const int64_t n_fast = m->wish.batch - m->n_cores;
    const int size = (int)strcspn(name, " ");
    if (!cores_can(&m->wish))
        snprintf(m->sharing, sizeof m->sharing,
                 "%.*s has all samples of a step: the cores have no instructions for bfloat16",
                 size, name);
    else if (!m->cores)
        snprintf(m->sharing, sizeof m->sharing,
                 "%.*s has all samples of a step: with the cores it would not be faster", size,
                 name);
    else if (!m->fast)
        snprintf(m->sharing, sizeof m->sharing,
                 "%u core%s all samples of a step, which %.*s would take longer for", n_workers,
                 n_workers == 1 ? " has" : "s have", size, name);
    else
        snprintf(m->sharing, sizeof m->sharing,
                 "of %" PRId64 " samples of a step %.*s has %" PRId64 ", %u core%s %" PRId64,
                 m->wish.batch, size, name, n_fast, n_workers, n_workers == 1 ? " has" : "s have",
                 m->n_cores);
}

static size_t flat_bytes(const bpt_device_wish *w) {
    return bpt_model_learned_elements(w->model) * sizeof(float);
}

bpt_status bpt__mixed_make(bpt_mixed_device *device, const bpt_device_wish *wish, int64_t n_cores,
                           bpt_mixed_network *m, bpt_network_memory *memory) {
    *m = (bpt_mixed_network){.device = device, .wish = *wish, .n_cores = n_cores};
    *memory = (bpt_network_memory){0};
    if (n_cores < wish->batch) BPT_TRY(create_fast(m, memory));
    if (n_cores > 0) BPT_TRY(create_cores(m));
    if (m->fast && m->cores && !wish->forward_only)
        BPT_TRY(device->fast->kind->host_allocate(flat_bytes(wish), (void **)&m->flat));
    describe(m);
    return BPT_OK;
}

void bpt__mixed_unmake(bpt_mixed_network *m) {
    const bpt_device_kind *kind = m->device->fast->kind;
    if (m->fast) kind->free(m->fast);
    if (m->flat) kind->host_free(m->flat);
    bpt_network_free(m->cores);
}

/* ---- wholes ---- */

static bpt__mixed_problem problem_of(const bpt_device_wish *w) {
    return (bpt__mixed_problem){
        .forward_only = w->forward_only,
        .batch = w->batch,
        .type = w->activations,
        .layers = (int64_t)w->model->n_layers,
        .elements = (int64_t)w->model->segments.n_elements,
        .input = w->model->input.c * w->model->input.h * w->model->input.w,
        .workers = bpt_pool_n_workers(w->pool),
        .frozen = w->forward_only ? 0 : (int64_t)w->model->n_frozen,
    };
}

/* Who only evaluates has the statistics of those who trained. */
int64_t bpt__mixed_least(const bpt_device_wish *wish) {
    const bpt_layer *layer;
    return wish->forward_only ? 1 : bpt_model_least_batch(wish->model, &layer);
}

/* A share that a file holds may be one that nothing is learnt with. */
static bool may_have(const bpt_device_wish *w, int64_t n_cores) {
    return bpt__mixed_allowed(n_cores, w->batch, bpt__mixed_least(w)) == n_cores;
}

static bpt_status find_share(bpt_mixed_device *device, const bpt_device_wish *wish,
                             int64_t *n_cores) {
    const bpt__mixed_problem problem = problem_of(wish);
    *n_cores = 0;
    if (!cores_can(wish)) return BPT_OK;
    const bpt__mixed_share *kept = bpt__mixed_shares_find(&device->shares, problem);
    if (kept && may_have(wish, kept->n_cores)) {
        *n_cores = kept->n_cores;
        return BPT_OK;
    }
    BPT_TRY(bpt__mixed_find_share(device, wish, n_cores));
    device->n_measured++;
    return bpt__mixed_shares_note(&device->shares, problem, *n_cores);
}

bpt_status bpt__mixed_network_create(bpt_device *base, const bpt_device_wish *wish,
                                     bpt_device_network **net, bpt_network_memory *memory) {
    bpt_mixed_device *device = (bpt_mixed_device *)base;
    bpt_mixed_network *m;
    int64_t n_cores;
    BPT_TRY(find_share(device, wish, &n_cores));
    BPT_TRY(BPT_NEW("network on a device and cores", 1, &m));
    const bpt_status status = bpt__mixed_make(device, wish, n_cores, m, memory);
    base->n_measured = device->n_measured + device->fast->n_measured;
    if (status == BPT_OK)
        *net = (bpt_device_network *)m;
    else
        bpt__mixed_network_free((bpt_device_network *)m);
    return status;
}

void bpt__mixed_network_free(bpt_device_network *net) {
    if (!net) return;
    bpt__mixed_unmake(bpt__mixed(net));
    bpt_free(net);
}

bpt_network_memory bpt__mixed_network_host_memory(const bpt_device_network *net) {
    const bpt_mixed_network *m = (const bpt_mixed_network *)net;
    bpt_network_memory memory = {0};
    if (m->cores) memory = bpt_network_memory_of(m->cores);
    if (!m->flat) return memory;
    memory.workspaces = bpt_size_add(memory.workspaces, flat_bytes(&m->wish));
    memory.total = bpt_size_add(memory.total, flat_bytes(&m->wish));
    return memory;
}
