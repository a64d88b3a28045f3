#include "outer/data/sampler.h"

#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

struct bpt_sampler {
    bpt_order rule;
    bpt_sampler_state state;
    uint32_t *order;   /* of the pass or epoch that is drawn; room for the whole split */
    uint32_t *scratch; /* shape [bpt_order_scratch()] of that */

    const bpt_partition *partition; /* local stream, else NULL */
    uint32_t rank;
    uint32_t admitted; /* rounds that the next pass may cover */
    uint64_t held;     /* samples of the current pass, 0 if it has not begun */

    uint64_t n_samples, batch, offset; /* global stream */
    uint64_t drawn;                    /* epoch + 1 of order, 0 before the first */
};

static bpt_status create(bpt_order rule, uint64_t n_samples, bpt_sampler **sampler) {
    bpt_sampler *s = NULL;
    BPT_TRY(BPT_NEW("sampler", 1, &s));
    bpt_status status = BPT_NEW("sampler's order", n_samples, &s->order);
    if (status == BPT_OK)
        status = BPT_NEW("room for blocks", bpt_order_scratch(&rule, n_samples), &s->scratch);
    if (status != BPT_OK) {
        bpt_sampler_free(s);
        return status;
    }
    s->rule = rule;
    s->n_samples = n_samples;
    *sampler = s;
    return BPT_OK;
}

bpt_status bpt_sampler_create_local(bpt_order order, uint32_t rank, const bpt_partition *partition,
                                    bpt_sampler **sampler) {
    bpt_sampler *s = NULL;
    BPT_TRY(create(order, bpt_partition_n_samples(partition), &s));
    s->rank = rank;
    s->admitted = UINT32_MAX;
    s->partition = partition;
    *sampler = s;
    return BPT_OK;
}

bpt_status bpt_sampler_create_global(bpt_order order, uint64_t n_samples, uint64_t batch,
                                     uint64_t offset, bpt_sampler **sampler) {
    if (n_samples < 1 || n_samples > UINT32_MAX || batch < 1 || offset > batch)
        return bpt_fail(BPT_EUSAGE, "no stream of batches of %llu (from %llu) out of %llu samples",
                        (unsigned long long)batch, (unsigned long long)offset,
                        (unsigned long long)n_samples);
    bpt_sampler *s = NULL;
    BPT_TRY(create(order, n_samples, &s));
    s->batch = batch;
    s->offset = offset;
    *sampler = s;
    return BPT_OK;
}

size_t bpt_sampler_bytes(bpt_order order, uint64_t n_samples) {
    return (n_samples + bpt_order_scratch(&order, n_samples)) * sizeof(uint32_t);
}

void bpt_sampler_free(bpt_sampler *s) {
    if (!s) return;
    bpt_free(s->scratch);
    bpt_free(s->order);
    bpt_free(s);
}

/* Hands out n entries of the order from at on.
 * @param passes NULL allowed; goes on like indices */
static void take(const bpt_sampler *s, uint64_t at, size_t n, uint64_t pass, uint32_t **indices,
                 uint32_t **passes) {
    memcpy(*indices, s->order + at, n * sizeof **indices);
    *indices += n;
    if (!*passes) return;
    for (size_t i = 0; i < n; i++) *(*passes)++ = (uint32_t)pass;
}

/* ---- local ---- */

void bpt_sampler_admit(bpt_sampler *s, uint32_t rounds) {
    s->admitted = rounds;
}

static uint32_t rounds_at_hand(const bpt_sampler *s) {
    const uint32_t known = bpt_partition_rounds(s->partition);
    return known < s->admitted ? known : s->admitted;
}

/* Draws the order of the pass that the state names. */
static bpt_status draw_pass(bpt_sampler *s) {
    s->held = bpt_partition_held(s->partition, s->rank, s->state.rounds);
    const uint64_t id = (uint64_t)s->rank << 32 | (s->state.pass & UINT32_MAX);
    BPT_TRY(bpt_partition_samples(s->partition, s->rank, s->state.rounds, s->order));
    bpt_order_pass(&s->rule, id, s->order, (uint32_t)s->held, s->scratch);
    return BPT_OK;
}

static bpt_status next_local(bpt_sampler *s, size_t n, uint32_t *indices, uint32_t *passes) {
    while (n > 0) {
        if (s->state.rounds == 0) {
            const uint32_t rounds = s->state.next_rounds ? s->state.next_rounds : rounds_at_hand(s);
            if (bpt_partition_held(s->partition, s->rank, rounds) == 0)
                return bpt_fail(BPT_EUSAGE, "rank %u holds no samples to train on", s->rank);
            s->state.rounds = rounds;
            s->state.next_rounds = 0;
            BPT_TRY(draw_pass(s));
        }
        const uint64_t left = s->held - s->state.position;
        const size_t part = n < left ? n : (size_t)left;
        take(s, s->state.position, part, s->state.pass, &indices, &passes);
        n -= part;
        s->state.position += part;
        if (s->state.position == s->held)
            s->state = (bpt_sampler_state){.pass = s->state.pass + 1,
                                           .covered = s->state.rounds,
                                           .next_rounds = s->state.next_rounds};
    }
    return BPT_OK;
}

/* ---- global ---- */

static void draw_epoch(bpt_sampler *s, uint64_t epoch) {
    for (uint32_t i = 0; i < s->n_samples; i++) s->order[i] = i;
    bpt_order_pass(&s->rule, epoch, s->order, (uint32_t)s->n_samples, s->scratch);
    s->drawn = epoch + 1;
}

static bpt_status next_global(bpt_sampler *s, size_t n, uint32_t *indices, uint32_t *passes) {
    if (n > s->batch - s->offset)
        return bpt_fail(BPT_EUSAGE, "%zu samples from %llu leave a batch of %llu", n,
                        (unsigned long long)s->offset, (unsigned long long)s->batch);
    uint64_t position = s->state.position + s->offset;
    while (n > 0) {
        const uint64_t epoch = position / s->n_samples, at = position % s->n_samples;
        if (s->drawn != epoch + 1) draw_epoch(s, epoch);
        const uint64_t left = s->n_samples - at;
        const size_t part = n < left ? n : (size_t)left;
        take(s, at, part, epoch, &indices, &passes);
        n -= part;
        position += part;
    }
    s->state.position += s->batch;
    return BPT_OK;
}

bpt_status bpt_sampler_next(bpt_sampler *s, size_t n, uint32_t *indices, uint32_t *passes) {
    return s->partition ? next_local(s, n, indices, passes) : next_global(s, n, indices, passes);
}

bpt_sampler_state bpt_sampler_state_get(const bpt_sampler *s) {
    return s->state;
}

bpt_status bpt_sampler_state_set(bpt_sampler *s, const bpt_sampler_state *state) {
    bool valid = true;
    if (s->partition) {
        valid = state->rounds <= bpt_partition_rounds(s->partition) &&
                state->covered <= bpt_partition_rounds(s->partition) &&
                state->next_rounds <= bpt_partition_rounds(s->partition);
        /* A pass that has begun is not at its end: the next would have been prepared. */
        if (valid && state->rounds > 0)
            valid = state->position < bpt_partition_held(s->partition, s->rank, state->rounds);
        else
            valid = valid && state->position == 0;
    } else {
        valid = state->pass == 0 && state->rounds == 0 && state->covered == 0 &&
                state->next_rounds == 0;
    }
    if (!valid)
        return bpt_fail(BPT_EDATA,
                        "a saved position in the data (pass %llu, sample %llu) does not "
                        "fit the data of rank %u",
                        (unsigned long long)state->pass, (unsigned long long)state->position,
                        s->rank);
    s->state = *state;
    return s->partition && s->state.rounds > 0 ? draw_pass(s) : BPT_OK;
}
