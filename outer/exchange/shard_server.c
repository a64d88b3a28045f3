#include "outer/exchange/shard_server.h"

#include "outer/exchange/shard_server_state.h"

#include <string.h>

size_t bpt__down_bytes(uint32_t shard, uint32_t n_workers) {
    const size_t bytes = sizeof(bpt__down) + (shard == 0 ? n_workers * sizeof(uint32_t) : 0);
    return (bytes + 7) / 8 * 8;
}

int bpt__tag(uint32_t shard, bool up) {
    return BPT__TAG_EXCHANGE + (int)(2 * shard + (up ? 0 : 1));
}

size_t bpt__server_room(const bpt__server *s, uint32_t worker) {
    return worker == s->options.rank ? 0 : 2; /* header and values */
}

bool bpt__server_own_answered(const bpt__server *s) {
    return s->state[s->options.rank] == BPT__LISTENING;
}

bool bpt__server_idle(const bpt__server *s) {
    for (uint32_t j = 0; j < s->options.n_workers; j++)
        if (s->state[j] == BPT__ANSWERING) return false;
    return true;
}

/* ---- messages ---- */

static bpt_status listen(bpt__server *s, uint32_t j) {
    const int tag = bpt__tag(s->options.shard, true);
    s->state[j] = BPT__LISTENING;
    if (j == s->options.rank) return BPT_OK; /* it comes by bpt__server_take_own() */
    BPT_TRY(bpt__transfers_recv(s->transfers, j, &s->up[j], sizeof s->up[j], j, tag));
    return bpt__transfers_recv(s->transfers, j, s->buffer[j], s->options.n * sizeof(float), j, tag);
}

bpt_status bpt__server_start(bpt__server *s, bpt__transfers *t) {
    s->transfers = t;
    for (uint32_t j = 0; j < s->options.n_workers; j++) BPT_TRY(listen(s, j));
    return BPT_OK;
}

/* Copies the shard as it is now into the answer of worker @p j. */
static void fill_answer(bpt__server *s, uint32_t j) {
    memcpy(s->answer[j], s->global, s->options.n * sizeof *s->global);
}

/* Answers worker @p j. Under an asynchronous rule the next update may come before the message has
 * left, so it leaves from a copy. A synchronous rule changes nothing before all have got it. */
static bpt_status answer(bpt__server *s, uint32_t j, uint32_t met) {
    const bpt__server_options *o = &s->options;
    const size_t payload = o->n * sizeof(float);
    const bool own = j == o->rank;
    bpt__down *down = own ? o->own.down : (bpt__down *)(s->down + j * s->down_bytes);
    *down = (bpt__down){.version = s->now.version, .staleness = s->staleness[j], .met = met};
    if (o->wants) down->wants = o->wants();
    if (o->coordinator) {
        const bpt_directive directive = bpt_coordinator_directive(o->coordinator);
        down->progress = directive.progress;
        down->meet = directive.meet;
        down->rounds = directive.rounds;
        if (directive.held) memcpy(down->held, directive.held, o->n_workers * sizeof down->held[0]);
    }
    s->base[j] = s->now.version;
    o->stats->payload_sent_bytes += payload;
    o->stats->header_sent_bytes += s->down_bytes;
    if (own) {
        o->stats->local_sent_bytes += payload + s->down_bytes;
        return listen(s, j);
    }
    s->state[j] = BPT__ANSWERING;
    const float *values = o->rule->synchronous ? s->global : s->answer[j];
    const int tag = bpt__tag(o->shard, false);
    BPT_TRY(bpt__transfers_send(s->transfers, j, down, s->down_bytes, j, tag));
    return bpt__transfers_send(s->transfers, j, values, payload, j, tag);
}

/* ---- updates ---- */

static bpt_update_inputs inputs(const bpt__server *s) {
    return (bpt_update_inputs){.n_workers = s->options.n_workers,
                               .version = s->now.version,
                               .base = s->base,
                               .quality = s->now.quality,
                               .elasticity = s->options.terms.elasticity};
}

/* What is logged as "q"; of an asynchronous rule also what gamma is multiplied by. */
static double quality_factor(const bpt__server *s, uint32_t j) {
    const bpt_update_inputs in = inputs(s);
    if (s->options.rule->synchronous) return s->now.quality[j];
    return s->options.rule->ignores_quality ? 1 : bpt_quality_share(&in, j);
}

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
        .quality = quality_factor(s, j),
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
    const bpt_update_inputs in = inputs(s);
    s->options.rule->weigh(&in, s->gamma);
}

/* All have met. @param[out] reasons known to shard 0 only */
static bpt_status meet(bpt__server *s, uint32_t *reasons) {
    *reasons = 0;
    if (s->options.coordinator) {
        *reasons = bpt_coordinator_met(s->options.coordinator);
        if (*reasons) BPT_TRY(bpt_coordinator_copy(s->options.met_state, s->options.coordinator));
    }
    bpt__server_keep(s);
    return BPT_OK;
}

/* @param m begin and end are set by the caller, and so is what comes in */
static void merge(const bpt__server *s, bpt_merge m) {
    m.global = s->global;
    m.velocity = s->velocity;
    m.momentum = (float)s->options.terms.momentum;
    bpt_merge_part(s->options.rule, &m, s->options.first, s->options.statistics);
}

static void merge_all(bpt__server *s) {
    const bpt__server_options *o = &s->options;
    weigh(s);
    for (uint32_t j = 0; j < o->n_workers; j++) s->factor[j] = (float)s->gamma[j];
    merge(s, (bpt_merge){
                 .end = o->n, .parts = s->part, .factors = s->factor, .n_parts = o->n_workers});
}

/* A synchronous rule: a round is complete. */
static bpt_status update_all(bpt__server *s) {
    const bpt__server_options *o = &s->options;
    if (o->rule->payload != BPT_PAYLOAD_NONE) merge_all(s);
    s->now.version++;
    o->stats->updates++;
    for (uint32_t j = 0; j < o->n_workers; j++) BPT_TRY(record(s, j));
    for (uint32_t j = 0; j < o->n_workers; j++) BPT_TRY(report(s, j));
    uint32_t met;
    BPT_TRY(meet(s, &met));
    s->n_queue = 0;
    if (o->rank < o->n_workers) fill_answer(s, o->rank);
    for (uint32_t j = 0; j < o->n_workers; j++) BPT_TRY(answer(s, j, met));
    return BPT_OK;
}

static bpt_status answer_meeting(bpt__server *s) {
    uint32_t met;
    BPT_TRY(meet(s, &met));
    bpt_clocks_level(&s->clocks);
    s->n_meeting = 0;
    s->n_met++;
    for (uint32_t j = 0; j < s->options.n_workers; j++) {
        fill_answer(s, j);
        BPT_TRY(answer(s, j, met));
    }
    return BPT_OK;
}

/* Applies one submission. An answer that follows at once is copied block by block, while the new
 * values are in a cache: large shards are in none. */
static void merge_one(bpt__server *s, uint32_t j, bool answers) {
    enum { BLOCK = 8192 };
    const bpt__server_options *o = &s->options;
    const float factor = (float)(s->gamma[j] * quality_factor(s, j));
    bpt_merge m = {.parts = &s->part[j], .factors = &factor, .n_parts = 1};
    if (o->terms.compensation > 0) {
        m.base = s->answer[j]; /* block by block, before the new answer overwrites it */
        m.compensation = bpt_compensation(&o->terms, s->up[j].rates);
    }
    for (; m.begin < o->n; m.begin = m.end) {
        m.end = o->n - m.begin < BLOCK ? o->n : m.begin + BLOCK;
        merge(s, m);
        if (!answers) continue;
        const size_t n = m.end - m.begin;
        memcpy(s->answer[j] + m.begin, s->global + m.begin, n * sizeof *s->global);
    }
}

/* An asynchronous rule: applies one submission and answers it, unless it is for a meeting. */
static bpt_status update_one(bpt__server *s, uint32_t j) {
    const bpt__server_options *o = &s->options;
    const bool answers = !s->up[j].meeting;
    weigh(s);
    merge_one(s, j, answers);
    s->now.version++;
    o->stats->updates++;
    s->held[j] = false;
    BPT_TRY(record(s, j));
    BPT_TRY(report(s, j));
    if (answers) return answer(s, j, 0);
    s->state[j] = BPT__MEETING;
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
    s->now.quality[j] = s->up[j].quality;
    s->state[j] = BPT__WAITING;
    s->queue[s->n_queue++] = j;
    if (s->up[j].meeting) atomic_store_explicit(o->called, s->n_met + 1, memory_order_relaxed);
    if (!o->rule->synchronous) return update_admitted(s);
    return s->n_queue == o->n_workers ? update_all(s) : BPT_OK;
}

bpt_status bpt__server_take_own(bpt__server *s) {
    s->up[s->options.rank] = *s->options.own.up;
    return arrive(s, s->options.rank);
}

bpt_status bpt__server_complete(bpt__server *s, uint32_t worker) {
    return s->state[worker] == BPT__ANSWERING ? listen(s, worker) : arrive(s, worker);
}

uint64_t bpt__server_seq(const bpt__server *s, uint32_t worker) {
    return s->now.seq[worker];
}

const float *bpt__server_velocity(const bpt__server *s) {
    return s->velocity;
}

const uint64_t *bpt__server_staleness(const bpt__server *s) {
    return s->now.staleness;
}
