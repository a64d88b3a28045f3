#include "tools/train/job/checkpoint_state.h"

#include "tools/precision.h"
#include "tools/train/job/layer_choice.h"
#include "tools/train/options/learning_options.h"
#include "tools/train/options/train_rule.h"
#include "tools/train/run/tuning.h"

#include <string.h>

enum { FORMAT = 2 };

uint64_t bpt_checkpoint_velocities(const bpt_job *job) {
    return job->terms.momentum > 0;
}

/* What the ranks exchange by; of one that exchanges nothing, "local". */
static const char *rule_name(const bpt_job *job) {
    if (job->update == BPT_UPDATE_LOCAL) return bpt_update_choice_name(job->update);
    return bpt_train_rule(job->options, job->update)->name;
}

static const char *device_name(const bpt_job *job) {
    return job->device ? job->device->kind->name : "cpu";
}

static const char *precision_name(const bpt_job *job) {
    return bpt_precision_text((bpt_precision)job->options->precision, job->device);
}

static void put_sampler(bpt_json_writer *w, bpt_sampler_state s) {
    bpt_json_open_object(w, "sampler");
    bpt_json_put_u64(w, "pass", s.pass);
    bpt_json_put_u64(w, "position", s.position);
    bpt_json_put_u64(w, "rounds", s.rounds);
    bpt_json_put_u64(w, "covered", s.covered);
    bpt_json_put_u64(w, "next_rounds", s.next_rounds);
    bpt_json_close_object(w);
}

void bpt_checkpoint_put_state(const bpt_job *job, bpt_json_writer *w) {
    const bpt_counters count = bpt_job_count(job);
    bpt_json_open_object(w, NULL);
    bpt_json_put_u64(w, "format", FORMAT);
    bpt_json_put_u64(w, "rank", job->rank);
    bpt_json_put_u64(w, "ranks", job->n_ranks);
    bpt_json_put_u64(w, "servers", job->n_servers);
    bpt_json_put_text(w, "update", bpt_update_choice_name(job->update));
    bpt_json_put_text(w, "rule", rule_name(job));
    bpt_json_put_text(w, "partition", bpt_partition_choice_name(job->partition));
    bpt_json_put_u64(w, "batch_size", (uint64_t)job->options->batch_size);
    bpt_json_put_u64(w, "first_sample", job->first_sample);
    bpt_json_put_u64(w, "batch", job->batch);
    bpt_json_put_u64(w, "seed", (uint64_t)job->options->seed);
    bpt_json_put_u64(w, "order", bpt_train_order(job->options).kind);
    bpt_json_put_u64(w, "order_block", bpt_train_order(job->options).block);
    bpt_json_put_text(w, "optimizer", bpt_job_learning(job).optimizer->name);
    bpt_json_put_u64(w, "optimizer_states", bpt_job_n_states(job));
    bpt_json_put_u64(w, "optimizer_updates", bpt_job_updates(job));
    bpt_json_put_u64(w, "velocities", bpt_checkpoint_velocities(job));
    bpt_json_put_text(w, "cuts", bpt_tuning_cuts(job->options));
    bpt_json_put_text(w, "device", device_name(job));
    if (!bpt_job_is_server(job)) bpt_json_put_text(w, "precision", precision_name(job));
    bpt_json_put_text(w, "placement", bpt_layer_choice_name(job));
    bpt_json_put_u64(w, "placement_host", job->placed ? bpt_placed_host(job->placed) : 0);
    bpt_json_put_u64(w, "placement_updates",
                     job->placed ? bpt_placed_tail_updates(job->placed) : 0);
    bpt_json_put_u64(w, "rounds", bpt_job_rounds(job));
    bpt_json_put_u64(w, "held_out", job->held_out);
    bpt_json_put_u64(w, "train_samples", job->epoch_samples);
    bpt_json_put_u64(w, "dataset", job->dataset_identity);
    bpt_json_put_u64(w, "model", job->model_identity);
    bpt_json_put_u64(w, "frozen", job->model->n_frozen);
    bpt_json_put_u64(w, "input_height", (uint64_t)job->model->input.h);
    bpt_json_put_u64(w, "input_width", (uint64_t)job->model->input.w);
    bpt_json_put_text(w, "train_split", job->options->train_split);
    bpt_json_put_u64(w, "total_samples", job->total_samples);
    bpt_counters_put(&count, w);
    bpt_json_put_bool(w, "eval_due", job->eval_due);
    put_sampler(w, job->feed ? bpt_feed_state(job->feed) : (bpt_sampler_state){0});
    if (job->quality) bpt_quality_put(bpt_quality_state_get(job->quality), w, "quality");
    if (job->exchange) bpt_exchange_snapshot(job->exchange, w, "exchange");
    bpt_json_close_object(w);
}

/* ---- what another job, or this one, has written ---- */

static bpt_status get_sampler(const bpt_json_doc *doc, bpt_sampler_state *s) {
    const bpt_json *o;
    uint64_t rounds, covered, next_rounds;
    BPT_TRY(bpt_json_get_object(doc, bpt_json_root(doc), "sampler", &o));
    BPT_TRY(bpt_json_get_u64(doc, o, "pass", 0, UINT64_MAX, &s->pass));
    BPT_TRY(bpt_json_get_u64(doc, o, "position", 0, UINT64_MAX, &s->position));
    BPT_TRY(bpt_json_get_u64(doc, o, "rounds", 0, UINT32_MAX, &rounds));
    BPT_TRY(bpt_json_get_u64(doc, o, "covered", 0, UINT32_MAX, &covered));
    BPT_TRY(bpt_json_get_u64(doc, o, "next_rounds", 0, UINT32_MAX, &next_rounds));
    s->rounds = (uint32_t)rounds;
    s->next_rounds = (uint32_t)next_rounds;
    s->covered = (uint32_t)covered;
    return BPT_OK;
}

/* Checkpoints of earlier versions say nothing: every rank computed all layers. */
static bpt_status get_placement(const bpt_json_doc *doc, bpt_checkpoint *c) {
    const bpt_json *root = bpt_json_root(doc);
    c->placement = "";
    if (!bpt_json_find(root, "placement")) return BPT_OK;
    BPT_TRY(bpt_json_get_text(doc, root, "placement", &c->placement));
    return bpt_json_get_u64(doc, root, "placement_host", 0, UINT32_MAX, &c->placement_host);
}

/* A checkpoint says what its job did, so what counts is what this one will do: a layer may be named
 * where none can be placed, as on one rank. */
static bool same_placement(const bpt_job *job, const bpt_checkpoint *c) {
    const char *named = job->options->placement;
    size_t border;
    if (strcmp(named, "auto") == 0) return true;
    return strcmp(c->placement, bpt_layer_choice_is_named(job, &border) ? named : "") == 0;
}

/* Checkpoints of earlier versions do not name it. */
static bpt_status compare_split(const bpt_job *job, bpt_checkpoint *c) {
    const bpt_json *root = bpt_json_root(c->state);
    const char *split = job->options->train_split;
    if (bpt_json_find(root, "train_split"))
        BPT_TRY(bpt_json_get_text(c->state, root, "train_split", &split));
    if (!c->differs && strcmp(split, job->options->train_split) != 0) c->differs = "--train-split";
    return BPT_OK;
}

/* What it means where a number is not there: earlier versions had none of it, or did not say. */
typedef enum absence { NEEDED, WAS_0, UNKNOWN } absence;

static bpt_status compare_names(const bpt_job *job, bpt_checkpoint *c) {
    const bpt_json_doc *doc = c->state;
    const bpt_json *root = bpt_json_root(doc);
    const char *rule, *partition, *optimizer;
    BPT_TRY(bpt_json_get_text(doc, root, "update", &c->update));
    BPT_TRY(bpt_json_get_text(doc, root, "rule", &rule));
    BPT_TRY(bpt_json_get_text(doc, root, "partition", &partition));
    BPT_TRY(bpt_json_get_text(doc, root, "optimizer", &optimizer));
    if (strcmp(c->update, bpt_update_choice_name(job->update)) != 0)
        c->differs = "--update";
    else if (strcmp(rule, rule_name(job)) != 0)
        c->differs = "--gamma";
    else if (strcmp(partition, bpt_partition_choice_name(job->partition)) != 0)
        c->differs = "--partition";
    else if (strcmp(optimizer, bpt_job_learning(job).optimizer->name) != 0)
        c->differs = "--optimizer";
    else if (!same_placement(job, c))
        c->differs = "--placement";
    return BPT_OK;
}

/* A job keeps to those of its checkpoint where it may. */
static uint32_t rounds_after(const bpt_job *job, const bpt_checkpoint *c) {
    return bpt_job_rounds_are_free(job) && c->rounds > 0 ? c->rounds : bpt_job_rounds(job);
}

static bpt_status compare_numbers(const bpt_job *job, bpt_checkpoint *c) {
    const uint32_t rounds = rounds_after(job, c);
    static const char input_size[] = "the size of the input, by --input-size, --model or --data,";
    const struct {
        const char *key;
        uint64_t mine;
        const char *what;
        absence absent;
    } numbers[] = {
        {"ranks", job->n_ranks, "the number of ranks", NEEDED},
        {"servers", job->n_servers, "--servers", WAS_0},
        {"batch_size", (uint64_t)job->options->batch_size, "--batch-size", NEEDED},
        {"seed", (uint64_t)job->options->seed, "--seed", NEEDED},
        {"order", bpt_train_order(job->options).kind, "--order", WAS_0},
        {"order_block", bpt_train_order(job->options).block, "--order-block", WAS_0},
        {"held_out", job->held_out, "--quality or --held-out", WAS_0},
        {"train_samples", job->epoch_samples, "the number of training samples", NEEDED},
        {"total_samples", job->total_samples, "--epochs", NEEDED},
        {"rounds", rounds, "--idpa-rounds", NEEDED},
        {"optimizer_states", bpt_job_n_states(job), "--momentum, 0 in one of the two,", NEEDED},
        {"velocities", bpt_checkpoint_velocities(job), "--server-momentum, 0 in one of the two,",
         WAS_0},
        /* By the size of the input the identity of an encoded dataset differs too, and that of the
         * model. */
        {"input_height", (uint64_t)job->model->input.h, input_size, UNKNOWN},
        {"input_width", (uint64_t)job->model->input.w, input_size, UNKNOWN},
        {"dataset", job->dataset_identity, "what --data holds", UNKNOWN},
        {"model", job->model_identity, "what --model says", UNKNOWN},
        {"frozen", job->model->n_frozen, "--freeze-before", WAS_0},
    };
    const bpt_json_doc *doc = c->state;
    const bpt_json *root = bpt_json_root(doc);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t theirs = numbers[i].absent == UNKNOWN ? numbers[i].mine : 0;
        if (numbers[i].absent == NEEDED || bpt_json_find(root, numbers[i].key))
            BPT_TRY(bpt_json_get_u64(doc, root, numbers[i].key, 0, UINT64_MAX, &theirs));
        if (!c->differs && theirs != numbers[i].mine) c->differs = numbers[i].what;
    }
    return BPT_OK;
}

/* In what the job that wrote the state differs from this one; NULL: it can go on bit for bit. */
static bpt_status compare_shape(const bpt_job *job, bpt_checkpoint *c) {
    uint64_t rounds;
    BPT_TRY(bpt_json_get_u64(c->state, bpt_json_root(c->state), "rounds", 0, UINT32_MAX, &rounds));
    c->rounds = (uint32_t)rounds;
    BPT_TRY(compare_names(job, c));
    BPT_TRY(compare_numbers(job, c));
    BPT_TRY(compare_split(job, c));
    c->exact = !c->differs;
    c->exchange = bpt_json_find(bpt_json_root(c->state), "exchange");
    return BPT_OK;
}

/* Checkpoints of earlier versions say nothing: all came at random. */
static bpt_status get_order(const bpt_json_doc *doc, bpt_order *order) {
    const bpt_json *root = bpt_json_root(doc);
    uint64_t kind, block;
    BPT_TRY(bpt_json_get_u64(doc, root, "seed", 0, UINT64_MAX, &order->seed));
    if (!bpt_json_find(root, "order")) return BPT_OK;
    BPT_TRY(bpt_json_get_u64(doc, root, "order", 0, BPT_ORDER_SEQUENTIAL, &kind));
    BPT_TRY(bpt_json_get_u64(doc, root, "order_block", 0, UINT32_MAX, &block));
    order->kind = (bpt_order_kind)kind;
    order->block = (uint32_t)block;
    return BPT_OK;
}

/* Without shares all ranks draw from one order, which is given by seed, kind and number of samples.
 */
static bpt_status compare_order(const bpt_job *job, bpt_checkpoint *c) {
    const bpt_json *root = bpt_json_root(c->state);
    const bpt_order mine = bpt_train_order(job->options);
    bpt_order theirs = {0};
    uint64_t n_samples;
    BPT_TRY(get_order(c->state, &theirs));
    BPT_TRY(bpt_json_get_u64(c->state, root, "train_samples", 0, UINT64_MAX, &n_samples));
    const bool global = c->rounds == 0 && bpt_job_rounds(job) == 0;
    const bool same =
        theirs.seed == mine.seed && theirs.kind == mine.kind && theirs.block == mine.block;
    c->same_order = c->exact || (global && same && n_samples == job->epoch_samples);
    return BPT_OK;
}

/* Checkpoints of earlier versions say nothing: convolutions were whole. */
static bpt_status compare_cuts(const bpt_job *job, bpt_checkpoint *c) {
    const bpt_json *root = bpt_json_root(c->state);
    const char *cuts = "";
    if (bpt_json_find(root, "cuts")) BPT_TRY(bpt_json_get_text(c->state, root, "cuts", &cuts));
    c->same_cuts = strcmp(cuts, bpt_tuning_cuts(job->options)) == 0;
    return BPT_OK;
}

/* Checkpoints of earlier versions say nothing: all ranks computed on cores. */
static bpt_status compare_device(const bpt_job *job, bpt_checkpoint *c) {
    const bpt_json *root = bpt_json_root(c->state);
    c->device = "cpu";
    if (bpt_json_find(root, "device"))
        BPT_TRY(bpt_json_get_text(c->state, root, "device", &c->device));
    c->same_device = strcmp(c->device, device_name(job)) == 0;
    return BPT_OK;
}

/* Checkpoints of earlier versions do not say, nor do servers, which compute nothing. */
static bpt_status compare_precision(const bpt_job *job, bpt_checkpoint *c) {
    const bpt_json *root = bpt_json_root(c->state);
    c->precision = NULL;
    if (bpt_json_find(root, "precision") && !bpt_job_is_server(job))
        BPT_TRY(bpt_json_get_text(c->state, root, "precision", &c->precision));
    c->same_precision = !c->precision || strcmp(c->precision, precision_name(job)) == 0;
    return BPT_OK;
}

static bpt_status check_format(const bpt_checkpoint *c, const char *path) {
    uint64_t format;
    BPT_TRY(bpt_json_get_u64(c->state, bpt_json_root(c->state), "format", 1, UINT32_MAX, &format));
    if (format == FORMAT) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EDATA, "%s has format %llu, this version of bpt-train reads %d", path,
                 (unsigned long long)format, FORMAT);
    bpt_hint("go on with the version that wrote it");
    return status;
}

bpt_status bpt_checkpoint_get_batch(const bpt_json_doc *state, uint32_t n_ranks, int64_t servers,
                                    int64_t *batch) {
    const bpt_json *root = bpt_json_root(state);
    const char *update, *sums = bpt_update_choice_name(BPT_UPDATE_ALLREDUCE);
    uint64_t ranks, apart = 0, size;
    BPT_TRY(bpt_json_get_u64(state, root, "ranks", 1, UINT32_MAX, &ranks));
    if (bpt_json_find(root, "servers"))
        BPT_TRY(bpt_json_get_u64(state, root, "servers", 0, UINT32_MAX, &apart));
    BPT_TRY(bpt_json_get_text(state, root, "update", &update));
    BPT_TRY(bpt_json_get_u64(state, root, "batch_size", 1, INT64_MAX, &size));
    const bool same = ranks == n_ranks && apart == (uint64_t)servers && strcmp(update, sums) != 0;
    *batch = same ? (int64_t)size : 0;
    return BPT_OK;
}

/* Checkpoints of earlier versions say nothing: batches were cut evenly. */
static bpt_status get_cut(const bpt_json_doc *doc, const bpt_job *job, bpt_checkpoint *c) {
    const bpt_json *root = bpt_json_root(doc);
    c->first_sample = job->first_sample;
    c->batch = job->batch;
    if (!bpt_json_find(root, "first_sample")) return BPT_OK;
    BPT_TRY(bpt_json_get_u64(doc, root, "first_sample", 0, UINT64_MAX, &c->first_sample));
    return bpt_json_get_u64(doc, root, "batch", 1, (uint64_t)job->options->batch_size, &c->batch);
}

bpt_status bpt_checkpoint_get_state(const bpt_job *job, const char *path, bpt_checkpoint *c) {
    const bpt_json_doc *doc = c->state;
    const bpt_json *root = bpt_json_root(doc);
    BPT_TRY(check_format(c, path));
    BPT_TRY(get_placement(doc, c));
    BPT_TRY(compare_shape(job, c));
    BPT_TRY(compare_order(job, c));
    BPT_TRY(compare_cuts(job, c));
    BPT_TRY(compare_device(job, c));
    BPT_TRY(compare_precision(job, c));
    BPT_TRY(bpt_counters_get(doc, root, &c->count));
    BPT_TRY(bpt_json_get_bool(doc, root, "eval_due", &c->eval_due));
    BPT_TRY(bpt_json_get_u64(doc, root, "optimizer_updates", 0, UINT64_MAX, &c->updates));
    c->placement_updates = c->updates; /* under allreduce, of which earlier versions alone were */
    if (bpt_json_find(root, "placement_updates"))
        BPT_TRY(
            bpt_json_get_u64(doc, root, "placement_updates", 0, UINT64_MAX, &c->placement_updates));
    if (c->exact) {
        BPT_TRY(get_cut(doc, job, c));
        if (job->held_out && !bpt_job_is_server(job)) /* servers judge nothing */
            BPT_TRY(bpt_quality_get(doc, root, "quality", &c->quality));
        return get_sampler(doc, &c->sampler);
    }
    /* What the ranks of another job did says nothing about these. */
    c->count = (bpt_counters){.progress = c->count.progress, .seconds = c->count.seconds};
    return BPT_OK;
}
