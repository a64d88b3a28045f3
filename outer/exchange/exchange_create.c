#include "base/checksum.h"
#include "base/memory.h"
#include "outer/comm/alike.h"
#include "outer/comm/first_error.h"
#include "outer/comm/watch.h"
#include "outer/exchange/exchange_state.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static bpt_status create_transfers(bpt_exchange *x) {
    size_t *room = NULL;
    BPT_TRY(BPT_NEW("room for messages", x->m + 1u, &room));
    for (uint32_t j = 0; j < x->m && x->server; j++) room[j] = bpt__server_room(x->server, j);
    for (uint32_t s = 0; s < bpt_shard_count(x->shards) && bpt__exchange_works(x); s++)
        if (s != x->hosted) room[x->m] += 4; /* header and values, there and back */
    const bpt_status status = bpt__comm_transfers(x->comm, room, x->m + 1, &x->transfers);
    bpt_free(room);
    return status;
}

/* In the split to give out. A server has none of them, and no list of who has. */
static uint64_t count_samples(const bpt_exchange *x, const bpt_exchange_options *o) {
    if (!bpt__exchange_works(x)) return o->coordinator->n_samples;
    return o->partition ? bpt_partition_n_samples(o->partition) : 0;
}

static bpt_status create_coordinator(bpt_exchange *x, const bpt_exchange_options *o) {
    if (x->hosted != 0) return BPT_OK;
    const uint64_t n_samples = count_samples(x, o);
    if (o->coordinator->n_ranks != x->m || o->coordinator->n_samples != n_samples)
        return bpt_fail(BPT_EUSAGE, "a coordinator of %u ranks and %llu samples for %u and %llu",
                        o->coordinator->n_ranks, (unsigned long long)o->coordinator->n_samples,
                        x->m, (unsigned long long)n_samples);
    BPT_TRY(bpt_coordinator_create(o->coordinator, &x->coordinator));
    BPT_TRY(bpt_coordinator_create(o->coordinator, &x->met_state));
    if (!o->snapshot) return BPT_OK;
    const bpt_json *state = NULL;
    BPT_TRY(bpt_json_get_object(o->snapshot_doc, o->snapshot, "coordinator", &state));
    BPT_TRY(bpt_coordinator_load(x->coordinator, o->snapshot_doc, state));
    return bpt_coordinator_copy(x->met_state, x->coordinator);
}

static bpt_status create_server(bpt_exchange *x, const bpt_exchange_options *o) {
    if (x->hosted == BPT__NO_SHARD) return BPT_OK;
    const bpt_shard *shard = bpt_shard_at(x->shards, x->hosted);
    const bool works = bpt__exchange_works(x);
    const bpt__server_options options = {
        .rule = o->rule,
        .terms = o->terms,
        .statistics = o->statistics,
        .n_workers = x->m,
        .rank = x->rank,
        .shard = x->hosted,
        .max_staleness = o->rule->synchronous ? BPT_STALENESS_NONE : o->max_staleness,
        .first = shard->begin,
        .n = shard->end - shard->begin,
        .initial = o->initial + shard->begin,
        .velocity = o->velocity ? o->velocity + shard->begin : NULL,
        .own = {.up = &x->up,
                .part = works ? x->sent + shard->begin : NULL,
                .down = bpt__exchange_down(x, x->hosted),
                .values = works ? x->values + shard->begin : NULL},
        .wants = o->wants,
        .coordinator = x->coordinator,
        .met_state = x->met_state,
        .log = x->log,
        .stats = &x->stats,
        .called = &x->called,
    };
    BPT_TRY(bpt__server_create(&options, &x->server));
    return o->snapshot ? bpt__server_load(x->server, o->snapshot_doc, o->snapshot) : BPT_OK;
}

/* How often this rank has pushed; earlier versions say so as those to the shard hosted here. */
static bpt_status load_pushes(bpt_exchange *x, const bpt_exchange_options *o) {
    if (!o->snapshot || !bpt__exchange_works(x)) return BPT_OK;
    if (x->server)
        x->seq = bpt__server_seq(x->server, x->rank);
    else
        BPT_TRY(bpt_json_get_u64(o->snapshot_doc, o->snapshot, "pushes", 0, UINT64_MAX, &x->seq));
    if (!bpt_json_find(o->snapshot, "spread")) return BPT_OK; /* of an earlier version */
    return bpt__load_counts(o->snapshot_doc, o->snapshot, "spread", BPT_STALENESS_BUCKETS,
                            x->spread);
}

/* Vectors of a shard's length on its host. */
static size_t count_vectors(uint32_t n_remote, const bpt_update_terms *terms) {
    size_t n = 1 + n_remote;
    if (terms->momentum > 0) n++;
    if (terms->compensation > 0) n += n_remote;
    return n;
}

size_t bpt_exchange_server_bytes(size_t n_elements, uint32_t n_workers, double part,
                                 const bpt_update_terms *terms) {
    const size_t shard = (size_t)ceil(part * (double)n_elements) + BPT_SHARD_ALIGNMENT;
    return count_vectors(n_workers, terms) * shard * sizeof(float);
}

size_t bpt_exchange_bytes(size_t n_elements, uint32_t n_ranks, double part,
                          const bpt_update_terms *terms) {
    return 2 * n_elements * sizeof(float) +
           bpt_exchange_server_bytes(n_elements, n_ranks - 1, part, terms);
}

/* Ranks [first, end) host shards. Of no values one shard, of nothing, is enough for what is said.
 */
static void choose_hosts(const bpt_exchange *x, const bpt_exchange_options *o, uint32_t *first,
                         uint32_t *end) {
    *first = o->n_servers > 0 ? x->m : 0;
    *end = o->n_servers > 0 ? x->m + o->n_servers : x->m;
    if (o->rule->payload == BPT_PAYLOAD_NONE) *end = *first + 1;
}

/* All that may fail on this rank alone. */
static bpt_status create_own(bpt_exchange *x, const bpt_exchange_options *o) {
    uint32_t first, end;
    x->down_stride = bpt__down_bytes(0, x->m);
    const bool works = bpt__exchange_works(x);
    choose_hosts(x, o, &first, &end);
    const uint32_t n_shards = end - first;
    if (n_shards > BPT__TAGS_EXCHANGE / 2)
        return bpt_fail(BPT_EUSAGE, "%u ranks are to hold the weights, and at most %d can",
                        n_shards, BPT__TAGS_EXCHANGE / 2);
    x->hosted = x->rank >= first && x->rank < end ? x->rank - first : BPT__NO_SHARD;
    if (works) BPT_TRY(BPT_NEW("vector to send", x->n, &x->sent));
    if (works) BPT_TRY(BPT_NEW("global values", x->n, &x->values));
    BPT_TRY(BPT_NEW("versions of shards", n_shards, &x->versions));
    BPT_TRY(BPT_NEW("complete groups", x->m + 1u, &x->complete));
    BPT_TRY(bpt_alloc("headers of answers", n_shards, x->down_stride, (void **)&x->down));
    BPT_TRY(bpt_shard_table_create(x->n, n_shards, first, o->part, &x->shards));
    if (o->log_path && x->hosted != BPT__NO_SHARD && o->rule->payload != BPT_PAYLOAD_NONE)
        BPT_TRY(bpt__update_log_open(o->log_path, &x->log));
    BPT_TRY(create_coordinator(x, o));
    BPT_TRY(create_server(x, o));
    BPT_TRY(load_pushes(x, o));
    return create_transfers(x);
}

/* Of all workers, taken by the shard that is hosted here: the same for every shard at a meeting,
 * whereas those of one worker are its own under an asynchronous rule. */
static uint64_t count_submissions(const bpt_exchange *x) {
    uint64_t n = 0;
    for (uint32_t j = 0; j < x->m && x->server; j++) n += bpt__server_seq(x->server, j);
    return n;
}

/* Of borders alone: the table has gaps. */
static uint64_t checksum_shards(const bpt_exchange *x) {
    uint64_t sum = 0;
    for (uint32_t s = 0; s < bpt_shard_count(x->shards); s++) {
        const uint64_t both[] = {sum, bpt_shard_at(x->shards, s)->begin};
        sum = bpt_checksum(both, sizeof both);
    }
    return sum;
}

/* A rank that hosts no shard has taken no submissions, and cannot tell how many there were. */
static bpt_status compare_ranks(const bpt_exchange *x, const bpt_exchange_options *o) {
    const bpt__common mine[] = {
        {"has another number of elements", x->n, false},
        {"starts from other values", bpt_checksum(o->initial, x->n * sizeof(float)), false},
        {"uses another update rule", bpt_checksum(o->rule->name, strlen(o->rule->name)), false},
        {"uses other terms of the update", bpt_checksum(&o->terms, sizeof o->terms), false},
        {"has another staleness bound", o->max_staleness, false},
        {"resumes (or not)", o->snapshot != NULL, false},
        {"resumes from another step", count_submissions(x), x->hosted == BPT__NO_SHARD},
        {"has a split of another size", count_samples(x, o), false},
        {"cuts them in other shards", checksum_shards(x), false},
    };
    return bpt__alike(x->comm, mine, sizeof mine / sizeof *mine);
}

/* Tells all ranks the rounds that the coordinator has made before the first push. */
static bpt_status share_rounds(bpt_exchange *x) {
    uint32_t rounds = x->coordinator ? bpt_coordinator_directive(x->coordinator).rounds : 0;
    const uint32_t root = bpt_shard_at(x->shards, 0)->host;
    BPT_TRY(bpt_comm_broadcast(x->comm, root, &rounds, sizeof rounds));
    uint32_t *held = bpt__exchange_down(x, 0)->held; /* not in use yet, and of the right size */
    bpt_status status = BPT_OK;
    for (uint32_t a = 0; a < rounds; a++) {
        if (x->coordinator)
            memcpy(held, bpt_coordinator_round(x->coordinator, a), x->m * sizeof *held);
        BPT_TRY(bpt_comm_broadcast(x->comm, root, held, x->m * sizeof *held));
        if (status == BPT_OK && x->partition) status = bpt_partition_allot(x->partition, held);
    }
    return bpt_comm_agree(x->comm, status);
}

static bpt_status start(bpt__job *job, bool *moved, bool *done) {
    bpt_exchange *x = (bpt_exchange *)job;
    x->job.poll = bpt__exchange_poll;
    if (x->server) BPT_TRY(bpt__server_start(x->server, x->transfers));
    return bpt__exchange_poll(job, moved, done);
}

/* A disk that hangs is to be seen as such. */
static bpt_status close_log(bpt_exchange *x) {
    if (!x->log) return BPT_OK;
    bpt__comm_own_begin(x->comm, "the update log");
    const bpt_status status = bpt__update_log_close(x->log);
    bpt__comm_wait_end(x->comm);
    return status;
}

static bpt_status release(bpt_exchange *x) {
    const bpt_status status = close_log(x);
    bpt__transfers_free(x->transfers);
    bpt__server_free(x->server);
    bpt_coordinator_free(x->met_state);
    bpt_coordinator_free(x->coordinator);
    bpt_shard_table_free(x->shards);
    pthread_cond_destroy(&x->answered);
    pthread_mutex_destroy(&x->mutex);
    bpt_free(x->down);
    bpt_free(x->complete);
    bpt_free(x->versions);
    bpt_free(x->values);
    bpt_free(x->sent);
    bpt_free(x);
    return status;
}

/* After a failure, whose text stays. @return its status */
static bpt_status give_up(bpt_exchange *x, bpt_status status) {
    bpt_error first = {0};
    bpt__first_error_note(&first, status);
    bpt__first_error_note(&first, release(x));
    return bpt__first_error_put(&first);
}

static bpt_status create_bare(bpt_comm *comm, const bpt_exchange_options *o, bpt_exchange **out) {
    bpt_exchange *x = NULL;
    BPT_TRY(BPT_NEW("exchange", 1, &x));
    x->comm = comm;
    assert(o->n_servers < bpt_comm_size(comm));
    assert(o->rule->payload != BPT_PAYLOAD_NONE || (o->rule->synchronous && o->n_elements == 0));
    x->m = bpt_comm_size(comm) - o->n_servers;
    x->rank = bpt_comm_rank(comm);
    x->n = o->n_elements;
    x->partition = o->partition;
    /* Without values it goes beside the sum of gradients: one wait, as people see it. */
    x->waits_at =
        o->rule->payload == BPT_PAYLOAD_NONE ? "the sum of gradients" : "an exchange of weights";
    pthread_mutex_init(&x->mutex, NULL);
    pthread_cond_init(&x->answered, NULL);
    const bpt_status status = create_own(x, o);
    if (status != BPT_OK) return give_up(x, status);
    *out = x;
    return BPT_OK;
}

bpt_status bpt_exchange_create(bpt_comm *comm, const bpt_exchange_options *options,
                               bpt_exchange **exchange) {
    bpt_exchange *x = NULL;
    bpt_status status = bpt_comm_agree(comm, create_bare(comm, options, &x));
    if (status == BPT_OK) status = compare_ranks(x, options);
    if (status == BPT_OK) status = share_rounds(x);
    if (status != BPT_OK) return x ? give_up(x, status) : status;
    x->job.poll = start;
    bpt__comm_submit(comm, &x->job);
    *exchange = x;
    return BPT_OK;
}

bpt_status bpt_exchange_destroy(bpt_exchange *x) {
    if (!x) return BPT_OK;
    bpt_reply last; /* of a push that nobody waited for, after an error */
    if (atomic_load_explicit(&x->phase, memory_order_acquire) == BPT__PUSHED)
        (void)bpt_exchange_wait(x, &last);
    bpt_comm_doing(x->comm, "the final meeting");
    /* Where all ranks have come here, all answers have been received. */
    bpt_error first = {0};
    bpt__first_error_note(&first, bpt_comm_barrier(x->comm));
    atomic_store_explicit(&x->stopping, true, memory_order_release);
    bpt__comm_wake(x->comm);
    bpt__first_error_note(&first, bpt__comm_join(x->comm, &x->job));
    bpt__first_error_note(&first, release(x));
    return bpt__first_error_put(&first);
}
