/* The steps of workers and the merges of shards, in the order of the logs. */
#include "base/log.h"
#include "tools/train/data/held_out.h"
#include "tools/train/exchange/carry_over.h"
#include "tools/train/options/train_rule.h"
#include "tools/train/replay/replay_state.h"

#include <assert.h>
#include <string.h>

/* ---- one worker ---- */

/* The indices of the next batch, pass by pass: the stream is told how many rounds each covers,
 * since here all rounds are known from the start. */
static bpt_status next_indices(const bpt__replay *r, bpt__replayed *w) {
    const uint32_t rank = (uint32_t)(w - r->workers);
    const uint64_t batch = (uint64_t)r->o->batch_size;
    for (uint64_t n = 0; n < batch;) {
        bpt_sampler_state s = bpt_sampler_state_get(w->sampler);
        const uint32_t rounds = w->log->passes[s.pass].rounds; /* there are enough, as checked */
        if (s.rounds == 0) {
            s.next_rounds = rounds;
            BPT_TRY(bpt_sampler_state_set(w->sampler, &s));
        }
        const uint64_t left = bpt_partition_held(r->shares, rank, rounds) - s.position;
        const uint64_t take = left < batch - n ? left : batch - n;
        BPT_TRY(bpt_sampler_next(w->sampler, (size_t)take, r->indices + n, r->passes + n));
        n += take;
    }
    bpt_held_out_skip(r->records, r->n_held, r->indices, batch);
    return BPT_OK;
}

static bpt_status learn(bpt__replay *r, bpt__replayed *w, const bpt_batch *batch, float rate,
                        bpt_batch_result *result) {
    const uint64_t first = (uint64_t)(w - r->workers) * (uint64_t)r->o->batch_size;
    const bpt_draw draw = {(uint64_t)r->o->seed, w->steps, first};
    assert(!r->tail || !batch->second_labels); /* such a run is refused */
    if (r->tail) return bpt_replay_tail_step(r->tail, w->network, batch, draw, rate, result);
    bpt_network_set_draw(w->network, draw);
    bpt_network_set_second(w->network, batch->second_labels, batch->second_parts);
    return bpt_network_train(w->network, batch->input, batch->labels, rate, (float)r->o->batch_size,
                             result);
}

/* @return rounds of the partition that a worker has heard of when its next answer has come */
static uint32_t rounds_heard(const bpt__replayed *w) {
    const bpt_replay_worker *log = w->log;
    uint32_t n = 0;
    while (w->next_push < log->n_pushes && n < log->n_rounds &&
           log->round_lines[n] < log->pushes[w->next_push].line)
        n++;
    return n;
}

/* @return that of a worker's next step */
static float rate_of(const bpt__replay *r, const bpt__replayed *w) {
    const double epoch = (double)(w->progress + w->unreported) / (double)r->n_samples;
    const double step = (double)r->o->batch_size / (double)r->n_samples;
    return (float)bpt_schedule_rate(&r->schedule, epoch, step);
}

bpt_answer_point bpt__replay_point(const bpt__replay *r, const bpt__replayed *w) {
    const uint32_t rounds = rounds_heard(w), rank = (uint32_t)(w - r->workers);
    return (bpt_answer_point){w->steps, w->progress, rate_of(r, w),
                              bpt_partition_equal_ranks(r->shares, rounds),
                              bpt_partition_part(r->shares, rank, rounds)};
}

static bpt_status repeat_step(bpt__replay *r, bpt__replayed *w) {
    const float rate = rate_of(r, w);
    bpt_batch batch;
    bpt_batch_result result;
    BPT_TRY(next_indices(r, w));
    BPT_TRY(bpt_loader_request(r->loader, r->indices, r->passes, (uint32_t)r->o->batch_size));
    BPT_TRY(bpt_loader_next(r->loader, &batch));
    const bpt_status status = learn(r, w, &batch, rate, &result);
    bpt_loader_release(r->loader, &batch);
    w->steps++;
    w->samples += (uint64_t)r->o->batch_size;
    w->unreported += (uint64_t)r->o->batch_size;
    w->rates += (double)rate;
    if (status == BPT_OK) bpt_replay_progress_step(&r->progress, &result, rate);
    return status;
}

static bpt_status push(const bpt__replay *r, bpt__replayed *w) {
    BPT_TRY(bpt_network_get_learned(w->network, BPT_VECTOR_WEIGHTS, w->pushed));
    if (r->rule->payload == BPT_PAYLOAD_DELTA)
        for (size_t i = 0; i < r->n; i++) w->part[i] = w->pushed[i] - w->base[i];
    else
        memcpy(w->part, w->pushed, r->n * sizeof *w->part);
    w->compensation = bpt_compensation(&r->terms, bpt_train_rates(r->o, w->rates));
    w->rates = 0;
    w->pushed_samples = w->samples;
    w->pending = true;
    w->answered = 0;
    return BPT_OK;
}

static bpt_status land(bpt__replay *r, bpt__replayed *w) {
    const bpt_replay_push *p = &w->log->pushes[w->next_push];
    const uint64_t own = w->samples - w->pushed_samples;
    w->progress = p->progress;
    w->unreported = own;
    const bpt_carry carry = {.own = own > 0, .met = p->met, .elasticity = r->terms.elasticity};
    BPT_TRY(bpt_momentum_of_all_take(&w->momentum, bpt__replay_point(r, w), w->network, w->base,
                                     w->answer, r->scratch, r->n));
    if (own) BPT_TRY(bpt_network_get_learned(w->network, BPT_VECTOR_WEIGHTS, r->scratch));
    memcpy(w->base, w->answer, r->n * sizeof *w->base);
    bpt_carry_over(&carry, r->scratch, w->pushed, w->base, r->n);
    w->pending = false;
    w->next_push++;
    return bpt_network_set_learned(w->network, BPT_VECTOR_WEIGHTS, r->scratch);
}

/* Goes on until the worker needs an answer that is not there yet, or layers from which another
 * one's batch has to come first, or has nothing left to do.
 * @param[out] moved set where anything was done */
static bpt_status advance(bpt__replay *r, uint32_t rank, bool *moved) {
    bpt__replayed *w = &r->workers[rank];
    while (w->next_push < w->log->n_pushes) {
        const bpt_replay_push *p = &w->log->pushes[w->next_push];
        const uint64_t until = w->pending ? p->landed_at : p->pushed_at;
        if (w->steps < until && r->tail && !bpt_replay_tail_is_next(r->tail, rank)) return BPT_OK;
        if (w->steps < until)
            BPT_TRY(repeat_step(r, w));
        else if (!w->pending)
            BPT_TRY(push(r, w));
        else if (w->answered == r->logs.n_shards)
            BPT_TRY(land(r, w));
        else
            return BPT_OK;
        *moved = true;
    }
    return BPT_OK;
}

/* ---- the shards ---- */

static void answer(const bpt__replay *r, bpt__replayed *w, const bpt_shard *s) {
    memcpy(w->answer + s->begin, r->exchanged + s->begin, (s->end - s->begin) * sizeof(float));
    w->answered++;
}

/* A meeting's pushes are answered once all of them are applied. */
static void answer_meeting(bpt__replay *r, uint32_t shard) {
    if (++r->n_met[shard] < r->m) return;
    r->n_met[shard] = 0;
    for (uint32_t j = 0; j < r->m; j++) answer(r, &r->workers[j], bpt_shard_at(r->shards, shard));
}

static void merge(const bpt__replay *r, const bpt_replay_update *u, const bpt__replayed *w,
                  const bpt_shard *s) {
    const float *part = w->part;
    const float factor = (float)(u->gamma * u->quality);
    const bpt_merge m = {.begin = s->begin,
                         .end = s->end,
                         .global = r->exchanged,
                         .parts = &part,
                         .factors = &factor,
                         .n_parts = 1,
                         .velocity = r->velocity,
                         .momentum = (float)r->terms.momentum,
                         .base = r->terms.compensation > 0 ? w->base : NULL,
                         .compensation = w->compensation};
    bpt_merge_part(r->rule, &m, 0, (bpt_statistics){r->statistics, r->n_statistics});
}

/* Applies logged updates of a shard for as long as the deltas that they take are there. */
static void apply(bpt__replay *r, uint32_t shard, bool *moved) {
    const bpt_replay_shard *log = &r->logs.shards[shard];
    const bpt_shard *s = bpt_shard_at(r->shards, shard);
    while (r->applied[shard] < log->n) {
        const bpt_replay_update *u = &log->updates[r->applied[shard]];
        bpt__replayed *w = &r->workers[u->worker];
        if (!w->pending || w->next_push + 1 != u->seq) return;
        merge(r, u, w, s);
        r->applied[shard]++;
        *moved = true;
        if (w->log->pushes[w->next_push].met)
            answer_meeting(r, shard);
        else
            answer(r, w, s);
    }
}

static bool is_over(const bpt__replay *r) {
    for (uint32_t j = 0; j < r->m; j++)
        if (r->workers[j].next_push < r->workers[j].log->n_pushes) return false;
    return true;
}

bpt_status bpt__replay_run(bpt__replay *r) {
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t j = 0; j < r->m; j++) BPT_TRY(advance(r, j, &moved));
        for (uint32_t s = 0; s < r->logs.n_shards; s++) apply(r, s, &moved);
    }
    bpt_log_progress_end();
    if (is_over(r) && (!r->tail || bpt_replay_tail_is_over(r->tail))) return BPT_OK;
    return bpt_fail(BPT_EDATA, "the logs do not fit together: no worker and no shard can go on");
}
