#include "outer/data/partition.h"

#include "base/memory.h"
#include "outer/data/holdings.h"

#include <string.h>

struct bpt_partition {
    uint64_t n_samples;
    uint32_t n_ranks, n_rounds;
    uint32_t rounds;       /* so far */
    uint32_t *order;       /* [n_samples] */
    uint32_t *held;        /* [rounds][n_ranks] */
    size_t held_capacity;  /* numbers */
    bpt__holdings *latest; /* after all rounds so far */
};

uint64_t bpt_partition_given(uint64_t n_samples, uint32_t n_rounds, uint32_t rounds) {
    return rounds < n_rounds ? n_samples * rounds / n_rounds : n_samples;
}

bpt_status bpt_partition_check(uint64_t n_samples, uint32_t n_ranks, uint32_t n_rounds) {
    if (n_samples < 1 || n_samples > UINT32_MAX)
        return bpt_fail(BPT_EUSAGE, "a split of %llu samples cannot be given out",
                        (unsigned long long)n_samples);
    if (n_rounds < 1 || n_rounds > BPT_PARTITION_ROUNDS_MAX)
        return bpt_fail(BPT_EUSAGE, "%u rounds of data: between 1 and %d are possible", n_rounds,
                        BPT_PARTITION_ROUNDS_MAX);
    if (n_samples / n_rounds >= n_ranks) return BPT_OK;
    if (n_ranks == 1) {
        (void)bpt_fail(BPT_EUSAGE, "%llu sample%s cannot be given out in %u rounds",
                       (unsigned long long)n_samples, n_samples == 1 ? "" : "s", n_rounds);
        bpt_hint("use fewer rounds");
    } else {
        (void)bpt_fail(BPT_EUSAGE, "%llu samples in %u rounds leave some of %u ranks without any",
                       (unsigned long long)n_samples, n_rounds, n_ranks);
        bpt_hint("use fewer rounds or fewer ranks");
    }
    return BPT_EUSAGE;
}

bpt_status bpt_partition_create(bpt_order order, uint64_t n_samples, uint32_t n_ranks,
                                uint32_t n_rounds, bpt_partition **partition) {
    BPT_TRY(bpt_partition_check(n_samples, n_ranks, n_rounds));
    bpt_partition *p = NULL;
    uint32_t *scratch = NULL;
    bpt_status status = BPT_OK;
    BPT_TRY(BPT_NEW("partition", 1, &p));
    *p = (bpt_partition){.n_samples = n_samples, .n_ranks = n_ranks, .n_rounds = n_rounds};
    BPT_TRY_GOTO(status, BPT_NEW("partition's order", n_samples, &p->order), err_free);
    BPT_TRY_GOTO(status, bpt__holdings_create(n_ranks, &p->latest), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("room for blocks", bpt_order_scratch(&order, n_samples), &scratch),
                 err_free);
    bpt_order_deal(&order, p->order, (uint32_t)n_samples, scratch);
    bpt_free(scratch);
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
    bpt__holdings_free(p->latest);
    bpt_free(p->held);
    bpt_free(p->order);
    bpt_free(p);
}

static const uint32_t *row(const bpt_partition *p, uint32_t round) {
    return p->held + (size_t)round * p->n_ranks;
}

bpt_status bpt_partition_check_round(uint64_t n_samples, uint32_t n_rounds, uint32_t round,
                                     const uint32_t *before, const uint32_t *held,
                                     uint32_t n_ranks) {
    const uint64_t given = bpt_partition_given(n_samples, n_rounds, round + 1);
    uint64_t sum = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        sum += held[r];
        if (before && round < n_rounds && held[r] < before[r])
            return bpt_fail(BPT_EDATA, "round %u of the data leaves rank %u %u samples of %u",
                            round, r, held[r], before[r]);
    }
    if (sum == given) return BPT_OK;
    return bpt_fail(BPT_EDATA, "round %u of the data comes to %llu samples instead of %llu", round,
                    (unsigned long long)sum, (unsigned long long)given);
}

bpt_status bpt_partition_allot(bpt_partition *p, const uint32_t *held) {
    const size_t m = p->n_ranks, n = (size_t)p->rounds * m;
    BPT_TRY(bpt_partition_check_round(p->n_samples, p->n_rounds, p->rounds,
                                      p->rounds > 0 ? row(p, p->rounds - 1) : NULL, held,
                                      p->n_ranks));
    BPT_TRY(BPT_GROW("table of rounds", n + m, &p->held, &p->held_capacity));
    BPT_TRY(bpt__holdings_become(p->latest, held));
    memcpy(p->held + n, held, m * sizeof *held);
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
    return rounds > 0 ? row(p, rounds - 1)[rank] : 0;
}

double bpt_partition_equal_ranks(const bpt_partition *p, uint32_t rounds) {
    double sum = 0, squares = 0;
    if (rounds == 0) return p->n_ranks;
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        const double held = (double)bpt_partition_held(p, r, rounds);
        sum += held;
        squares += held * held;
    }
    return sum * sum / squares;
}

double bpt_partition_part(const bpt_partition *p, uint32_t rank, uint32_t rounds) {
    uint64_t sum = 0;
    if (rounds == 0) return 1.0 / p->n_ranks;
    for (uint32_t r = 0; r < p->n_ranks; r++) sum += bpt_partition_held(p, r, rounds);
    return (double)bpt_partition_held(p, rank, rounds) / (double)sum;
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

static void name_samples(const bpt_partition *p, const bpt__spans *spans, uint32_t *samples) {
    for (size_t i = 0; i < spans->n; i++) {
        const uint64_t n = spans->span[i].end - spans->span[i].begin;
        memcpy(samples, p->order + spans->span[i].begin, n * sizeof *samples);
        samples += n;
    }
}

bpt_status bpt_partition_samples(const bpt_partition *p, uint32_t rank, uint32_t rounds,
                                 uint32_t *samples) {
    if (rounds == p->rounds) {
        name_samples(p, &p->latest->of[rank], samples);
        return BPT_OK;
    }
    bpt__holdings *then = NULL; /* as they were: all changes over again */
    BPT_TRY(bpt__holdings_create(p->n_ranks, &then));
    bpt_status status = BPT_OK;
    for (uint32_t a = 0; a < rounds && status == BPT_OK; a++)
        status = bpt__holdings_become(then, row(p, a));
    if (status == BPT_OK) name_samples(p, &then->of[rank], samples);
    bpt__holdings_free(then);
    return status;
}
