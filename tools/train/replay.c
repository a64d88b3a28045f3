#include "tools/train/replay.h"

#include "base/log.h"
#include "base/memory.h"
#include "inner/network.h"
#include "inner/safetensors.h"
#include "outer/sampler.h"
#include "outer/shard.h"
#include "outer/staleness.h"
#include "outer/update_rule.h"
#include "storage/loader.h"
#include "tools/shaped_model.h"
#include "tools/train/carry_over.h"
#include "tools/train/feed.h"
#include "tools/train/held_out.h"
#include "tools/train/initial_weights.h"
#include "tools/train/learning_options.h"
#include "tools/train/pace.h"
#include "tools/train/replay_log.h"
#include "tools/train/replay_progress.h"
#include "tools/train/replay_start.h"
#include "tools/train/replay_tail.h"
#include "tools/train/shard_log.h"
#include "tools/train/statistic_spans.h"
#include "tools/train/train_rule.h"
#include "tools/train/tuning.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* A worker of the run, as far as it has been repeated. */
typedef struct {
    const bpt_replay_worker *log;
    bpt_tuned *tuned; /* NULL: the run was not */
    bpt_network *network;
    bpt_sampler *sampler;
    float *base;             /* as in train_deltas.c; shape [n] */
    float *pushed;           /* likewise */
    float *part;             /* submission that is being applied: delta or weights; shape [n] */
    float *answer;           /* global weights for it, shard by shard; shape [n] */
    uint32_t answered;       /* shards that the answer holds */
    size_t next_push;        /* index of the push that comes next or is under way */
    bool pending;            /* that push is under way */
    uint64_t steps, samples; /* done */
    uint64_t pushed_samples; /* at the last push */
    uint64_t progress, unreported;
    double rates;       /* learning rates since the last push */
    float compensation; /* of the push that is under way */
} worker;

typedef struct {
    const bpt_train_options *o;
    bpt_update_choice update; /* AGWU or EASGD */
    const bpt_update_rule *rule;
    bpt_update_terms terms;
    bpt_replay_logs logs;
    bpt_dataset *dataset;
    const bpt_split *split;
    uint64_t n_held, n_samples; /* of the split: held out; left to train on */
    uint32_t *records;          /* bpt_held_out_draw(); NULL where none are held out */
    bpt_model *model;           /* whole */
    const bpt_model *trained;   /* what workers train: the whole, or its head */
    bpt_replay_tail *tail;      /* NULL: they train the whole */
    bpt_pool *pool;
    bpt_partition *shares;
    bpt_loader *loader;
    bpt_shard_table *shards;
    bpt_span *statistics; /* shape [n_statistics] */
    size_t n_statistics;
    double lr_factor; /* of --lr: bpt_train_lr_factor() */
    bpt_schedule schedule;
    bpt_replay_progress progress;
    worker *workers;   /* shape [m] */
    float *global;     /* shape [n_all]; of the tail only at the begin and at the end */
    float *velocity;   /* shape [n]; NULL without momentum of the server */
    float *scratch;    /* shape [n] */
    float *final;      /* weights that the run ended with; shape [n_all] */
    size_t *applied;   /* updates applied, of each shard; shape [n_shards] */
    uint32_t *n_met;   /* of each shard: pushes of the present meeting applied; shape [n_shards] */
    uint32_t *indices; /* shape [batch] */
    uint32_t *passes;  /* shape [batch] */
    uint32_t m;
    size_t n, n_all; /* elements that are exchanged, of the whole model */
} replay;

/* ---- one worker ---- */

/* The indices of the next batch, pass by pass: the stream is told how many rounds each covers,
 * since here all rounds are known from the start. */
static bpt_status next_indices(const replay *r, worker *w) {
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

static bpt_status learn(replay *r, worker *w, const bpt_batch *batch, float rate,
                        bpt_batch_result *result) {
    const uint64_t first = (uint64_t)(w - r->workers) * (uint64_t)r->o->batch_size;
    const bpt_draw draw = {(uint64_t)r->o->seed, w->steps, first};
    assert(!r->tail || !batch->second_labels); /* such a run is refused */
    if (r->tail) return bpt_replay_tail_step(r->tail, w->network, batch, draw, rate, result);
    bpt_network_set_draw(w->network, draw);
    bpt_network_set_second(w->network, batch->second_labels, batch->second_parts);
    return bpt_network_train(w->network, batch->pixels, batch->labels, rate,
                             (float)r->o->batch_size, result);
}

static bpt_status repeat_step(replay *r, worker *w) {
    const double epoch = (double)(w->progress + w->unreported) / (double)r->n_samples;
    const double step = (double)r->o->batch_size / (double)r->n_samples;
    const float rate = (float)bpt_schedule_rate(&r->schedule, epoch, step);
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

static bpt_status push(const replay *r, worker *w) {
    BPT_TRY(bpt_network_get(w->network, BPT_VECTOR_WEIGHTS, w->pushed));
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

static bpt_status land(replay *r, worker *w) {
    const bpt_replay_push *p = &w->log->pushes[w->next_push];
    const uint64_t own = w->samples - w->pushed_samples;
    w->progress = p->progress;
    w->unreported = own;
    const bpt_carry carry = {.own = own > 0, .met = p->met, .elasticity = r->terms.elasticity};
    if (own) BPT_TRY(bpt_network_get(w->network, BPT_VECTOR_WEIGHTS, r->scratch));
    memcpy(w->base, w->answer, r->n * sizeof *w->base);
    bpt_carry_over(&carry, r->scratch, w->pushed, w->base, r->n);
    w->pending = false;
    w->next_push++;
    return bpt_network_set(w->network, BPT_VECTOR_WEIGHTS, r->scratch);
}

/* Goes on until the worker needs an answer that is not there yet, or layers from which another
 * one's batch has to come first, or has nothing left to do.
 * @param[out] moved set where anything was done */
static bpt_status advance(replay *r, uint32_t rank, bool *moved) {
    worker *w = &r->workers[rank];
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

static void answer(const replay *r, worker *w, const bpt_shard *s) {
    memcpy(w->answer + s->begin, r->global + s->begin, (s->end - s->begin) * sizeof(float));
    w->answered++;
}

/* A meeting's pushes are answered once all of them are applied. */
static void answer_meeting(replay *r, uint32_t shard) {
    if (++r->n_met[shard] < r->m) return;
    r->n_met[shard] = 0;
    for (uint32_t j = 0; j < r->m; j++) answer(r, &r->workers[j], bpt_shard_at(r->shards, shard));
}

static void merge(const replay *r, const bpt_replay_update *u, const worker *w,
                  const bpt_shard *s) {
    const float *part = w->part;
    const float factor = (float)(u->gamma * u->quality);
    const bpt_merge m = {.begin = s->begin,
                         .end = s->end,
                         .global = r->global,
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
static void apply(replay *r, uint32_t shard, bool *moved) {
    const bpt_replay_shard *log = &r->logs.shards[shard];
    const bpt_shard *s = bpt_shard_at(r->shards, shard);
    while (r->applied[shard] < log->n) {
        const bpt_replay_update *u = &log->updates[r->applied[shard]];
        worker *w = &r->workers[u->worker];
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

static bool is_over(const replay *r) {
    for (uint32_t j = 0; j < r->m; j++)
        if (r->workers[j].next_push < r->workers[j].log->n_pushes) return false;
    return true;
}

static bpt_status run_all(replay *r) {
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

static bpt_status read_final(replay *r) {
    char *path;
    BPT_TRY(bpt_strf(&path, "%s/model.safetensors", r->o->replay));
    const bpt_status status = bpt_safetensors_read(path, &r->model->segments, r->final);
    bpt_free(path);
    return status;
}

static bpt_status compare(const replay *r) {
    if (r->tail) BPT_TRY(bpt_replay_tail_get(r->tail, r->global + r->n));
    bpt_segments_settle(&r->model->segments, r->global); /* as the run has written them */
    size_t n_different = 0, first = 0;
    for (size_t i = 0; i < r->n_all; i++) {
        if (memcmp(&r->final[i], &r->global[i], sizeof(float)) == 0) continue;
        if (n_different++ == 0) first = i;
    }
    if (n_different == 0) {
        bpt_info("replayed: all %zu weights are equal, bit for bit", r->n_all);
        return BPT_OK;
    }
    return bpt_fail(BPT_ECORRUPT,
                    "replayed weights differ: %zu of %zu, the first is number %zu "
                    "(%.9g in the run, %.9g now)",
                    n_different, r->n_all, first, (double)r->final[first],
                    (double)r->global[first]);
}

/* ---- set-up ---- */

static uint32_t n_rounds(const bpt_train_options *o) {
    return o->partition == BPT_PARTITION_EVEN ? 1 : (uint32_t)o->idpa_rounds;
}

static bpt_status open_logs(replay *r) {
    const bpt_train_options *o = r->o;
    const bpt_pace_run run = {
        .epoch_samples = r->n_samples,
        .total_samples = bpt_train_total_samples(o, r->n_samples),
        .batch_all = (uint64_t)o->batch_size * r->m,
    };
    const bpt_pace pace = bpt_pace_begin(o->sync_every, run);
    const bpt_replay_facts facts = {
        .run = o->replay,
        .rule = r->rule,
        .elasticity = r->terms.elasticity,
        .judged = r->n_held > 0,
        .n_samples = r->n_samples,
        .batch = (uint64_t)o->batch_size,
        .least_every = pace.least,
        .most_every = pace.most,
        .n_rounds = n_rounds(o),
        .rebalances = o->partition != BPT_PARTITION_EVEN && o->rebalance > 0,
        .n_servers = (uint32_t)o->servers,
        .max_staleness = o->max_staleness < 0 ? BPT_STALENESS_NONE : (uint32_t)o->max_staleness,
    };
    return bpt_replay_logs_read(&facts, r->m, &r->logs);
}

static bpt_status open_shares(replay *r) {
    const bpt_replay_worker *w = &r->logs.workers[0];
    BPT_TRY(bpt_partition_create(bpt_train_order(r->o), r->n_samples, r->m, n_rounds(r->o),
                                 &r->shares));
    for (size_t i = 0; i < w->n_rounds; i++)
        BPT_TRY(bpt_partition_allot(r->shares, w->held + i * r->m));
    return BPT_OK;
}

static bpt_status open_worker(replay *r, uint32_t rank) {
    worker *w = &r->workers[rank];
    w->log = &r->logs.workers[rank];
    if (r->o->tuned) BPT_TRY(bpt_tuning_kept(r->o->replay, rank, &w->tuned));
    bpt_model_use_costs(r->model, w->tuned ? w->tuned->choices.cuts : NULL);
    BPT_TRY(bpt_network_create(r->trained, r->o->batch_size, bpt_train_activations(r->o),
                               bpt_train_learning(r->o, r->lr_factor), r->pool, &w->network));
    BPT_TRY(bpt_network_set(w->network, BPT_VECTOR_WEIGHTS, r->global));
    BPT_TRY(bpt_sampler_create_local(bpt_train_order(r->o), rank, r->shares, &w->sampler));
    BPT_TRY(BPT_NEW("base weights", r->n, &w->base));
    BPT_TRY(BPT_NEW("pushed weights", r->n, &w->pushed));
    BPT_TRY(BPT_NEW("submission", r->n, &w->part));
    BPT_TRY(BPT_NEW("answer", r->n, &w->answer));
    memcpy(w->base, r->global, r->n * sizeof *w->base);
    return BPT_OK;
}

static bpt_status open_model(replay *r) {
    r->lr_factor = bpt_train_lr_factor(r->o, r->update, r->m);
    r->schedule = bpt_train_schedule(r->o, r->lr_factor);
    const bpt_dataset_info *info = bpt_dataset_describe(r->dataset);
    const bpt_model_override shape = {
        .input = {.c = info->C, .h = info->H, .w = info->W},
        .classes = info->n_classes,
    };
    bpt_pool_options pool = BPT_POOL_OPTIONS_INIT;
    pool.n_workers = bpt_pool_allowed_cores();
    BPT_TRY(bpt_pool_create(&pool, &r->pool));
    BPT_TRY(bpt_model_load(r->o->model, &shape, &r->model));
    BPT_TRY(bpt_replay_tail_open(r->o->replay, r->m, r->model, r->o, r->pool, &r->tail));
    r->trained = r->tail ? bpt_replay_tail_head(r->tail) : r->model;
    r->n = r->trained->segments.n_elements;
    r->n_all = r->model->segments.n_elements;
    BPT_TRY(
        bpt_shard_log_read(r->o->replay, r->n, r->logs.n_shards, r->logs.first_host, &r->shards));
    BPT_TRY(bpt_statistic_spans(&r->trained->segments, &r->statistics, &r->n_statistics));
    BPT_TRY(BPT_NEW("global weights", r->n_all, &r->global));
    if (r->terms.momentum > 0) BPT_TRY(BPT_NEW("velocity", r->n, &r->velocity));
    BPT_TRY(BPT_NEW("scratch weights", r->n, &r->scratch));
    BPT_TRY(BPT_NEW("final weights", r->n_all, &r->final));
    BPT_TRY(read_final(r));
    BPT_TRY(bpt_initial_weights(r->o, &r->model->segments, r->global));
    if (r->tail) BPT_TRY(bpt_replay_tail_set(r->tail, r->global + r->n));
    return BPT_OK;
}

static bpt_status open_data(replay *r) {
    const bpt_train_options *o = r->o;
    const bpt_shaped_model shaped = {o->model, o->data, o->input_size, o->classes};
    BPT_TRY(bpt_shaped_model_open_data(&shaped, o->train_split, &r->dataset, &r->split));
    r->n_held = bpt_held_out(o, r->update, r->m, r->split->count);
    r->n_samples = r->split->count - r->n_held;
    if (r->n_held)
        BPT_TRY(bpt_held_out_draw((uint64_t)o->seed, r->split->count, (uint32_t)r->n_held,
                                  &r->records));
    bpt_loader_options loader = bpt_feed_options(o, r->split, (uint32_t)o->batch_size);
    bpt_held_out_skip_partners(r->records, r->n_held, r->split, &loader);
    BPT_TRY(bpt_loader_create(r->dataset, r->split, &loader, &r->loader));
    BPT_TRY(BPT_NEW("passes", (size_t)o->batch_size, &r->passes));
    return BPT_NEW("indices", (size_t)o->batch_size, &r->indices);
}

static void begin_progress(replay *r) {
    uint64_t n_steps = 0, n_pushes = 0;
    for (uint32_t j = 0; j < r->m; j++) {
        const bpt_replay_worker *w = &r->logs.workers[j];
        n_steps += w->pushes[w->n_pushes - 1].pushed_at;
        n_pushes += w->n_pushes;
    }
    bpt_info("replaying %" PRIu64 " steps and %" PRIu64 " pushes of %" PRIu32 " rank%s", n_steps,
             n_pushes, r->m, r->m == 1 ? "" : "s");
    bpt_replay_progress_begin(&r->progress, n_steps, r->m, r->n_samples, r->o->log_interval);
}

static bpt_status open_all(replay *r) {
    BPT_TRY(bpt_replay_count_workers(r->o->replay, &r->m));
    r->update = r->o->update == BPT_UPDATE_EASGD ? BPT_UPDATE_EASGD : BPT_UPDATE_AGWU;
    r->rule = bpt_train_rule(r->o, r->update);
    r->terms = bpt_train_terms(r->o, r->update, r->m);
    BPT_TRY(open_data(r));
    BPT_TRY(open_logs(r));
    BPT_TRY(open_model(r));
    BPT_TRY(open_shares(r));
    BPT_TRY(BPT_NEW("applied updates", r->logs.n_shards, &r->applied));
    BPT_TRY(BPT_NEW("met workers", r->logs.n_shards, &r->n_met));
    BPT_TRY(BPT_NEW("replay workers", r->m, &r->workers));
    for (uint32_t j = 0; j < r->m; j++) BPT_TRY(open_worker(r, j));
    begin_progress(r);
    return BPT_OK;
}

static void close_all(replay *r) {
    for (uint32_t j = 0; r->workers && j < r->m; j++) {
        worker *w = &r->workers[j];
        bpt_network_free(w->network);
        bpt_tuned_free(w->tuned);
        bpt_sampler_free(w->sampler);
        bpt_free(w->base);
        bpt_free(w->pushed);
        bpt_free(w->part);
        bpt_free(w->answer);
    }
    bpt_free(r->workers);
    bpt_free(r->applied);
    bpt_free(r->n_met);
    bpt_free(r->records);
    bpt_free(r->indices);
    bpt_free(r->passes);
    bpt_free(r->statistics);
    bpt_free(r->velocity);
    bpt_free(r->global);
    bpt_free(r->scratch);
    bpt_free(r->final);
    bpt_partition_free(r->shares);
    bpt_shard_table_free(r->shards);
    bpt_loader_destroy(r->loader);
    bpt_dataset_close(r->dataset);
    bpt_replay_tail_close(r->tail);
    bpt_pool_free(r->pool);
    bpt_model_free(r->model);
    bpt_replay_logs_free(&r->logs);
}

/* The options of the run itself; the command line goes before, for a dataset that has moved. */
static bpt_status load_options(const char *run, int argc, char **argv, bpt_train_options *o,
                               bpt_option_set **set) {
    char *config = NULL, **all = NULL;
    bpt_option_request request;
    bpt_status status;
    BPT_TRY(bpt_strf(&config, "%s/config.yaml", run));
    BPT_TRY_GOTO(status, BPT_NEW("arguments", (size_t)argc + 2, &all), done);
    memcpy(all, argv, (size_t)argc * sizeof *all);
    all[argc] = "--config";
    all[argc + 1] = config;
    status = bpt_options_parse(&bpt_train_command, argc + 2, all, o, &request, set);
    if (status == BPT_OK) status = bpt_train_options_check(o, *set);
done:
    bpt_free(all);
    bpt_free(config);
    return status;
}

/* Somebody may have changed the file. */
static bpt_status check_named(const char *run, const char *value, const char *key) {
    return value ? BPT_OK : bpt_fail(BPT_EUSAGE, "%s/config.yaml names no %s", run, key);
}

static bpt_status repeat(const bpt_train_options *of_run) {
    replay r = {.o = of_run};
    bpt_status status = open_all(&r);
    if (status == BPT_OK) status = run_all(&r);
    if (status == BPT_OK) status = compare(&r);
    close_all(&r);
    return status;
}

bpt_status bpt_replay(const char *run, int argc, char **argv) {
    bpt_train_options of_run = {0};
    bpt_option_set *set = NULL;
    bpt_status status = load_options(run, argc, argv, &of_run, &set);
    if (status == BPT_OK) status = check_named(run, of_run.model, "model");
    if (status == BPT_OK) status = check_named(run, of_run.data, "data");
    if (status == BPT_OK) status = bpt_replay_check_start(run, of_run.resume);
    if (status == BPT_OK) status = repeat(&of_run);
    bpt_option_set_free(set);
    if (status != BPT_OK && !bpt_error_last()->hint[0])
        bpt_hint(
            "a replay needs the run folder as an agwu or easgd run left it, resumed never, and the "
            "same dataset, model, initial weights and program");
    return status;
}
