#include "outer/exchange/shard.h"

#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

struct bpt_shard_table {
    uint32_t n_shards;
    bpt_shard shard[];
};

static bpt_status create_empty(uint32_t n_shards, bpt_shard_table **table) {
    bpt_shard_table *t = NULL;
    BPT_TRY(bpt_alloc("shard table", 1, sizeof *t + n_shards * sizeof t->shard[0], (void **)&t));
    t->n_shards = n_shards;
    *table = t;
    return BPT_OK;
}

/* Blocks in the first @p n of all shards. */
static size_t blocks_until(size_t n_blocks, uint32_t n_shards, const double *part, uint32_t n) {
    if (n == n_shards) return n_blocks;
    if (!part) {
        const size_t rest = n_blocks % n_shards;
        return n_blocks / n_shards * n + (n < rest ? n : rest);
    }
    double sum = 0;
    for (uint32_t s = 0; s < n; s++) sum += part[s];
    const size_t blocks = (size_t)llround(sum * (double)n_blocks);
    return blocks < n_blocks ? blocks : n_blocks;
}

/* Blocks of BPT_SHARD_ALIGNMENT elements are shared out; the last shard ends with the vector. */
bpt_status bpt_shard_table_create(size_t n_elements, uint32_t n_shards, uint32_t first_host,
                                  const double *part, bpt_shard_table **table) {
    bpt_shard_table *t;
    BPT_TRY(create_empty(n_shards, &t));
    const size_t n_blocks =
        n_elements / BPT_SHARD_ALIGNMENT + (n_elements % BPT_SHARD_ALIGNMENT > 0);
    size_t begin = 0;
    for (uint32_t s = 0; s < n_shards; s++) {
        size_t end = blocks_until(n_blocks, n_shards, part, s + 1) * BPT_SHARD_ALIGNMENT;
        if (end > n_elements) end = n_elements;
        t->shard[s] = (bpt_shard){.begin = begin, .end = end, .host = first_host + s};
        begin = end;
    }
    *table = t;
    return BPT_OK;
}

bpt_status bpt_shard_table_at(size_t n_elements, uint32_t n_shards, uint32_t first_host,
                              const uint64_t *begin, bpt_shard_table **table) {
    bpt_shard_table *t;
    for (uint32_t s = 0; s < n_shards; s++) {
        const uint64_t end = s + 1 < n_shards ? begin[s + 1] : n_elements;
        const bool aligned = begin[s] % BPT_SHARD_ALIGNMENT == 0 || begin[s] == n_elements;
        if (begin[s] > end || !aligned || (s == 0 && begin[s] != 0))
            return bpt_fail(BPT_EDATA, "shard %u begins at %llu of %zu and ends at %llu", s,
                            (unsigned long long)begin[s], n_elements, (unsigned long long)end);
    }
    BPT_TRY(create_empty(n_shards, &t));
    for (uint32_t s = 0; s < n_shards; s++)
        t->shard[s] = (bpt_shard){.begin = begin[s],
                                  .end = s + 1 < n_shards ? begin[s + 1] : n_elements,
                                  .host = first_host + s};
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

uint64_t bpt_shard_spread(const bpt_shard_table *t, const uint64_t *versions) {
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t i = 0; i < t->n_shards; i++) {
        if (t->shard[i].begin == t->shard[i].end) continue;
        if (versions[i] < least) least = versions[i];
        if (versions[i] > most) most = versions[i];
    }
    return most > least ? most - least : 0;
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
