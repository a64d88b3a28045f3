#include "outer/border.h"

#include "base/memory.h"
#include "outer/comm_thread.h"
#include "outer/transfers.h"

#include <assert.h>
#include <stdbool.h>

enum { TAG_VALUES = BPT__TAG_BORDER, TAG_LABELS, TAG_GRADIENTS };

/* One side's messages of one direction, in one step. */
typedef struct flow {
    bpt__job job; /* first: the MPI thread is given this */
    bpt_border *border;
    bpt_status (*post)(bpt_border *b, bpt__transfers *t);
    bpt__transfers *transfers; /* one group */
    bool posted;               /* MPI thread */
    bool going;                /* training thread: asked for, not yet joined */
} flow;

struct bpt_border {
    bpt_comm *comm;
    uint32_t rank, m, host;
    size_t n;                  /* values of a sample */
    uint64_t *first;           /* [m + 1] */
    uint64_t begin, end;       /* samples that are here: this rank's; on the host all */
    float *values, *gradients; /* [end - begin][n] */
    int32_t *labels;           /* [end - begin] */
    flow there, back;          /* values and labels; gradients */
    bpt_border_stats stats;
};

static uint64_t samples_of(const bpt_border *b, uint32_t rank) {
    return b->first[rank + 1] - b->first[rank];
}

static size_t values_bytes(const bpt_border *b, uint32_t rank) {
    return samples_of(b, rank) * b->n * sizeof(float);
}

static size_t labels_bytes(const bpt_border *b, uint32_t rank) {
    return samples_of(b, rank) * sizeof(int32_t);
}

/* @return the number in this rank's memory of the first sample of @p rank */
static uint64_t place_of(const bpt_border *b, uint32_t rank) {
    return b->first[rank] - b->begin;
}

/* ---- MPI thread ---- */

static bpt_status post_there(bpt_border *b, bpt__transfers *t) {
    if (b->rank != b->host) {
        BPT_TRY(
            bpt__transfers_send(t, 0, b->values, values_bytes(b, b->rank), b->host, TAG_VALUES));
        return bpt__transfers_send(t, 0, b->labels, labels_bytes(b, b->rank), b->host, TAG_LABELS);
    }
    for (uint32_t r = 0; r < b->m; r++) {
        if (r == b->host) continue;
        BPT_TRY(bpt__transfers_recv(t, 0, b->values + place_of(b, r) * b->n, values_bytes(b, r), r,
                                    TAG_VALUES));
        BPT_TRY(bpt__transfers_recv(t, 0, b->labels + place_of(b, r), labels_bytes(b, r), r,
                                    TAG_LABELS));
    }
    return BPT_OK;
}

static bpt_status post_back(bpt_border *b, bpt__transfers *t) {
    if (b->rank != b->host)
        return bpt__transfers_recv(t, 0, b->gradients, values_bytes(b, b->rank), b->host,
                                   TAG_GRADIENTS);
    for (uint32_t r = 0; r < b->m; r++)
        if (r != b->host)
            BPT_TRY(bpt__transfers_send(t, 0, b->gradients + place_of(b, r) * b->n,
                                        values_bytes(b, r), r, TAG_GRADIENTS));
    return BPT_OK;
}

static bpt_status poll(bpt__job *job, bool *moved, bool *done) {
    flow *f = (flow *)job;
    uint32_t complete, n_complete;
    if (!f->posted) {
        BPT_TRY(f->post(f->border, f->transfers));
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
    bpt__comm_submit(f->border->comm, &f->job);
}

static bpt_status join(flow *f) {
    if (!f->going) return BPT_OK;
    f->going = false;
    return bpt__comm_join(f->border->comm, &f->job);
}

float *bpt_border_values(bpt_border *b) {
    return b->values + place_of(b, b->rank) * b->n;
}

int32_t *bpt_border_labels(bpt_border *b) {
    return b->labels + place_of(b, b->rank);
}

bpt_status bpt_border_send(bpt_border *b) {
    BPT_TRY(join(&b->there)); /* elsewhere than on the host: long done, the answer is here */
    begin(&b->there);
    if (b->rank != b->host) begin(&b->back);
    return BPT_OK;
}

bpt_status bpt_border_collect(bpt_border *b, bpt_border_batch *batch) {
    assert(b->rank == b->host);
    BPT_TRY(join(&b->there));
    BPT_TRY(join(&b->back)); /* of the step before: its gradients are written over now */
    *batch = (bpt_border_batch){b->values, b->labels, b->gradients, b->first[b->m]};
    return BPT_OK;
}

bpt_status bpt_border_return(bpt_border *b) {
    assert(b->rank == b->host && !b->back.going && "what is sent back was collected");
    begin(&b->back);
    return BPT_OK;
}

static void count(bpt_border *b) {
    const uint64_t here = b->end - b->begin, own = samples_of(b, b->rank);
    const bool hosts = b->rank == b->host;
    const uint64_t samples = hosts ? here - own : own; /* that crossed */
    const uint64_t there = samples * (b->n * sizeof(float) + sizeof(int32_t));
    const uint64_t back = samples * b->n * sizeof(float);
    b->stats.steps++;
    b->stats.sent_bytes += hosts ? back : there;
    b->stats.received_bytes += hosts ? there : back;
}

bpt_status bpt_border_wait(bpt_border *b, const float **gradients) {
    if (b->rank != b->host) BPT_TRY(join(&b->back));
    *gradients = b->gradients + place_of(b, b->rank) * b->n;
    count(b);
    return BPT_OK;
}

bpt_border_stats bpt_border_stats_of(const bpt_border *b) {
    return b->stats;
}

/* ---- life ---- */

size_t bpt_border_bytes(size_t n_values, uint64_t n_samples) {
    size_t floats;
    if (bpt_size_multiply(n_values, n_samples, &floats) != BPT_OK) return SIZE_MAX;
    const size_t bytes = floats > SIZE_MAX / sizeof(float) ? SIZE_MAX : floats * sizeof(float);
    return bpt_size_add(bpt_size_add(bytes, bytes), (size_t)n_samples * sizeof(int32_t));
}

/* @return requests of one direction at once */
static size_t room(const bpt_border *b) {
    size_t sum = 0;
    for (uint32_t r = 0; r < b->m; r++)
        if (b->rank == b->host || b->rank == r)
            sum += bpt__transfers_chunks(values_bytes(b, r)) +
                   bpt__transfers_chunks(labels_bytes(b, r));
    return sum;
}

static bpt_status reserve(bpt_border *b, const bpt_border_options *o) {
    BPT_TRY(BPT_NEW("parts of a step", b->m + 1, &b->first));
    for (uint32_t r = 0; r <= b->m; r++) b->first[r] = o->first[r];
    b->begin = b->rank == b->host ? 0 : b->first[b->rank];
    b->end = b->rank == b->host ? b->first[b->m] : b->first[b->rank + 1];
    size_t n;
    BPT_TRY(bpt_size_multiply(b->end - b->begin, b->n, &n));
    BPT_TRY(BPT_NEW("values at the border", n, &b->values));
    BPT_TRY(BPT_NEW("gradients at the border", n, &b->gradients));
    BPT_TRY(BPT_NEW("labels at the border", b->end - b->begin, &b->labels));
    const size_t requests = room(b);
    const MPI_Comm messages = bpt__comm_messages(b->comm);
    BPT_TRY(bpt__transfers_create(messages, &requests, 1, &b->there.transfers));
    return bpt__transfers_create(messages, &requests, 1, &b->back.transfers);
}

static void release(bpt_border *b) {
    if (!b) return;
    bpt__transfers_free(b->there.transfers);
    bpt__transfers_free(b->back.transfers);
    bpt_free(b->labels);
    bpt_free(b->gradients);
    bpt_free(b->values);
    bpt_free(b->first);
    bpt_free(b);
}

bpt_status bpt_border_create(bpt_comm *comm, const bpt_border_options *o, bpt_border **border) {
    bpt_border *b = NULL;
    bpt_status status = BPT_NEW("border", 1, &b);
    if (status == BPT_OK) {
        *b = (bpt_border){
            .comm = comm,
            .rank = bpt_comm_rank(comm),
            .m = bpt_comm_size(comm),
            .host = o->host,
            .n = o->n_values,
            .there = {.job.poll = poll, .border = b, .post = post_there},
            .back = {.job.poll = poll, .border = b, .post = post_back},
        };
        status = reserve(b, o);
    }
    status = bpt_comm_agree(comm, status);
    if (status == BPT_OK)
        *border = b;
    else
        release(b);
    return status;
}

bpt_status bpt_border_destroy(bpt_border *b) {
    if (!b) return BPT_OK;
    const bpt_status there = join(&b->there), back = join(&b->back);
    release(b);
    return there != BPT_OK ? there : back;
}
