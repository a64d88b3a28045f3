#include "outer/shard.h"

#include "base/memory.h"

#include <stdio.h>

struct bpt_shard_table {
    uint32_t n_shards;
    bpt_shard shard[];
};

/* Blocks of BPT_SHARD_ALIGNMENT elements are shared out evenly; the last shard ends with the
 * vector. */
bpt_status bpt_shard_table_create(size_t n_elements, uint32_t n_ranks, bpt_shard_table **table) {
    bpt_shard_table *t = NULL;
    BPT_TRY(bpt_alloc("shard table", 1, sizeof *t + n_ranks * sizeof t->shard[0], (void **)&t));
    t->n_shards = n_ranks;
    const size_t n_blocks =
        n_elements / BPT_SHARD_ALIGNMENT + (n_elements % BPT_SHARD_ALIGNMENT > 0);
    size_t begin = 0;
    for (uint32_t s = 0; s < n_ranks; s++) {
        const size_t blocks = n_blocks / n_ranks + (s < n_blocks % n_ranks);
        size_t end = begin + blocks * BPT_SHARD_ALIGNMENT;
        if (end > n_elements) end = n_elements;
        t->shard[s] = (bpt_shard){.begin = begin, .end = end, .host = s};
        begin = end;
    }
    *table = t;
    return BPT_OK;
}

void bpt_shard_table_free(bpt_shard_table *t) {
    bpt_free(t);
}

uint32_t bpt_shard_count(const bpt_shard_table *t) {
    return t->n_shards;
}

const bpt_shard *bpt_shard_at(const bpt_shard_table *t, uint32_t i) {
    return &t->shard[i];
}

void bpt_shard_describe(const bpt_shard_table *t, uint32_t i, char *text, size_t size) {
    const bpt_shard *s = &t->shard[i];
    const size_t n = s->end - s->begin;
    if (n == 0)
        snprintf(text, size, "shard %u of %u on rank %u: empty", i, t->n_shards, s->host);
    else
        snprintf(text, size, "shard %u of %u on rank %u: elements %zu..%zu (%zu bytes)", i,
                 t->n_shards, s->host, s->begin, s->end - 1, n * sizeof(float));
}
