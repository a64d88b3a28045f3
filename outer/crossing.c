#include "outer/crossing.h"

#include "base/memory.h"
#include "outer/comm_thread.h"
#include "outer/transfers.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { TAG_VALUES = BPT__TAG_CROSSING, TAG_LABELS, TAG_GRADIENTS, TAG_NOTE };

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
    bpt_crossing_options options; /* .first is our own */
    uint32_t rank, m;
    uint64_t *first;       /* [m + 1] */
    char *values;          /* on the host: of all samples */
    int32_t *all_labels;   /* likewise */
    const int32_t *labels; /* of this rank's, of the present step */
    bpt_crossing_note note;
    flow there, back; /* values and labels; gradients and note */
    bpt_crossing_stats stats;
};

static bool hosts(const bpt_crossing *c) {
    return c->rank == c->options.host;
}

static uint64_t samples_of(const bpt_crossing *c, uint32_t rank) {
    return c->first[rank + 1] - c->first[rank];
}

static size_t values_bytes(const bpt_crossing *c, uint32_t rank) {
    return samples_of(c, rank) * c->options.value_bytes;
}

static size_t labels_bytes(const bpt_crossing *c, uint32_t rank) {
    return samples_of(c, rank) * sizeof(int32_t);
}

/* @return where the values of @p rank are among those of all */
static size_t offset_of(const bpt_crossing *c, uint32_t rank) {
    return c->first[rank] * c->options.value_bytes;
}

/* ---- MPI thread ---- */

static bpt_status post_there(bpt_crossing *c, bpt__transfers *t) {
    const uint32_t host = c->options.host;
    if (!hosts(c)) {
        const size_t bytes = values_bytes(c, c->rank);
        BPT_TRY(bpt__transfers_send(t, 0, c->options.values, bytes, host, TAG_VALUES));
        return bpt__transfers_send(t, 0, c->labels, labels_bytes(c, c->rank), host, TAG_LABELS);
    }
    for (uint32_t r = 0; r < c->m; r++) {
        if (r == host) continue;
        BPT_TRY(bpt__transfers_recv(t, 0, c->values + offset_of(c, r), values_bytes(c, r), r,
                                    TAG_VALUES));
        BPT_TRY(bpt__transfers_recv(t, 0, c->all_labels + c->first[r], labels_bytes(c, r), r,
                                    TAG_LABELS));
    }
    return BPT_OK;
}

static bpt_status post_back(bpt_crossing *c, bpt__transfers *t) {
    const uint32_t host = c->options.host;
    const char *all = c->options.all_gradients;
    if (!hosts(c)) {
        BPT_TRY(bpt__transfers_recv(t, 0, &c->note, sizeof c->note, host, TAG_NOTE));
        return bpt__transfers_recv(t, 0, c->options.gradients, values_bytes(c, c->rank), host,
                                   TAG_GRADIENTS);
    }
    for (uint32_t r = 0; r < c->m; r++) {
        if (r == host) continue;
        BPT_TRY(bpt__transfers_send(t, 0, &c->note, sizeof c->note, r, TAG_NOTE));
        BPT_TRY(
            bpt__transfers_send(t, 0, all + offset_of(c, r), values_bytes(c, r), r, TAG_GRADIENTS));
    }
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
    assert(!f->going);
    f->posted = false;
    f->going = true;
    bpt__comm_submit(f->owner->comm, &f->job);
}

static bpt_status join(flow *f) {
    if (!f->going) return BPT_OK;
    f->going = false;
    return bpt__comm_join(f->owner->comm, &f->job);
}

void bpt_crossing_send(bpt_crossing *c, const int32_t *labels) {
    c->labels = labels;
    begin(&c->there);
    if (!hosts(c)) begin(&c->back);
}

bpt_status bpt_crossing_collect(bpt_crossing *c, bpt_crossing_batch *batch) {
    assert(hosts(c));
    memcpy(c->values + offset_of(c, c->rank), c->options.values, values_bytes(c, c->rank));
    memcpy(c->all_labels + c->first[c->rank], c->labels, labels_bytes(c, c->rank));
    BPT_TRY(join(&c->there));
    *batch = (bpt_crossing_batch){c->values, c->all_labels, c->first[c->m]};
    return join(&c->back); /* of the step before: its gradients are written over now */
}

void bpt_crossing_return(bpt_crossing *c, bpt_crossing_note note) {
    assert(hosts(c));
    c->note = note;
    begin(&c->back);
    memcpy(c->options.gradients, (const char *)c->options.all_gradients + offset_of(c, c->rank),
           values_bytes(c, c->rank));
}

static void count(bpt_crossing *c) {
    const uint64_t back = c->options.value_bytes, there = back + sizeof(int32_t); /* of a sample */
    const uint64_t own = samples_of(c, c->rank), all = hosts(c) ? c->first[c->m] : 0;
    c->stats.steps++;
    c->stats.sent_bytes += own * there + all * back;
    c->stats.received_bytes += own * back + all * there;
    if (hosts(c)) c->stats.local_sent_bytes += own * (there + back);
}

bpt_status bpt_crossing_wait(bpt_crossing *c, bpt_crossing_note *note) {
    if (!hosts(c)) {
        BPT_TRY(join(&c->there));
        BPT_TRY(join(&c->back));
    }
    *note = c->note;
    count(c);
    return BPT_OK;
}

bpt_crossing_stats bpt_crossing_stats_of(const bpt_crossing *c) {
    return c->stats;
}

/* ---- life ---- */

size_t bpt_crossing_bytes(size_t value_bytes, uint64_t n_samples) {
    size_t bytes;
    if (bpt_size_multiply(value_bytes, n_samples, &bytes) != BPT_OK) return SIZE_MAX;
    return bpt_size_add(bytes, (size_t)n_samples * sizeof(int32_t));
}

/* @return requests of one direction at once */
static size_t room(const bpt_crossing *c) {
    size_t sum = 0;
    for (uint32_t r = 0; r < c->m; r++)
        if (hosts(c) || c->rank == r)
            sum += bpt__transfers_chunks(values_bytes(c, r)) +
                   bpt__transfers_chunks(labels_bytes(c, r)) + 1;
    return sum;
}

static bpt_status reserve(bpt_crossing *c) {
    BPT_TRY(BPT_NEW("parts of a step", c->m + 1, &c->first));
    memcpy(c->first, c->options.first, (c->m + 1) * sizeof *c->first);
    const uint64_t all = hosts(c) ? c->first[c->m] : 0;
    BPT_TRY(bpt_alloc("values at the border", all, c->options.value_bytes, (void **)&c->values));
    BPT_TRY(BPT_NEW("labels at the border", all, &c->all_labels));
    const size_t requests = room(c);
    const MPI_Comm messages = bpt__comm_messages(c->comm);
    BPT_TRY(bpt__transfers_create(messages, &requests, 1, &c->there.transfers));
    return bpt__transfers_create(messages, &requests, 1, &c->back.transfers);
}

static void release(bpt_crossing *c) {
    if (!c) return;
    bpt__transfers_free(c->there.transfers);
    bpt__transfers_free(c->back.transfers);
    bpt_free(c->all_labels);
    bpt_free(c->values);
    bpt_free(c->first);
    bpt_free(c);
}

bpt_status bpt_crossing_create(bpt_comm *comm, const bpt_crossing_options *options,
                               bpt_crossing **crossing) {
    bpt_crossing *c = NULL;
    bpt_status status = BPT_NEW("crossing", 1, &c);
    if (status == BPT_OK) {
        *c = (bpt_crossing){
            .comm = comm,
            .options = *options,
            .rank = bpt_comm_rank(comm),
            .m = bpt_comm_size(comm),
            .there = {.job.poll = poll, .owner = c, .post = post_there},
            .back = {.job.poll = poll, .owner = c, .post = post_back},
        };
        status = reserve(c);
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
