#include "outer/shard_server.h"

#include "base/memory.h"

#include <string.h>

enum worker_state {
    LISTENING, /* its next submission is awaited */
    WAITING,   /* the submission is here, not yet applied */
    MEETING,   /* applied; answered when all have met */
    ANSWERING, /* the answer is being sent */
};

/* What a checkpoint stores. */
typedef struct counters {
    uint64_t version;
    uint64_t staleness[BPT_STALENESS_BUCKETS];
    uint64_t *seq; /* submissions taken, [m] */
} counters;

struct bpt__server {
    bpt__server_options options; /* .initial is not read after create */
    bpt__transfers *transfers;
    counters now, met;        /* met: as they were at the last meeting */
    float *global;            /* [n]: the shard; of a gradient rule the latest sum */
    float *part_block;        /* [m][n], each part starts on a cache line */
    float **part;             /* [m]: submission, then (asynchronous) answer of each worker */
    bpt__up *up;              /* [m] */
    char *down;               /* [m][down_bytes] */
    size_t down_bytes;        /* of each answer's header */
    enum worker_state *state; /* [m] */
    uint32_t *queue;          /* [m]: workers WAITING in order of arrival */
    uint32_t n_queue;
    uint32_t n_meeting;
    bool *held; /* [m]: counted as held by the bound */

    uint64_t *base;      /* [m]: version last sent to each worker */
    uint64_t *staleness; /* [m]: of the latest submission, once applied */
    double *quality;     /* [m]: latest */
    double *gamma;       /* [m], scratch */
    float *factor;       /* [m], scratch */
    bpt_clocks clocks;   /* since the last meeting */
};

size_t bpt__down_bytes(uint32_t shard, uint32_t n_workers) {
    const size_t bytes = sizeof(bpt__down) + (shard == 0 ? n_workers * sizeof(uint32_t) : 0);
    return (bytes + 7) / 8 * 8;
}

int bpt__tag(uint32_t shard, bool up) {
    return (int)(2 * shard + (up ? 0 : 1));
}

/* ---- life ---- */

static bpt_status allocate(bpt__server *s) {
    const uint32_t m = s->options.n_workers;
    const size_t stride = (s->options.n + 15) / 16 * 16;
    size_t n_parts = 0;
    BPT_TRY(bpt_size_multiply(m, stride, &n_parts));
    BPT_TRY(BPT_NEW("hosted shard", s->options.n, &s->global));
    BPT_TRY(BPT_NEW("submissions to a shard", n_parts, &s->part_block));
    BPT_TRY(BPT_NEW("submissions to a shard", m, &s->part));
    BPT_TRY(BPT_NEW("submissions' headers", m, &s->up));
    BPT_TRY(bpt_alloc("answers' headers", m, s->down_bytes, (void **)&s->down));
    BPT_TRY(BPT_NEW("states of workers", m, &s->state));
    BPT_TRY(BPT_NEW("queue of submissions", m, &s->queue));
    BPT_TRY(BPT_NEW("held submissions", m, &s->held));
    BPT_TRY(BPT_NEW("base versions", m, &s->base));
    BPT_TRY(BPT_NEW("stalenesses", m, &s->staleness));
    BPT_TRY(BPT_NEW("qualities", m, &s->quality));
    BPT_TRY(BPT_NEW("gammas", m, &s->gamma));
    BPT_TRY(BPT_NEW("factors", m, &s->factor));
    BPT_TRY(BPT_NEW("clocks", m, &s->clocks.clock));
    BPT_TRY(BPT_NEW("active workers", m, &s->clocks.active));
    BPT_TRY(BPT_NEW("submissions taken", m, &s->now.seq));
    BPT_TRY(BPT_NEW("submissions taken", m, &s->met.seq));
    for (uint32_t j = 0; j < m; j++) s->part[j] = s->part_block + j * stride;
    return BPT_OK;
}

bpt_status bpt__server_create(const bpt__server_options *options, bpt__server **server) {
    const uint32_t m = options->n_workers;
    bpt__server *s = NULL;
    BPT_TRY(BPT_NEW("shard server", 1, &s));
    s->options = *options;
    s->down_bytes = bpt__down_bytes(options->shard, m);
    const bpt_status status = allocate(s);
    if (status != BPT_OK) {
        bpt__server_free(s);
        return status;
    }
    if (options->rule->payload == BPT_PAYLOAD_DELTA)
        memcpy(s->global, options->initial, options->n * sizeof *s->global);
    for (uint32_t j = 0; j < m; j++) s->quality[j] = 1;
    s->clocks.n_workers = m;
    s->clocks.bound = options->max_staleness;
    bpt_clocks_level(&s->clocks);
    *server = s;
    return BPT_OK;
}

void bpt__server_free(bpt__server *s) {
    if (!s) return;
    bpt_free(s->met.seq);
    bpt_free(s->now.seq);
    bpt_free(s->clocks.active);
    bpt_free(s->clocks.clock);
    bpt_free(s->factor);
    bpt_free(s->gamma);
    bpt_free(s->quality);
    bpt_free(s->staleness);
    bpt_free(s->base);
    bpt_free(s->held);
    bpt_free(s->queue);
    bpt_free(s->state);
    bpt_free(s->down);
    bpt_free(s->up);
    bpt_free(s->part);
    bpt_free(s->part_block);
    bpt_free(s->global);
    bpt_free(s);
}

size_t bpt__server_room(const bpt__server *s) {
    const size_t header = s->down_bytes > sizeof(bpt__up) ? s->down_bytes : sizeof(bpt__up);
    return bpt__transfers_chunks(header) + bpt__transfers_chunks(s->options.n * sizeof(float));
}

bool bpt__server_idle(const bpt__server *s) {
    for (uint32_t j = 0; j < s->options.n_workers; j++)
        if (s->state[j] == ANSWERING) return false;
    return true;
}

/* ---- messages ---- */

static bpt_status listen(bpt__server *s, uint32_t j) {
    const int tag = bpt__tag(s->options.shard, true);
    s->state[j] = LISTENING;
    BPT_TRY(bpt__transfers_recv(s->transfers, j, &s->up[j], sizeof s->up[j], j, tag));
    return bpt__transfers_recv(s->transfers, j, s->part[j], s->options.n * sizeof(float), j, tag);
}

bpt_status bpt__server_start(bpt__server *s, bpt__transfers *t) {
    s->transfers = t;
    for (uint32_t j = 0; j < s->options.n_workers; j++) BPT_TRY(listen(s, j));
    return BPT_OK;
}

/* Sends the shard as it is now to worker @p j. Under an asynchronous rule the next update may come
 * before the message has left, so it leaves from a copy: the submission's buffer, which is free
 * now. A synchronous rule changes nothing before all have got it. */
static bpt_status answer(bpt__server *s, uint32_t j, uint32_t met) {
    const bpt__server_options *o = &s->options;
    const size_t payload = o->n * sizeof(float);
    bpt__down *down = (bpt__down *)(s->down + j * s->down_bytes);
    *down = (bpt__down){.version = s->now.version, .staleness = s->staleness[j], .met = met};
    if (o->coordinator) {
        const bpt_directive directive = bpt_coordinator_directive(o->coordinator);
        down->progress = directive.progress;
        down->meet = directive.meet;
        down->rounds = directive.rounds;
        if (directive.count)
            memcpy(down->count, directive.count, o->n_workers * sizeof down->count[0]);
    }
    const float *values = s->global;
    if (!o->rule->synchronous) {
        memcpy(s->part[j], s->global, payload);
        values = s->part[j];
    }
    s->base[j] = s->now.version;
    s->state[j] = ANSWERING;
    o->stats->payload_sent_bytes += payload;
    o->stats->header_sent_bytes += s->down_bytes;
    if (j == o->rank) o->stats->local_sent_bytes += payload + s->down_bytes;
    const int tag = bpt__tag(o->shard, false);
    BPT_TRY(bpt__transfers_send(s->transfers, j, down, s->down_bytes, j, tag));
    return bpt__transfers_send(s->transfers, j, values, payload, j, tag);
}

/* ---- updates ---- */

static bpt_status record(bpt__server *s, uint32_t j) {
    const uint64_t staleness = s->now.version - 1 - s->base[j]; /* updates by others in between */
    s->staleness[j] = staleness;
    const uint64_t last = BPT_STALENESS_BUCKETS - 1;
    s->now.staleness[staleness < last ? staleness : last]++;
    if (!s->options.log) return BPT_OK;
    const bpt__update update = {
        .shard = s->options.shard,
        .worker = j,
        .version = s->now.version,
        .seq = s->now.seq[j],
        .base = s->base[j],
        .staleness = staleness,
        .lead = bpt_clocks_lead(&s->clocks, j),
        .gamma = s->gamma[j],
        .quality = s->quality[j],
    };
    return bpt__update_log_add(s->options.log, &update);
}

static bpt_status report(bpt__server *s, uint32_t j) {
    if (!s->options.coordinator) return BPT_OK;
    const bpt__up *up = &s->up[j];
    return bpt_coordinator_report(s->options.coordinator, j,
                                  &(bpt_report){.samples = up->samples,
                                                .busy_ns = up->busy_ns,
                                                .quality = up->quality,
                                                .covered = up->covered,
                                                .wants = up->wants});
}

static void weigh(bpt__server *s) {
    const bpt_update_inputs in = {.n_workers = s->options.n_workers,
                                  .version = s->now.version,
                                  .base = s->base,
                                  .quality = s->quality};
    s->options.rule->weigh(&in, s->gamma);
}

/* All have met. @return the reasons, known to shard 0 only */
static uint32_t meet(bpt__server *s) {
    uint32_t reasons = 0;
    if (s->options.coordinator) {
        reasons = bpt_coordinator_met(s->options.coordinator);
        if (reasons) bpt_coordinator_copy(s->options.met_state, s->options.coordinator);
    }
    uint64_t *seq = s->met.seq;
    s->met = s->now;
    s->met.seq = seq;
    memcpy(seq, s->now.seq, s->options.n_workers * sizeof *seq);
    return reasons;
}

/* A synchronous rule: a round is complete. */
static bpt_status update_all(bpt__server *s) {
    const bpt__server_options *o = &s->options;
    weigh(s);
    for (uint32_t j = 0; j < o->n_workers; j++) s->factor[j] = (float)s->gamma[j];
    o->rule->merge(s->global, (const float *const *)s->part, s->factor, o->n_workers, o->n);
    s->now.version++;
    o->stats->updates++;
    for (uint32_t j = 0; j < o->n_workers; j++) BPT_TRY(record(s, j));
    for (uint32_t j = 0; j < o->n_workers; j++) BPT_TRY(report(s, j));
    const uint32_t met = meet(s);
    s->n_queue = 0;
    for (uint32_t j = 0; j < o->n_workers; j++) BPT_TRY(answer(s, j, met));
    return BPT_OK;
}

static bpt_status answer_meeting(bpt__server *s) {
    const uint32_t met = meet(s);
    bpt_clocks_level(&s->clocks);
    s->n_meeting = 0;
    for (uint32_t j = 0; j < s->options.n_workers; j++) BPT_TRY(answer(s, j, met));
    return BPT_OK;
}

/* An asynchronous rule: applies one submission and answers it, unless it is for a meeting. */
static bpt_status update_one(bpt__server *s, uint32_t j) {
    const bpt__server_options *o = &s->options;
    weigh(s);
    const float factor = (float)(s->gamma[j] * s->quality[j]);
    const float *part = s->part[j];
    o->rule->merge(s->global, &part, &factor, 1, o->n);
    s->now.version++;
    o->stats->updates++;
    s->held[j] = false;
    BPT_TRY(record(s, j));
    BPT_TRY(report(s, j));
    if (!s->up[j].meeting) return answer(s, j, 0);
    s->state[j] = MEETING;
    s->clocks.active[j] = false;
    return ++s->n_meeting == o->n_workers ? answer_meeting(s) : BPT_OK;
}

/* Applies what the bound admits, the oldest first, until it admits nothing more. */
static bpt_status update_admitted(bpt__server *s) {
    for (uint32_t i = 0; i < s->n_queue;) {
        const uint32_t j = s->queue[i];
        if (!bpt_clocks_admit(&s->clocks, j)) {
            if (!s->held[j]) s->options.stats->held++;
            s->held[j] = true;
            i++;
            continue;
        }
        s->n_queue--;
        memmove(s->queue + i, s->queue + i + 1, (s->n_queue - i) * sizeof *s->queue);
        BPT_TRY(update_one(s, j));
        i = 0; /* a worker that meets is no longer waited for */
    }
    return BPT_OK;
}

static bpt_status arrive(bpt__server *s, uint32_t j) {
    const bpt__server_options *o = &s->options;
    if (s->up[j].seq != s->now.seq[j] + 1)
        return bpt_fail(BPT_ECOMM, "shard %u got submission %llu of rank %u after its %llu",
                        o->shard, (unsigned long long)s->up[j].seq, j,
                        (unsigned long long)s->now.seq[j]);
    o->stats->payload_received_bytes += o->n * sizeof(float);
    o->stats->header_received_bytes += sizeof s->up[j];
    s->now.seq[j]++;
    s->clocks.clock[j]++;
    s->quality[j] = s->up[j].quality;
    s->state[j] = WAITING;
    s->queue[s->n_queue++] = j;
    if (!o->rule->synchronous) return update_admitted(s);
    return s->n_queue == o->n_workers ? update_all(s) : BPT_OK;
}

bpt_status bpt__server_complete(bpt__server *s, uint32_t worker) {
    return s->state[worker] == ANSWERING ? listen(s, worker) : arrive(s, worker);
}

/* ---- state ---- */

uint64_t bpt__server_seq(const bpt__server *s, uint32_t worker) {
    return s->now.seq[worker];
}

const uint64_t *bpt__server_staleness(const bpt__server *s) {
    return s->now.staleness;
}

void bpt__server_save(const bpt__server *s, bpt_json_writer *w) {
    bpt_json_put_text(w, "rule", s->options.rule->name);
    bpt_json_put_u64(w, "shard", s->options.shard);
    bpt_json_put_u64(w, "elements", s->options.n);
    bpt_json_put_u64(w, "version", s->met.version);
    bpt_json_open_array(w, "seq");
    for (uint32_t j = 0; j < s->options.n_workers; j++) bpt_json_put_u64(w, NULL, s->met.seq[j]);
    bpt_json_close_array(w);
    bpt_json_open_array(w, "staleness");
    for (int i = 0; i < BPT_STALENESS_BUCKETS; i++) bpt_json_put_u64(w, NULL, s->met.staleness[i]);
    bpt_json_close_array(w);
}

static bpt_status load_array(const bpt_json_doc *doc, const bpt_json *state, const char *key,
                             size_t n, uint64_t *out) {
    const bpt_json *array = NULL;
    BPT_TRY(bpt_json_get_array(doc, state, key, &array));
    if (bpt_json_size(array) != n)
        return bpt_fail(BPT_EDATA, "the saved exchange has %zu items in %s instead of %zu",
                        bpt_json_size(array), key, n);
    for (size_t i = 0; i < n; i++)
        BPT_TRY(bpt_json_get_u64(doc, bpt_json_at(array, i), NULL, 0, UINT64_MAX, &out[i]));
    return BPT_OK;
}

bpt_status bpt__server_load(bpt__server *s, const bpt_json_doc *doc, const bpt_json *state) {
    const bpt__server_options *o = &s->options;
    const char *rule = NULL;
    uint64_t number = 0;
    BPT_TRY(bpt_json_get_text(doc, state, "rule", &rule));
    if (strcmp(rule, o->rule->name) != 0)
        return bpt_fail(BPT_EDATA, "the saved exchange is of rule %s, not %s", rule, o->rule->name);
    BPT_TRY(bpt_json_get_u64(doc, state, "shard", o->shard, o->shard, &number));
    BPT_TRY(bpt_json_get_u64(doc, state, "elements", o->n, o->n, &number));
    BPT_TRY(bpt_json_get_u64(doc, state, "version", 0, UINT64_MAX, &s->now.version));
    BPT_TRY(load_array(doc, state, "seq", o->n_workers, s->now.seq));
    BPT_TRY(load_array(doc, state, "staleness", BPT_STALENESS_BUCKETS, s->now.staleness));
    for (uint32_t j = 0; j < o->n_workers; j++) s->base[j] = s->now.version;
    (void)meet(s);
    return BPT_OK;
}
