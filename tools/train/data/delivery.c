#include "tools/train/data/delivery.h"

#include "base/memory.h"
#include "storage/dataset/parcel.h"

#include <math.h>

/* Large against what a message costs, small against memory; and so are the names of the samples. */
enum { PARCEL_BYTES = 2 << 20, PARCEL_ITEMS = 4096 };

struct bpt_delivery {
    bpt_delivery_options o;
    bpt_scatter *scatter;
    uint64_t first, test; /* items kept when all for the first step, and the test part, are here */
    uint64_t found;

    /* Not on rank 0. */
    uint8_t *asked;    /* shape [train->count]: 1 if asked for, or here */
    uint32_t *missing; /* scratch list, shape [train->count, and at least a batch] */

    /* Rounds of the data: those that are here, and those that have been asked for, all of which are
     * here when as many items are kept. */
    uint32_t here, coming;
    uint64_t coming_at;

    bpt_sampler *ahead; /* of one order for all: a stream like that of the feed, but further on */
    uint64_t n_ahead;   /* batches that it has drawn and the feed has not, about */
    uint64_t n_left;    /* that it will draw */
    uint64_t window;    /* of n_ahead: filled up when half of it is used */
};

/* ---- parcels ---- */

/* The split that items are of: what a message says, maybe of a rank with another dataset. */
static bpt_status find_split(const bpt_delivery *d, const bpt_scatter_items *items,
                             const bpt_split **split) {
    const bpt_dataset_info *info = bpt_dataset_describe(d->o.dataset);
    if (items->kind >= info->n_splits)
        return bpt_fail(BPT_ECOMM,
                        "samples of split %u (from 0) are asked for, and the dataset has %zu",
                        items->kind, info->n_splits);
    *split = &info->splits[items->kind];
    return BPT_OK;
}

static bpt_status make(void *arg, const bpt_scatter_items *items, void *parcel) {
    const bpt_delivery *d = arg;
    const bpt_split *split;
    BPT_TRY(find_split(d, items, &split));
    return bpt_parcel_make(d->o.dataset, split, d->o.identity, items->number, items->n, parcel);
}

static bpt_status keep(void *arg, const bpt_scatter_items *items, const void *parcel) {
    const bpt_delivery *d = arg;
    const bpt_split *split;
    BPT_TRY(find_split(d, items, &split));
    return bpt_scratch_add(d->o.scratch, split, items->number, items->n, parcel);
}

/* All but what is for one rank only. */
static bpt_scatter_options options_for(size_t record_bytes, uint64_t n_items) {
    const size_t item_bytes = bpt_parcel_bytes(record_bytes, 1) - bpt_parcel_bytes(record_bytes, 0);
    const size_t n = PARCEL_BYTES / item_bytes;
    return (bpt_scatter_options){
        .make = make,
        .keep = keep,
        .parcel_bytes = bpt_parcel_bytes(record_bytes, 0),
        .item_bytes = item_bytes,
        .items_per_parcel = n == 0             ? 1
                            : n < PARCEL_ITEMS ? (uint32_t)n
                                               : PARCEL_ITEMS,
        .n_items = n_items,
        .waits_at = "the arrival of samples",
    };
}

size_t bpt_delivery_bytes(uint64_t n_train, uint64_t n_test, size_t record_bytes, uint32_t n_ranks,
                          uint32_t rank) {
    const bpt_scatter_options o = options_for(record_bytes, n_train + n_test);
    const size_t own = rank == 0 ? 0 : n_train * (sizeof(uint8_t) + sizeof(uint32_t));
    return bpt_size_add(bpt_scatter_bytes(&o, n_ranks, rank), own);
}

bpt_status bpt_delivery_check(const bpt_dataset *dataset, const char *path) {
    if (!bpt_dataset_describe(dataset)->encoded) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "%s holds encoded images, which --data-mode scatter does not give out", path);
    bpt_hint("copy the dataset to each machine, or ingest it without --encoded");
    return status;
}

/* ---- asking ---- */

/* @return whether record @p i is still to be asked for; then it counts as asked for */
static bool is_missing(bpt_delivery *d, const bpt_split *split, uint32_t i) {
    if (split != d->o.train) return !bpt_scratch_has(d->o.scratch, split, i);
    if (d->asked[i]) return false;
    d->asked[i] = 1;
    return true;
}

/* @param list overwritten, shape [n] */
static void want(bpt_delivery *d, const bpt_split *split, uint32_t *list, size_t n) {
    size_t n_missing = 0;
    for (size_t i = 0; i < n; i++)
        if (is_missing(d, split, list[i])) list[n_missing++] = list[i];
    bpt_scatter_want(d->scatter, (uint32_t)split->number, list, n_missing);
}

static bpt_status want_rounds(bpt_delivery *d, uint32_t rounds) {
    const uint64_t n = bpt_partition_held(d->o.shares, d->o.rank, rounds);
    BPT_TRY(bpt_partition_samples(d->o.shares, d->o.rank, rounds, d->missing));
    want(d, d->o.train, d->missing, n);
    return BPT_OK;
}

/* In pieces of the list's size: the test split may be the larger one. */
static void want_test(bpt_delivery *d) {
    const bpt_record_range part = d->o.test_part;
    for (uint32_t done = 0; done < part.count;) {
        const uint32_t left = part.count - done;
        const uint32_t n = left < d->o.train->count ? left : d->o.train->count;
        for (uint32_t i = 0; i < n; i++) d->missing[i] = part.first + done + i;
        want(d, d->o.test, d->missing, n);
        done += n;
    }
    d->test = bpt_scatter_wanted(d->scatter);
}

/* Draws on until the stream is as far ahead as it should be. */
static bpt_status want_ahead(bpt_delivery *d) {
    for (; d->n_ahead < d->window && d->n_left > 0; d->n_ahead++, d->n_left--) {
        BPT_TRY(bpt_sampler_next(d->ahead, d->o.batch, d->missing, NULL));
        want(d, d->o.train, d->missing, d->o.batch);
    }
    return BPT_OK;
}

/* ---- what comes first ---- */

/* The passes over the data that are under way, or begin, cover at most so many rounds. */
static uint32_t rounds_to_begin(const bpt_sampler_state *s) {
    uint32_t rounds = s->rounds > s->next_rounds ? s->rounds : s->next_rounds;
    if (rounds == 0) rounds = s->covered;
    return rounds ? rounds : 1;
}

/* Where the next pass is known to cover more rounds than the one under way, these may have taken
 * samples from this rank that the one under way still needs. */
static bpt_status begin_rounds(bpt_delivery *d) {
    const uint32_t known = bpt_partition_rounds(d->o.shares), under_way = d->o.start.rounds;
    d->here = rounds_to_begin(&d->o.start);
    if (under_way > 0 && under_way < d->here) BPT_TRY(want_rounds(d, under_way));
    BPT_TRY(want_rounds(d, d->here));
    d->first = bpt_scatter_wanted(d->scatter);
    want_test(d);
    if (known == d->here) return BPT_OK;
    BPT_TRY(want_rounds(d, known));
    d->coming = known;
    d->coming_at = bpt_scatter_wanted(d->scatter);
    return BPT_OK;
}

static bpt_status begin_order(bpt_delivery *d, uint32_t items_per_parcel) {
    const uint64_t parcels = 2 * (uint64_t)items_per_parcel / d->o.batch;
    d->window = 2 * (uint64_t)d->o.prefetch + (parcels > 8 ? parcels : 8);
    d->n_left = d->o.steps + d->o.prefetch; /* the feed draws as many that are not trained on */
    BPT_TRY(want_ahead(d));
    d->first = bpt_scatter_wanted(d->scatter);
    want_test(d);
    return BPT_OK;
}

static uint64_t count_found(bpt_delivery *d) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < d->o.train->count; i++)
        n += d->asked[i] = bpt_scratch_has(d->o.scratch, d->o.train, i);
    for (uint32_t i = 0; d->o.test != d->o.train && i < d->o.test->count; i++)
        n += bpt_scratch_has(d->o.scratch, d->o.test, i);
    return n;
}

static bpt_status allocate(bpt_delivery *d) {
    const bpt_delivery_options *o = &d->o;
    if (!o->scratch) return BPT_OK;
    const size_t n = o->train->count > o->batch ? o->train->count : o->batch;
    BPT_TRY(BPT_NEW("samples asked for", o->train->count, &d->asked));
    BPT_TRY(BPT_NEW("missing samples", n, &d->missing));
    d->found = count_found(d);
    if (o->shares) return BPT_OK;
    BPT_TRY(bpt_sampler_create_global(o->order, o->train->count, o->batch_all, o->first_sample,
                                      &d->ahead));
    return bpt_sampler_state_set(d->ahead, &o->start);
}

/* ---- life ---- */

static void release(bpt_delivery *d) {
    if (!d) return;
    bpt_sampler_free(d->ahead);
    bpt_free(d->missing);
    bpt_free(d->asked);
    bpt_free(d);
}

void bpt_delivery_close(bpt_delivery *d) {
    if (!d) return;
    (void)bpt_scatter_destroy(d->scatter); /* MPI has failed where it matters more, if it has */
    release(d);
}

static bpt_status create(const bpt_delivery_options *options, bpt_delivery **out) {
    bpt_delivery *d = NULL;
    BPT_TRY(BPT_NEW("delivery", 1, &d));
    d->o = *options;
    const bpt_status status = allocate(d);
    if (status == BPT_OK)
        *out = d;
    else
        release(d);
    return status;
}

bpt_status bpt_delivery_open(bpt_comm *comm, const bpt_delivery_options *options,
                             bpt_delivery **out) {
    const uint64_t n_wanted = (uint64_t)options->train->count + options->test_part.count;
    const uint64_t n_items = options->scratch ? n_wanted : 0;
    bpt_scatter_options scatter = options_for(options->record_bytes, n_items);
    bpt_delivery *d = NULL;
    bpt_status status = bpt_comm_agree(comm, create(options, &d));
    if (status == BPT_OK) {
        scatter.arg = d;
        status = bpt_scatter_create(comm, &scatter, &d->scatter);
    }
    if (status != BPT_OK) {
        release(d);
        return status;
    }
    if (options->scratch)
        status = options->shares ? begin_rounds(d) : begin_order(d, scatter.items_per_parcel);
    status = bpt_comm_agree(comm, status);
    if (status == BPT_OK)
        *out = d;
    else
        bpt_delivery_close(d);
    return status;
}

bpt_status bpt_delivery_await_first(bpt_delivery *d, double at_most_s, uint64_t *n_kept,
                                    bool *here) {
    const uint64_t next = bpt_scatter_kept(d->scatter) + 1;
    const bool any = isinf(at_most_s) && next < d->first;
    BPT_TRY(bpt_scatter_wait(d->scatter, any ? next : d->first, at_most_s));
    *n_kept = bpt_scatter_kept(d->scatter);
    *here = *n_kept >= d->first;
    return BPT_OK;
}

bpt_status bpt_delivery_await_test(bpt_delivery *d) {
    return bpt_scatter_wait(d->scatter, d->test, INFINITY);
}

uint64_t bpt_delivery_found(const bpt_delivery *d) {
    return d->found;
}

bpt_status bpt_delivery_settle(bpt_delivery *d) {
    return bpt_scatter_settle(d->scatter);
}

void bpt_delivery_stats(bpt_delivery *d, bpt_scatter_stats *stats) {
    bpt_scatter_stats_get(d->scatter, stats);
}

/* ---- while training ---- */

/* Waiting for it would have no end. */
static bpt_status fail_unasked(uint32_t sample) {
    return bpt_fail(BPT_ECOMM,
                    "sample %u is to be trained on and is not here, and all that was asked for is",
                    sample);
}

/* Counts before it looks: what comes in between is not missed. */
static bpt_status look(void *arg, const uint32_t *indices, uint32_t n, bool wait, bool *here) {
    const bpt_delivery *d = arg;
    for (;;) {
        const uint64_t n_kept = bpt_scatter_kept(d->scatter);
        uint32_t i = 0;
        while (i < n && bpt_scratch_has(d->o.scratch, d->o.train, indices[i])) i++;
        *here = i == n;
        if (*here || !wait) return BPT_OK;
        if (n_kept == bpt_scatter_wanted(d->scatter)) return fail_unasked(indices[i]);
        BPT_TRY(bpt_scatter_wait(d->scatter, n_kept + 1, INFINITY));
    }
}

void bpt_delivery_attach(bpt_delivery *d, bpt_feed *feed) {
    if (!d->o.scratch) return;
    bpt_feed_set_gate(feed, &(bpt_feed_gate){.look = look, .arg = d});
    if (d->o.shares) bpt_feed_admit(feed, d->here);
}

static bpt_status advance_rounds(bpt_delivery *d, bpt_feed *feed) {
    const uint32_t known = bpt_partition_rounds(d->o.shares);
    const uint32_t asked = d->coming ? d->coming : d->here;
    if (known > asked) {
        BPT_TRY(want_rounds(d, known));
        d->coming = known;
        d->coming_at = bpt_scatter_wanted(d->scatter);
    }
    if (!d->coming || bpt_scatter_kept(d->scatter) < d->coming_at) return BPT_OK;
    d->here = d->coming;
    d->coming = 0;
    bpt_feed_admit(feed, d->here);
    return BPT_OK;
}

bpt_status bpt_delivery_advance(bpt_delivery *d, bpt_feed *feed) {
    BPT_TRY(bpt_scatter_check(d->scatter));
    if (!d->o.scratch) return BPT_OK;
    if (d->o.shares) return advance_rounds(d, feed);
    if (d->n_ahead > 0) d->n_ahead--;
    return d->n_ahead <= d->window / 2 ? want_ahead(d) : BPT_OK;
}
