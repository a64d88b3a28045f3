/* Whether the machine has the memory that a replay takes: one process holds what each rank of the
 * run had for itself, perhaps on as many machines. */
#include "base/memory.h"
#include "tools/train/data/feed.h"
#include "tools/train/options/learning_options.h"
#include "tools/train/replay/replay_state.h"

/* Vectors of weights: of a worker base, pushed, part and answer; of all global, velocity, scratch
 * and final. */
enum { OF_A_WORKER = 4, OF_ALL = 4 };

static bpt_status plan_worker(const bpt__replay *r, uint32_t rank, size_t *bytes) {
    bpt_network_memory network;
    BPT_TRY(bpt_network_plan(r->trained, r->o->batch_size, r->ranks[rank].activations,
                             bpt_train_learning(r->o, r->lr_factor), bpt_pool_n_workers(r->pool),
                             &network));
    *bytes = bpt_size_add(network.total, OF_A_WORKER * r->n * sizeof(float));
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
    size_t need = bpt_size_add(batches_bytes(r), OF_ALL * r->n_all * sizeof(float));
    for (uint32_t j = 0; j < r->m; j++) {
        size_t worker;
        BPT_TRY(plan_worker(r, j, &worker));
        need = bpt_size_add(need, worker);
    }
    if (need <= limit) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "a replay of %u rank%s needs %.1f GB of memory, %s %.1f GB", r->m,
        r->m == 1 ? "" : "s", (double)need * 1e-9, bpt_memory_bound(), (double)limit * 1e-9);
    bpt_hint("replay it where there is more: one process has the networks of all ranks");
    return status;
}
