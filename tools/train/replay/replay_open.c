/* What a replay is put together from: dataset, logs, model, shares, and a network a worker. */
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "inner/weights/safetensors.h"
#include "outer/rules/staleness.h"
#include "tools/shaped_model.h"
#include "tools/train/data/feed.h"
#include "tools/train/data/held_out.h"
#include "tools/train/exchange/pace.h"
#include "tools/train/exchange/statistic_spans.h"
#include "tools/train/options/idpa_rounds.h"
#include "tools/train/options/learning_options.h"
#include "tools/train/options/train_rule.h"
#include "tools/train/replay/replay_state.h"
#include "tools/train/run/initial_weights.h"
#include "tools/train/run/shard_log.h"
#include "tools/train/run/tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bpt_status read_final(bpt__replay *r) {
    char *path;
    BPT_TRY(bpt_strf(&path, "%s/model.safetensors", r->o->replay));
    const bpt_status status = bpt_safetensors_read(path, &r->model->segments, r->final);
    bpt_free(path);
    return status;
}

static uint32_t n_rounds(const bpt__replay *r) {
    const bpt_train_options *o = r->o;
    if (o->partition == BPT_PARTITION_EVEN) return 1;
    return bpt_idpa_rounds(o->idpa_rounds, o->epochs, r->m);
}

static bpt_status open_logs(bpt__replay *r) {
    const bpt_train_options *o = r->o;
    const bpt_pace_run run = {
        .epoch_samples = r->n_samples,
        .total_samples = bpt_train_total_samples(o, r->n_samples),
        .batch_all = (uint64_t)o->batch_size * r->m,
        .n_workers = r->m,
        .shared_momentum = bpt_train_shares_momentum(o, r->update, r->m),
    };
    const bpt_pace pace = bpt_pace_begin(o->sync_every, run);
    const bpt_replay_facts facts = {
        .run = o->replay,
        .rule = r->rule,
        .elasticity = r->terms.elasticity,
        .judged = r->n_held > 0,
        .n_samples = r->n_samples,
        .batch = (uint64_t)o->batch_size,
        .first_every = pace.least,
        .least_every = pace.follows ? 1 : pace.least,
        .most_every = pace.limit,
        .n_rounds = n_rounds(r),
        .rebalances = o->partition != BPT_PARTITION_EVEN && o->rebalance > 0,
        .n_servers = (uint32_t)o->servers,
        .max_staleness = o->max_staleness < 0 ? BPT_STALENESS_NONE : (uint32_t)o->max_staleness,
    };
    return bpt_replay_logs_read(&facts, r->m, &r->logs);
}

static bpt_status open_shares(bpt__replay *r) {
    const bpt_replay_worker *w = &r->logs.workers[0];
    BPT_TRY(
        bpt_partition_create(bpt_train_order(r->o), r->n_samples, r->m, n_rounds(r), &r->shares));
    for (size_t i = 0; i < w->n_rounds; i++)
        BPT_TRY(bpt_partition_allot(r->shares, w->held + i * r->m));
    return BPT_OK;
}

void bpt__replay_use_cuts(const bpt__replay *r, uint32_t rank) {
    const bpt_tuned *tuned = r->workers[rank].tuned;
    bpt_model_use_costs(r->model, tuned ? tuned->choices.cuts : NULL);
}

static bpt_status read_tuned(bpt__replay *r) {
    for (uint32_t j = 0; j < r->m; j++)
        if (r->ranks[j].tuned) BPT_TRY(bpt_tuning_kept(r->o->replay, j, &r->workers[j].tuned));
    return BPT_OK;
}

static bpt_status open_worker(bpt__replay *r, uint32_t rank) {
    bpt__replayed *w = &r->workers[rank];
    w->log = &r->logs.workers[rank];
    bpt__replay_use_cuts(r, rank);
    BPT_TRY(bpt_network_create(r->trained, r->o->batch_size, r->ranks[rank].activations,
                               bpt_train_learning(r->o, r->lr_factor), r->pool, &w->network));
    BPT_TRY(bpt_network_set(w->network, BPT_VECTOR_WEIGHTS, r->global));
    BPT_TRY(bpt_sampler_create_local(bpt_train_order(r->o), rank, r->shares, &w->sampler));
    BPT_TRY(BPT_NEW("base weights", r->n, &w->base));
    BPT_TRY(BPT_NEW("pushed weights", r->n, &w->pushed));
    BPT_TRY(BPT_NEW("submission", r->n, &w->part));
    BPT_TRY(BPT_NEW("answer", r->n, &w->answer));
    memcpy(w->base, r->exchanged, r->n * sizeof *w->base);
    w->momentum = (bpt_momentum_of_all){
        .rule = bpt_train_shared_momentum(r->o, r->update, r->m, r->tail != NULL),
        .last = bpt__replay_point(r, w),
    };
    return BPT_OK;
}

/* The model file of a run may have been named from another folder. */
static bpt_status find_model(const bpt_train_options *o) {
    static const char kept[] = "it counts from where the run was started; a copy was kept: --model";
    char path[BPT_ERROR_HINT_SIZE], word[BPT_ERROR_HINT_SIZE - sizeof kept];
    bpt_model *model;
    if (bpt_model_is_there(o->model)) return BPT_OK;
    const bpt_status status = bpt_model_load(o->model, NULL, &model); /* says so */
    if (status == BPT_OK) bpt_model_free(model);                      /* it came just now */
    if (status != BPT_EUSAGE) return status;
    const size_t length = (size_t)snprintf(path, sizeof path, "%s/model.yaml", o->replay);
    const bool named = length < sizeof path && bpt_text_quote(path, word, sizeof word);
    bpt_hint("%s %s", kept, named ? word : "RUN/model.yaml");
    return status;
}

static bpt_status open_weights(bpt__replay *r) {
    const bpt_status status = bpt_initial_weights(r->o, &r->model->segments, r->global);
    if (status == BPT_ENOENT)
        bpt_hint("say where what the run began with is now: --init-weights FILE");
    return status;
}

static bpt_status open_model(bpt__replay *r) {
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
    BPT_TRY(bpt_train_freeze(r->o, r->model));
    BPT_TRY(bpt_replay_tail_open(r->o, r->ranks, r->m, r->model, r->pool, &r->tail));
    r->trained = r->tail ? bpt_replay_tail_head(r->tail) : r->model;
    r->n = bpt_model_learned_elements(r->trained);
    r->n_all = r->model->segments.n_elements;
    BPT_TRY(
        bpt_shard_log_read(r->o->replay, r->n, r->logs.n_shards, r->logs.first_host, &r->shards));
    BPT_TRY(bpt_statistic_spans(r->trained, &r->statistics, &r->n_statistics));
    BPT_TRY(BPT_NEW("global weights", r->n_all, &r->global));
    r->exchanged = r->global + bpt_model_frozen_elements(r->trained);
    if (r->terms.momentum > 0) BPT_TRY(BPT_NEW("velocity", r->n, &r->velocity));
    BPT_TRY(BPT_NEW("scratch weights", r->n, &r->scratch));
    BPT_TRY(BPT_NEW("final weights", r->n_all, &r->final));
    BPT_TRY(read_final(r));
    BPT_TRY(open_weights(r));
    if (r->tail) BPT_TRY(bpt_replay_tail_set(r->tail, r->global + r->n));
    return BPT_OK;
}

static bpt_status open_data(bpt__replay *r) {
    const bpt_train_options *o = r->o;
    const bpt_shaped_model shaped = {o->model, o->data, o->input_size, o->classes};
    const bool is_there = access(o->data, F_OK) == 0;
    if (is_there) BPT_TRY(find_model(o)); /* an encoded dataset is opened for it */
    const bpt_status status =
        bpt_shaped_model_open_data(&shaped, o->train_split, &r->dataset, &r->split);
    if (status == BPT_ENOENT)
        bpt_hint("%s", is_there ? "the run is of another dataset: --data DATASET names it"
                                : "say where the dataset is now: --data DATASET");
    BPT_TRY(status);
    r->n_held = bpt_held_out(o, r->update, r->m, r->split->count);
    r->n_samples = r->split->count - r->n_held;
    if (r->n_held)
        BPT_TRY(bpt_held_out_draw((uint64_t)o->seed, r->split->count, (uint32_t)r->n_held,
                                  &r->records));
    bpt_loader_options loader = bpt_feed_options(o, r->split, (uint32_t)o->batch_size, false);
    bpt_held_out_skip_partners(r->records, r->n_held, r->split, &loader);
    BPT_TRY(bpt_loader_create(r->dataset, r->split, &loader, &r->loader));
    BPT_TRY(BPT_NEW("passes", (size_t)o->batch_size, &r->passes));
    return BPT_NEW("indices", (size_t)o->batch_size, &r->indices);
}

static void begin_progress(bpt__replay *r) {
    uint64_t n_steps = 0, n_pushes = 0;
    for (uint32_t j = 0; j < r->m; j++) {
        const bpt_replay_worker *w = &r->logs.workers[j];
        n_steps += w->pushes[w->n_pushes - 1].pushed_at;
        n_pushes += w->n_pushes;
    }
    bpt_replay_progress_begin(&r->progress, n_steps, r->m, r->n_samples, r->o->log_interval);
    bpt_info("replaying %" PRIu64 " steps of %" PRIu32 " rank%s, with %" PRIu64 " pushes",
             bpt_replay_progress_steps(&r->progress), r->m, r->m == 1 ? "" : "s", n_pushes);
}

bpt_status bpt__replay_open(bpt__replay *r) {
    BPT_TRY(bpt_replay_count_workers(r->o->replay, &r->m));
    r->update = r->o->update == BPT_UPDATE_EASGD ? BPT_UPDATE_EASGD : BPT_UPDATE_AGWU;
    r->rule = bpt_train_rule(r->o, r->update);
    r->terms = bpt_train_terms(r->o, r->update, r->m);
    BPT_TRY(BPT_NEW("ranks of the run", r->m, &r->ranks));
    BPT_TRY(bpt_replay_ranks_read(r->o, r->m, r->ranks));
    BPT_TRY(open_data(r));
    BPT_TRY(open_logs(r));
    BPT_TRY(open_model(r));
    BPT_TRY(BPT_NEW("replay workers", r->m, &r->workers));
    BPT_TRY(read_tuned(r));
    BPT_TRY(bpt__replay_check_memory(r));
    BPT_TRY(open_shares(r));
    BPT_TRY(BPT_NEW("applied updates", r->logs.n_shards, &r->applied));
    BPT_TRY(BPT_NEW("met workers", r->logs.n_shards, &r->n_met));
    for (uint32_t j = 0; j < r->m; j++) BPT_TRY(open_worker(r, j));
    begin_progress(r);
    return BPT_OK;
}

void bpt__replay_close(bpt__replay *r) {
    for (uint32_t j = 0; r->workers && j < r->m; j++) {
        bpt__replayed *w = &r->workers[j];
        bpt_network_free(w->network);
        bpt_tuned_free(w->tuned);
        bpt_sampler_free(w->sampler);
        bpt_free(w->base);
        bpt_free(w->pushed);
        bpt_free(w->part);
        bpt_free(w->answer);
    }
    bpt_free(r->workers);
    bpt_free(r->ranks);
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
