#include "tools/train/data/held_out.h"

#include "base/memory.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

uint64_t bpt_held_out(const bpt_train_options *o, bpt_update_choice update, uint32_t n_ranks,
                      uint64_t n_records) {
    const bool weighs = update == BPT_UPDATE_AGWU || update == BPT_UPDATE_SGWU;
    if (o->quality != BPT_QUALITY_HELD_OUT || !weighs || n_ranks < 2 || n_records < 2) return 0;
    const uint64_t n = (uint64_t)llround(o->held_out * (double)n_records);
    return n > 0 ? n : 1;
}

static int compare(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

bpt_status bpt_held_out_draw(uint64_t seed, uint32_t n_records, uint32_t n_held,
                             uint32_t **records) {
    BPT_TRY(BPT_NEW("records of the split", n_records, records));
    bpt_random_permutation(seed, BPT_PURPOSE_HELD_OUT, 0, *records, n_records);
    qsort(*records + n_held, n_records - n_held, sizeof **records, compare);
    return BPT_OK;
}

void bpt_held_out_skip_partners(const uint32_t *records, uint64_t n_held, const bpt_split *split,
                                bpt_loader_options *loader) {
    if (!records) return;
    loader->partners = records + n_held;
    loader->n_partners = split->count - (uint32_t)n_held;
}

void bpt_held_out_skip(const uint32_t *records, uint64_t n_held, uint32_t *indices, size_t n) {
    for (size_t i = 0; records && i < n; i++) indices[i] = records[n_held + indices[i]];
}
