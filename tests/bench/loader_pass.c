#include "tests/bench/loader_pass.h"

#include "base/clock.h"

static bpt_status take_all(bpt_loader *loader, const uint32_t *order, uint32_t n, uint32_t batch) {
    for (uint32_t requested = 0, taken = 0; taken < n;) {
        while (requested < n && bpt_loader_room(loader) > 0) {
            const uint32_t left = n - requested, some = left < batch ? left : batch;
            BPT_TRY(bpt_loader_request(loader, order + requested, NULL, some));
            requested += some;
        }
        bpt_batch taken_batch;
        BPT_TRY(bpt_loader_next(loader, &taken_batch));
        taken += taken_batch.n;
        bpt_loader_release(loader, &taken_batch);
    }
    return BPT_OK;
}

bpt_status loader_pass(const bpt_dataset *dataset, const bpt_split *split, const uint32_t *order,
                       uint32_t n, const char *list, bpt_loader_options options, double *rate) {
    bpt_loader *loader;
    options.mean = split->mean;
    options.std = split->std;
    options.seed = 1;
    BPT_TRY(bpt_augment_parse(list, &options.augment));
    BPT_TRY(bpt_loader_create(dataset, split, &options, &loader));
    /* A training makes its loader once: what that has to fetch from the system is not in the rate.
     */
    bpt_status status = take_all(loader, order, n, options.batch);
    const uint64_t start_ns = bpt_clock_ns();
    if (status == BPT_OK) status = take_all(loader, order, n, options.batch);
    *rate = n / bpt_clock_seconds_since(start_ns);
    bpt_loader_destroy(loader);
    return status;
}
