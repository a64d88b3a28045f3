#include "outer/partition.h"

#include "base/memory.h"
#include "base/random.h"

struct bpt_partition {
    uint64_t n_samples;
    uint32_t n_ranks, n_rounds;
    uint32_t rounds; /* given out */
    uint32_t *order; /* [n_samples] */
    uint64_t *begin; /* [rounds_max][n_ranks + 1]: ranges of a round within order */
};

uint64_t bpt_partition_round_size(uint64_t n_samples, uint32_t n_rounds, uint32_t round) {
    return n_samples * (round + 1) / n_rounds - n_samples * round / n_rounds;
}

bpt_status bpt_partition_check(uint64_t n_samples, uint32_t n_ranks, uint32_t n_rounds) {
    if (n_samples < 1 || n_samples > UINT32_MAX)
        return bpt_fail(BPT_EUSAGE, "a split of %llu samples cannot be given out",
                        (unsigned long long)n_samples);
    if (n_rounds < 1 || n_rounds > BPT_PARTITION_ROUNDS_MAX)
        return bpt_fail(BPT_EUSAGE, "%u rounds of data: between 1 and %d are possible", n_rounds,
                        BPT_PARTITION_ROUNDS_MAX);
    if (n_samples / n_rounds < n_ranks) {
        (void)bpt_fail(BPT_EUSAGE, "%llu samples in %u rounds leave some of %u ranks without any",
                       (unsigned long long)n_samples, n_rounds, n_ranks);
        bpt_hint("use fewer rounds or fewer ranks");
        return BPT_EUSAGE;
    }
    return BPT_OK;
}

bpt_status bpt_partition_create(uint64_t seed, uint64_t n_samples, uint32_t n_ranks,
                                uint32_t n_rounds, bpt_partition **partition) {
    BPT_TRY(bpt_partition_check(n_samples, n_ranks, n_rounds));
    bpt_partition *p = NULL;
    bpt_status status = BPT_OK;
    BPT_TRY(BPT_NEW("partition", 1, &p));
    *p = (bpt_partition){.n_samples = n_samples, .n_ranks = n_ranks, .n_rounds = n_rounds};
    BPT_TRY_GOTO(status, BPT_NEW("partition's order", n_samples, &p->order), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("partition's table", (size_t)n_rounds * (n_ranks + 1u), &p->begin),
                 err_free);
    bpt_random_permutation(seed, BPT_PURPOSE_PARTITION, 0, p->order, (uint32_t)n_samples);
    *partition = p;
    return BPT_OK;
err_free:
    bpt_partition_free(p);
    return status;
}

size_t bpt_partition_bytes(uint64_t n_samples) {
    return n_samples * sizeof(uint32_t); /* its order */
}

void bpt_partition_free(bpt_partition *p) {
    if (!p) return;
    bpt_free(p->begin);
    bpt_free(p->order);
    bpt_free(p);
}

static uint64_t *round_begin(const bpt_partition *p, uint32_t round) {
    return p->begin + (size_t)round * (p->n_ranks + 1u);
}

bpt_status bpt_partition_allot(bpt_partition *p, const uint32_t *count) {
    if (p->rounds == p->n_rounds)
        return bpt_fail(BPT_EFULL, "all %u rounds of the data are given out", p->n_rounds);
    uint64_t *begin = round_begin(p, p->rounds);
    begin[0] = p->n_samples * p->rounds / p->n_rounds;
    for (uint32_t r = 0; r < p->n_ranks; r++) begin[r + 1] = begin[r] + count[r];
    const uint64_t sum = begin[p->n_ranks] - begin[0];
    const uint64_t size = bpt_partition_round_size(p->n_samples, p->n_rounds, p->rounds);
    if (sum != size)
        return bpt_fail(BPT_EDATA, "round %u of the data gives out %llu samples instead of %llu",
                        p->rounds, (unsigned long long)sum, (unsigned long long)size);
    p->rounds++;
    return BPT_OK;
}

uint32_t bpt_partition_rounds(const bpt_partition *p) {
    return p->rounds;
}

uint32_t bpt_partition_n_ranks(const bpt_partition *p) {
    return p->n_ranks;
}

uint64_t bpt_partition_n_samples(const bpt_partition *p) {
    return p->n_samples;
}

uint64_t bpt_partition_held(const bpt_partition *p, uint32_t rank, uint32_t rounds) {
    uint64_t held = 0;
    for (uint32_t a = 0; a < rounds; a++) {
        const uint64_t *begin = round_begin(p, a);
        held += begin[rank + 1] - begin[rank];
    }
    return held;
}

/* Rounding where the parts meet, not the parts, keeps the sum. */
uint64_t bpt_partition_steps(const bpt_partition *p, uint32_t rank, uint64_t total) {
    uint64_t before = 0, all = 0;
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        const uint64_t held = bpt_partition_held(p, r, p->rounds);
        if (r < rank) before += held;
        all += held;
    }
    const uint64_t after = before + bpt_partition_held(p, rank, p->rounds);
    return (total * after + all / 2) / all - (total * before + all / 2) / all;
}

const uint32_t *bpt_partition_range(const bpt_partition *p, uint32_t round, uint32_t rank,
                                    uint32_t *n) {
    const uint64_t *begin = round_begin(p, round);
    *n = (uint32_t)(begin[rank + 1] - begin[rank]);
    return p->order + begin[rank];
}
