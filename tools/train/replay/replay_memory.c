/* Whether the machine has the memory that a replay takes: one process holds what each rank of the
 * run had for itself, perhaps on as many machines. */
#include "base/memory.h"
#include "tools/train/data/feed.h"
#include "tools/train/options/learning_options.h"
#include "tools/train/replay/replay_state.h"

/* Vectors of weights of a worker: base, pushed, part and answer. */
enum { OF_A_WORKER = 4 };

/* Global and final weights are those of the whole model. */
static size_t vectors_bytes(const bpt__replay *r) {
    const size_t of_exchange = r->velocity ? 2 : 1; /* scratch */
    return (2 * r->n_all + of_exchange * r->n) * sizeof(float);
}

static bpt_status plan_worker(const bpt__replay *r, uint32_t rank, size_t *bytes) {
    bpt_network_memory network;
    bpt__replay_use_cuts(r, rank);
    BPT_TRY(bpt_network_plan(r->trained, r->o->batch_size, r->ranks[rank].activations,
                             bpt_train_learning(r->o, r->lr_factor), bpt_pool_n_workers(r->pool),
                             &network));
    *bytes = bpt_size_add(network.total, OF_A_WORKER * r->n * sizeof(float));
    return BPT_OK;
}

/* Those that are cut by files of their own are planned one by one; most ranks are alike. */
static bool is_alike(const bpt__replay *r, uint32_t a, uint32_t b) {
    return !r->workers[a].tuned && !r->workers[b].tuned &&
           r->ranks[a].activations == r->ranks[b].activations;
}

static bpt_status plan_workers(const bpt__replay *r, size_t *need) {
    size_t bytes = 0;
    for (uint32_t j = 0; j < r->m; j++) {
        if (j == 0 || !is_alike(r, j - 1, j)) BPT_TRY(plan_worker(r, j, &bytes));
        *need = bpt_size_add(*need, bytes);
    }
    return BPT_OK;
}

static size_t batches_bytes(const bpt__replay *r) {
    const bpt_shape in = r->model->input;
    const size_t values = (size_t)(in.c * in.h * in.w);
    const bpt_loader_options loader =
        bpt_feed_options(r->o, r->split, (uint32_t)r->o->batch_size, false);
    return bpt_size_add(bpt_loader_bytes(&loader, values),
                        bpt_loader_decoding_bytes(r->split, loader.n_threads, values));
}

bpt_status bpt__replay_check_memory(const bpt__replay *r) {
    const size_t limit = bpt_memory_of_machine();
    size_t need = bpt_size_add(batches_bytes(r), vectors_bytes(r));
    BPT_TRY(plan_workers(r, &need));
    if (need <= limit) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "a replay of %u rank%s needs %.1f GB of memory, %s %.1f GB", r->m,
        r->m == 1 ? "" : "s", (double)need * 1e-9, bpt_memory_bound(), (double)limit * 1e-9);
    bpt_hint("replay it where there is more: one process has the networks of all ranks");
    return status;
}
