#include "tools/train/options/servers.h"

#include "tools/train/options/option_uses.h"
#include "tools/train/options/train_rule.h"

/* On a rank by itself --update default and auto are local, but whoever wants servers wants them. */
static bool has_use(const bpt_train_options *o, uint32_t n_ranks) {
    const bpt_update_choice update = (bpt_update_choice)o->update;
    return update == BPT_UPDATE_DEFAULT || update == BPT_UPDATE_AUTO ||
           bpt_update_merges(bpt_update_resolve(update, n_ranks));
}

static uint32_t wanted(const bpt_train_options *o, uint32_t n_ranks) {
    return has_use(o, n_ranks) ? (uint32_t)o->servers : 0;
}

bpt_status bpt_servers_count(const bpt_train_options *o, uint32_t n_ranks, uint32_t *n) {
    *n = wanted(o, n_ranks);
    if (*n < n_ranks) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--servers %u: this job has %u rank%s, and one has to train", *n,
                 n_ranks, n_ranks == 1 ? "" : "s");
    bpt_hint("servers are ranks beside those that train: give mpirun more, or lower --servers");
    return status;
}

bool bpt_servers_scatter(const bpt_train_options *o, uint32_t n_ranks) {
    uint32_t n;
    if (o->data_mode != BPT_DATA_SCATTER) return false;
    if (bpt_servers_count(o, n_ranks, &n) != BPT_OK) n = 0; /* it is refused */
    return n_ranks - n > 1;
}

bool bpt_servers_have(const bpt_train_options *o, uint32_t rank, uint32_t n_ranks) {
    const uint32_t n = wanted(o, n_ranks);
    return n < n_ranks && rank >= n_ranks - n;
}
