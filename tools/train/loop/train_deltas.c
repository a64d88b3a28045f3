/* Merging weights (agwu, sgwu, easgd). A rank trains on its own copy of the weights and pushes how
 * far it came from the global ones that it started from; under easgd the weights themselves.
 *
 * Where nobody waits the rank goes on training while a push is under way; what it goes on from when
 * the answer has come is in carry_over.h. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/watch.h"
#include "tools/train/exchange/carry_over.h"
#include "tools/train/exchange/exchange_cost.h"
#include "tools/train/exchange/momentum_of_all.h"
#include "tools/train/loop/train_loop.h"
#include "tools/train/options/train_rule.h"
#include "tools/train/run/step_log.h"

#include <string.h>

typedef struct {
    bpt_job *job;
    size_t n;
    float *base;   /* global weights that came last: of deltas, what the local ones grew from, shape
                      [n] */
    float *pushed; /* local weights at the last push, shape [n] */
    bpt_pinned pushed_pinned;
    float *local; /* scratch: local weights as a flat vector, shape [n] */
    bool pending; /* a push is not yet answered */
    uint64_t pushed_steps, pushed_samples, pushed_busy_ns; /* job's counts at the last push */
    bpt_momentum_of_all momentum;
    bpt_pace pace;
    bpt_exchange_cost cost;
    uint64_t landed_steps;    /* job's count when the span of the cost began */
    uint64_t landed_progress; /* likewise; 0 where others have trained on since while this rank
                                 evaluated, and at the start */
    bool evaluated;           /* at this landing */
    bpt_step_log *log;        /* NULL: not kept */
} merger;

/* What steps have taken. Waiting for layers that another rank computes is a part of them: the rank
 * is as fast as that lets it be. */
static uint64_t busy_ns(const bpt_job *job) {
    return job->count.compute_ns + (job->placed ? bpt_placed_stats(job->placed).wait_ns : 0);
}

static bpt_answer_point answer_point(const bpt_job *job) {
    const uint32_t rounds = bpt_partition_rounds(job->shares);
    return (bpt_answer_point){job->count.steps, job->count.progress, bpt_job_rate(job),
                              bpt_partition_equal_ranks(job->shares, rounds),
                              bpt_partition_part(job->shares, job->rank, rounds)};
}

static bpt_status merger_open(merger *m, bpt_job *job) {
    const size_t n = bpt_model_learned_elements(bpt_job_trained_model(job));
    *m = (merger){
        .job = job,
        .n = n,
        .local = job->flat,
        .pushed_steps = job->count.steps,
        .pushed_samples = job->count.samples,
        .pushed_busy_ns = busy_ns(job),
        .momentum = {.rule = bpt_job_shared_momentum(job),
                     .synchronous = !bpt_update_is_async(job->update),
                     .last = answer_point(job)},
        .pace = job->pace,
        .cost = {.comm = job->comm, .n_threads = job->n_threads},
        .landed_steps = job->count.steps,
        .landed_progress = job->count.progress,
    };
    m->pace.highest = bpt_schedule_highest(&job->schedule, bpt_job_epoch(job));
    bpt_exchange_cost_begin(&m->cost);
    BPT_TRY(BPT_NEW("base weights", n, &m->base));
    BPT_TRY(BPT_NEW("pushed weights", n, &m->pushed));
    bpt_device_pin(job->device, m->pushed, n * sizeof *m->pushed, &m->pushed_pinned);
    BPT_TRY(bpt_network_get_learned(bpt_job_trained(job), BPT_VECTOR_WEIGHTS, m->base));
    if (job->placed) BPT_TRY(bpt_placed_serve(job));
    if (!bpt_update_is_async(job->update)) {
        m->pace.follows = false; /* what repeats bit for bit does not hang on clocks */
        return BPT_OK;
    }
    return bpt_step_log_open(job->run, job->rank, bpt_feed_state(job->feed).pass, &m->log);
}

static bpt_status merger_close(merger *m, bpt_status status) {
    bpt_error error;
    bpt_error_get(&error); /* what ended it, if anything did */
    bpt_status closed = bpt_step_log_close(m->log);
    if (status == BPT_OK && m->job->placed) { /* else batches may be on their way */
        const bpt_status rested = bpt_placed_rest(m->job->placed);
        if (closed == BPT_OK) closed = rested;
    }
    bpt_free(m->base);
    bpt_device_unpin(&m->pushed_pinned);
    bpt_free(m->pushed);
    return status != BPT_OK ? bpt_error_put(&error) : closed;
}

/* How good the rank's own weights are. */
static bpt_status judge(merger *m, double *quality) {
    bpt_job *job = m->job;
    *quality = 1;
    if (!job->quality) return BPT_OK;
    const uint64_t start_ns = bpt_clock_ns();
    bpt_exchange_cost_judge(&m->cost);
    bpt_comm_operation_begin(job->comm, "data from the loader");
    const bpt_status status = bpt_quality_measure(job->quality, job->network);
    bpt_comm_operation_end(job->comm);
    BPT_TRY(bpt_job_name_step(job, job->count.steps, status));
    bpt_exchange_cost_judged(&m->cost);
    job->count.quality_ns += bpt_clock_ns() - start_ns;
    *quality = bpt_quality_state_get(job->quality).mean;
    return BPT_OK;
}

static bpt_status push(merger *m) {
    bpt_job *job = m->job;
    double quality;
    BPT_TRY(judge(m, &quality));
    bpt_exchange_cost_copy(&m->cost);
    const bool deltas = job->update != BPT_UPDATE_EASGD;
    float *const outbox = bpt_exchange_outbox(job->exchange);
    BPT_TRY(bpt_network_get_learned(bpt_job_trained(job), BPT_VECTOR_WEIGHTS, m->pushed));
    for (size_t i = 0; i < m->n; i++) outbox[i] = deltas ? m->pushed[i] - m->base[i] : m->pushed[i];
    const bpt_report report = {
        .samples = job->count.samples - m->pushed_samples,
        .busy_ns = busy_ns(job) - m->pushed_busy_ns,
        .quality = quality,
        .rates = bpt_train_rates(job->options, job->rates),
        .covered = bpt_feed_state(job->feed).covered,
        .wants = bpt_job_wants(job),
    };
    BPT_TRY(bpt_exchange_push(job->exchange, &report));
    m->pending = true;
    m->pushed_steps = job->count.steps;
    m->pushed_samples = job->count.samples;
    m->pushed_busy_ns = busy_ns(job);
    job->rates = 0;
    bpt_exchange_cost_copied(&m->cost);
    return BPT_OK;
}

/* Looks what the exchange that has just ended cost. While this rank evaluated its MPI thread served
 * others as if for many exchanges: that span tells of none. */
static void keep_pace(merger *m) {
    const bpt_job *job = m->job;
    const uint64_t progress = job->count.progress;
    const double exchange_s = m->evaluated ? 0 : bpt_exchange_cost_read(&m->cost);
    const bpt_pace_span span = {
        .steps = job->count.steps - m->landed_steps,
        .steps_s = m->cost.steps_s,
        .exchange_s = exchange_s,
        .rate = bpt_job_rate(job),
        .progress = m->landed_progress > 0 ? progress - m->landed_progress : 0,
        .left = progress < job->total_samples ? job->total_samples - progress : 0,
    };
    if (bpt_pace_note(&m->pace, &span))
        bpt_debug("exchanges every %llu steps: one takes %.2g ms of a processor, a step %.3g ms",
                  (unsigned long long)m->pace.every, m->pace.exchange_s * 1e3,
                  m->pace.step_s * 1e3);
    m->landed_steps = job->count.steps;
    m->landed_progress = m->evaluated ? 0 : progress;
    m->evaluated = false;
    bpt_exchange_cost_begin(&m->cost);
}

/* An evaluation by rank 0 alone, of the global weights, while the others go on. It does not have
 * them all where some are placed at one rank: then all meet. */
static bpt_status evaluate_between(merger *m) {
    bpt_job *job = m->job;
    if (!bpt_update_is_async(job->update) || job->rank != 0 || job->placed ||
        job->count.progress < job->next_eval || job->count.progress >= job->total_samples)
        return BPT_OK;
    job->next_eval = bpt_coordinator_next(job->count.progress, job->eval_every);
    BPT_TRY(bpt_network_set_learned(job->network, BPT_VECTOR_WEIGHTS, m->base));
    m->evaluated = true;
    bool stopped; /* the next push asks for a meeting then, and the evaluation stays due */
    return bpt_job_evaluate(job, false, &stopped);
}

/* @param own what was learnt since the push has to be kept */
static bpt_status carry_over(merger *m, const bpt_reply *reply, bool own) {
    const bpt_carry carry = {
        .own = own, .met = reply->met != 0, .elasticity = m->job->terms.elasticity};
    bpt_network *const network = bpt_job_trained(m->job);
    bpt_exchange_cost_copy(&m->cost);
    BPT_TRY(bpt_momentum_of_all_take(&m->momentum, answer_point(m->job), network, m->base,
                                     reply->values, m->local, m->n));
    if (own) BPT_TRY(bpt_network_get_learned(network, BPT_VECTOR_WEIGHTS, m->local));
    memcpy(m->base, reply->values, m->n * sizeof *m->base);
    bpt_carry_over(&carry, m->local, m->pushed, m->base, m->n);
    bpt_exchange_cost_copied(&m->cost);
    return BPT_OK;
}

static bpt_status go_on(merger *m) {
    bpt_exchange_cost_copy(&m->cost);
    BPT_TRY(bpt_network_set_learned(bpt_job_trained(m->job), BPT_VECTOR_WEIGHTS, m->local));
    bpt_exchange_cost_copied(&m->cost);
    keep_pace(m);
    return BPT_OK;
}

/* Takes the answer in; waits for it if it is not there yet. */
static bpt_status land(merger *m, bpt_reply *reply) {
    bpt_job *job = m->job;
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(bpt_exchange_wait(job->exchange, reply));
    bpt_exchange_cost_steps_over(&m->cost);
    job->count.wait_ns += bpt_clock_ns() - start_ns;
    bpt_step_trace_wait(job->trace, "weights", start_ns);
    const uint64_t own = job->count.samples - m->pushed_samples;
    bpt_job_note_reply(job, reply);
    job->count.unreported = own; /* first: the event of a round says where the job is */
    BPT_TRY(bpt_job_note_shares(job));
    m->pending = false;
    BPT_TRY(carry_over(m, reply, own > 0));
    BPT_TRY(evaluate_between(m));
    BPT_TRY(go_on(m));
    const bpt_step_landing landing = {
        .pushed_at = m->pushed_steps, .landed_at = job->count.steps, .every = m->pace.every};
    return bpt_step_log_landing(m->log, job->shares, &landing, reply);
}

static bpt_status push_and_land(merger *m, bpt_reply *reply) {
    BPT_TRY(push(m));
    return land(m, reply);
}

/* Steps of this rank in a round: as many as its share of the data, --sync-every on average. */
static uint64_t steps_in_round(const bpt_job *job) {
    const uint64_t all = job->pace.least * job->n_workers;
    const uint64_t steps = bpt_partition_steps(job->shares, job->rank, all);
    return steps ? steps : 1;
}

static bpt_status run_synchronous(merger *m) {
    bpt_job *job = m->job;
    for (bool over = job->count.progress >= job->total_samples; !over;) {
        bpt_reply reply;
        for (uint64_t n = steps_in_round(job); n > 0; n--) BPT_TRY(bpt_job_step(job, false));
        BPT_TRY(push_and_land(m, &reply));
        BPT_TRY(bpt_job_report(job));
        BPT_TRY(bpt_train_meet(job, reply.met, &over));
    }
    return BPT_OK;
}

/* Samples of all ranks: what was told last, and this rank's since then over its part of the data,
 * for nobody has told what the others did meanwhile. */
static double reckoned_progress(const bpt_job *job) {
    const uint32_t rounds = bpt_partition_rounds(job->shares);
    const double part = bpt_partition_part(job->shares, job->rank, rounds);
    return (double)job->count.progress + (double)job->count.unreported / part;
}

/* Whether a push that is due waits for the answer of the one before. As a rule it does not: a slow
 * link or a host that does not answer makes pushes rarer, and nobody waits. But a rank that is held
 * by the bound on staleness waits, for that is what the bound is for; and so does one where all may
 * have trained enough, since it hears of the end by an answer. */
static bool waits_at_push(const bpt_job *job) {
    return job->options->max_staleness >= 0 || reckoned_progress(job) >= (double)job->total_samples;
}

static bool is_due(const merger *m) {
    return m->job->count.steps - m->pushed_steps >= m->pace.every;
}

/* One step, then what can be done without waiting, or must be done now. Who asks for a checkpoint
 * or the end does not wait for a long interval: a push says so, and its answer calls the meeting.
 */
static bpt_status advance(merger *m, bpt_reply *reply) {
    bpt_job *job = m->job;
    BPT_TRY(bpt_job_step(job, false));
    BPT_TRY(bpt_step_log_pass(m->log, bpt_feed_state(job->feed)));
    *reply = (bpt_reply){0};
    if (m->pending) {
        const bool wait = is_due(m) && waits_at_push(job);
        if (!wait && !bpt_exchange_ready(job->exchange)) return BPT_OK;
        BPT_TRY(land(m, reply));
    }
    if (bpt_exchange_called(job->exchange)) return push_and_land(m, reply); /* waits for all */
    return is_due(m) || bpt_job_is_asked(job) ? push(m) : BPT_OK;
}

static bpt_status run_asynchronous(merger *m) {
    bpt_job *job = m->job;
    for (bool over = job->count.progress >= job->total_samples; !over;) {
        bpt_reply reply;
        BPT_TRY(advance(m, &reply));
        BPT_TRY(bpt_job_report(job));
        if (reply.met && job->placed) BPT_TRY(bpt_placed_gather(job));
        if (!reply.met) continue;
        BPT_TRY(bpt_train_meet(job, reply.met, &over));
        bpt_exchange_cost_begin(&m->cost); /* evaluations and checkpoints are no steps */
    }
    return BPT_OK;
}

bpt_status bpt_train_synchronous(bpt_job *job) {
    merger m;
    bpt_status status = merger_open(&m, job);
    if (status == BPT_OK) status = bpt_job_note_shares(job);
    if (status == BPT_OK) status = run_synchronous(&m);
    return merger_close(&m, status);
}

bpt_status bpt_train_asynchronous(bpt_job *job) {
    merger m;
    bpt_status status = merger_open(&m, job);
    if (status == BPT_OK) status = bpt_job_note_shares(job);
    if (status == BPT_OK) status = run_asynchronous(&m);
    return merger_close(&m, status);
}
