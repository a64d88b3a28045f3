#include "outer/crossing.h"

#include "base/memory.h"
#include "outer/comm_thread.h"
#include "outer/transfers.h"

#include <assert.h>
#include <stdbool.h>

enum { TAG_VALUES = BPT__TAG_CROSSING, TAG_LABELS, TAG_GRADIENTS };

/* One side's messages of one direction, in one step. */
typedef struct flow {
    bpt__job job; /* first: the MPI thread is given this */
    bpt_crossing *owner;
    bpt_status (*post)(bpt_crossing *c, bpt__transfers *t);
    bpt__transfers *transfers; /* one group */
    bool posted;               /* MPI thread */
    bool going;                /* training thread: asked for, not yet joined */
} flow;

struct bpt_crossing {
    bpt_comm *comm;
    uint32_t rank, m, host;
    size_t n;                  /* values of a sample */
    uint64_t *first;           /* [m + 1] */
    uint64_t begin, end;       /* samples that are here: this rank's; on the host all */
    float *values, *gradients; /* [end - begin][n] */
    int32_t *labels;           /* [end - begin] */
    flow there, back;          /* values and labels; gradients */
    bpt_crossing_stats stats;
};

static uint64_t samples_of(const bpt_crossing *c, uint32_t rank) {
    return c->first[rank + 1] - c->first[rank];
}

static size_t values_bytes(const bpt_crossing *c, uint32_t rank) {
    return samples_of(c, rank) * c->n * sizeof(float);
}

static size_t labels_bytes(const bpt_crossing *c, uint32_t rank) {
    return samples_of(c, rank) * sizeof(int32_t);
}

/* @return the number in this rank's memory of the first sample of @p rank */
static uint64_t place_of(const bpt_crossing *c, uint32_t rank) {
    return c->first[rank] - c->begin;
}

/* ---- MPI thread ---- */

static bpt_status post_there(bpt_crossing *c, bpt__transfers *t) {
    if (c->rank != c->host) {
        BPT_TRY(
            bpt__transfers_send(t, 0, c->values, values_bytes(c, c->rank), c->host, TAG_VALUES));
        return bpt__transfers_send(t, 0, c->labels, labels_bytes(c, c->rank), c->host, TAG_LABELS);
    }
    for (uint32_t r = 0; r < c->m; r++) {
        if (r == c->host) continue;
        BPT_TRY(bpt__transfers_recv(t, 0, c->values + place_of(c, r) * c->n, values_bytes(c, r), r,
                                    TAG_VALUES));
        BPT_TRY(bpt__transfers_recv(t, 0, c->labels + place_of(c, r), labels_bytes(c, r), r,
                                    TAG_LABELS));
    }
    return BPT_OK;
}

static bpt_status post_back(bpt_crossing *c, bpt__transfers *t) {
    if (c->rank != c->host)
        return bpt__transfers_recv(t, 0, c->gradients, values_bytes(c, c->rank), c->host,
                                   TAG_GRADIENTS);
    for (uint32_t r = 0; r < c->m; r++)
        if (r != c->host)
            BPT_TRY(bpt__transfers_send(t, 0, c->gradients + place_of(c, r) * c->n,
                                        values_bytes(c, r), r, TAG_GRADIENTS));
    return BPT_OK;
}

static bpt_status poll(bpt__job *job, bool *moved, bool *done) {
    flow *f = (flow *)job;
    uint32_t complete, n_complete;
    if (!f->posted) {
        BPT_TRY(f->post(f->owner, f->transfers));
        f->posted = *moved = true;
    }
    BPT_TRY(bpt__transfers_poll(f->transfers, moved, &complete, &n_complete));
    *done = bpt__transfers_pending(f->transfers, 0) == 0;
    return BPT_OK;
}

/* ---- training thread ---- */

static void begin(flow *f) {
    f->posted = false;
    f->going = true;
    bpt__comm_submit(f->owner->comm, &f->job);
}

static bpt_status join(flow *f) {
    if (!f->going) return BPT_OK;
    f->going = false;
    return bpt__comm_join(f->owner->comm, &f->job);
}

float *bpt_crossing_values(bpt_crossing *c) {
    return c->values + place_of(c, c->rank) * c->n;
}

int32_t *bpt_crossing_labels(bpt_crossing *c) {
    return c->labels + place_of(c, c->rank);
}

bpt_status bpt_crossing_send(bpt_crossing *c) {
    BPT_TRY(join(&c->there)); /* elsewhere than on the host: long done, the answer is here */
    begin(&c->there);
    if (c->rank != c->host) begin(&c->back);
    return BPT_OK;
}

bpt_status bpt_crossing_collect(bpt_crossing *c, bpt_crossing_batch *batch) {
    assert(c->rank == c->host);
    BPT_TRY(join(&c->there));
    BPT_TRY(join(&c->back)); /* of the step before: its gradients are written over now */
    *batch = (bpt_crossing_batch){c->values, c->labels, c->gradients, c->first[c->m]};
    return BPT_OK;
}

bpt_status bpt_crossing_return(bpt_crossing *c) {
    assert(c->rank == c->host && !c->back.going && "what is sent back was collected");
    begin(&c->back);
    return BPT_OK;
}

static void count(bpt_crossing *c) {
    const uint64_t here = c->end - c->begin, own = samples_of(c, c->rank);
    const bool hosts = c->rank == c->host;
    const uint64_t samples = hosts ? here - own : own; /* that crossed */
    const uint64_t there = samples * (c->n * sizeof(float) + sizeof(int32_t));
    const uint64_t back = samples * c->n * sizeof(float);
    c->stats.steps++;
    c->stats.sent_bytes += hosts ? back : there;
    c->stats.received_bytes += hosts ? there : back;
}

bpt_status bpt_crossing_wait(bpt_crossing *c, const float **gradients) {
    if (c->rank != c->host) BPT_TRY(join(&c->back));
    *gradients = c->gradients + place_of(c, c->rank) * c->n;
    count(c);
    return BPT_OK;
}

bpt_crossing_stats bpt_crossing_stats_of(const bpt_crossing *c) {
    return c->stats;
}

/* ---- life ---- */

size_t bpt_crossing_bytes(size_t n_values, uint64_t n_samples) {
    size_t floats;
    if (bpt_size_multiply(n_values, n_samples, &floats) != BPT_OK) return SIZE_MAX;
    const size_t bytes = floats > SIZE_MAX / sizeof(float) ? SIZE_MAX : floats * sizeof(float);
    return bpt_size_add(bpt_size_add(bytes, bytes), (size_t)n_samples * sizeof(int32_t));
}

/* @return requests of one direction at once */
static size_t room(const bpt_crossing *c) {
    size_t sum = 0;
    for (uint32_t r = 0; r < c->m; r++)
        if (c->rank == c->host || c->rank == r)
            sum += bpt__transfers_chunks(values_bytes(c, r)) +
                   bpt__transfers_chunks(labels_bytes(c, r));
    return sum;
}

static bpt_status reserve(bpt_crossing *c, const bpt_crossing_options *o) {
    BPT_TRY(BPT_NEW("parts of a step", c->m + 1, &c->first));
    for (uint32_t r = 0; r <= c->m; r++) c->first[r] = o->first[r];
    c->begin = c->rank == c->host ? 0 : c->first[c->rank];
    c->end = c->rank == c->host ? c->first[c->m] : c->first[c->rank + 1];
    size_t n;
    BPT_TRY(bpt_size_multiply(c->end - c->begin, c->n, &n));
    BPT_TRY(BPT_NEW("values at the border", n, &c->values));
    BPT_TRY(BPT_NEW("gradients at the border", n, &c->gradients));
    BPT_TRY(BPT_NEW("labels at the border", c->end - c->begin, &c->labels));
    const size_t requests = room(c);
    const MPI_Comm messages = bpt__comm_messages(c->comm);
    BPT_TRY(bpt__transfers_create(messages, &requests, 1, &c->there.transfers));
    return bpt__transfers_create(messages, &requests, 1, &c->back.transfers);
}

static void release(bpt_crossing *c) {
    if (!c) return;
    bpt__transfers_free(c->there.transfers);
    bpt__transfers_free(c->back.transfers);
    bpt_free(c->labels);
    bpt_free(c->gradients);
    bpt_free(c->values);
    bpt_free(c->first);
    bpt_free(c);
}

bpt_status bpt_crossing_create(bpt_comm *comm, const bpt_crossing_options *o,
                               bpt_crossing **crossing) {
    bpt_crossing *c = NULL;
    bpt_status status = BPT_NEW("crossing", 1, &c);
    if (status == BPT_OK) {
        *c = (bpt_crossing){
            .comm = comm,
            .rank = bpt_comm_rank(comm),
            .m = bpt_comm_size(comm),
            .host = o->host,
            .n = o->n_values,
            .there = {.job.poll = poll, .owner = c, .post = post_there},
            .back = {.job.poll = poll, .owner = c, .post = post_back},
        };
        status = reserve(c, o);
    }
    status = bpt_comm_agree(comm, status);
    if (status == BPT_OK)
        *crossing = c;
    else
        release(c);
    return status;
}

bpt_status bpt_crossing_destroy(bpt_crossing *c) {
    if (!c) return BPT_OK;
    const bpt_status there = join(&c->there), back = join(&c->back);
    release(c);
    return there != BPT_OK ? there : back;
}
