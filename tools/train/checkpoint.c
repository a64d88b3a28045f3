#include "tools/train/checkpoint.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "inner/safetensors.h"
#include "outer/watch.h"
#include "tools/train/checkpoint_files.h"
#include "tools/train/layer_choice.h"
#include "tools/train/learning_options.h"
#include "tools/train/train_rule.h"
#include "tools/train/tuning.h"

#include <sys/stat.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FORMAT = 2 }; /* of rank-N.json */

static const char WEIGHTS[] = "model.safetensors", VELOCITY[] = "server.momentum.safetensors";

/* Vectors of state that the shards have beside the weights. */
static uint64_t n_velocities(const bpt_job *job) {
    return job->terms.momentum > 0;
}

/* ---- saving ---- */

/* What the ranks exchange by; of one that exchanges nothing, "local". */
static const char *rule_name(const bpt_job *job) {
    if (job->update == BPT_UPDATE_LOCAL) return bpt_update_choice_name(job->update);
    return bpt_train_rule(job->options, job->update)->name;
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

static bpt_status put_state(const bpt_job *job, bpt_json_writer *w) {
    bpt_counters count;
    BPT_TRY(bpt_job_count(job, &count));
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
    bpt_json_put_u64(w, "velocities", n_velocities(job));
    bpt_json_put_text(w, "cuts", bpt_tuning_cuts(job->options));
    bpt_json_put_text(w, "placement", bpt_layer_choice_name(job));
    bpt_json_put_u64(w, "placement_host", job->placed ? bpt_placed_host(job->placed) : 0);
    bpt_json_put_u64(w, "placement_updates",
                     job->placed ? bpt_placed_tail_updates(job->placed) : 0);
    bpt_json_put_u64(w, "rounds", bpt_job_rounds(job));
    bpt_json_put_u64(w, "held_out", job->held_out);
    bpt_json_put_u64(w, "train_samples", job->epoch_samples);
    bpt_json_put_u64(w, "dataset", job->dataset_identity);
    bpt_json_put_u64(w, "total_samples", job->total_samples);
    bpt_counters_put(&count, w);
    bpt_json_put_bool(w, "eval_due", job->eval_due);
    put_sampler(w, job->feed ? bpt_feed_state(job->feed) : (bpt_sampler_state){0});
    if (job->quality) bpt_quality_put(bpt_quality_state_get(job->quality), w, "quality");
    if (job->exchange) bpt_exchange_snapshot(job->exchange, w, "exchange");
    bpt_json_close_object(w);
    return BPT_OK;
}

/* Writes what is in job->flat. */
static bpt_status write_flat(bpt_job *job, const char *folder, const char *name,
                             bpt_checkpoint_file *file) {
    char *path;
    bpt_comm_operation_begin(job->comm, "the disk"); /* file by file: a large one takes its time */
    BPT_TRY(bpt_strf(&path, "%s/%s", folder, name));
    const bpt_status status =
        bpt_safetensors_write(path, &job->model->segments, job->flat, NULL, 0);
    bpt_free(path);
    return status == BPT_OK ? bpt_checkpoint_measure(folder, name, file) : status;
}

static bpt_status write_vector(bpt_job *job, bpt_vector which, const char *folder, const char *name,
                               bpt_checkpoint_file *file) {
    BPT_TRY(bpt_job_get(job, which, job->flat));
    return write_flat(job, folder, name, file);
}

static bpt_status write_state(const bpt_job *job, const char *folder, const char *name) {
    bpt_json_writer w = {0};
    const char *text;
    size_t length;
    char *path = NULL;
    bpt_status status = put_state(job, &w);
    if (status == BPT_OK) status = bpt_json_end_text(&w, &text, &length);
    if (status == BPT_OK) status = bpt_strf(&path, "%s/%s", folder, name);
    if (status == BPT_OK) status = bpt_file_write(path, text, length);
    bpt_free(path);
    bpt_json_free(&w);
    return status;
}

/* A file for each vector of the optimiser's state: "rank-0.momentum.safetensors". */
static void name_vector(const bpt_job *job, size_t i, char name[BPT_CHECKPOINT_NAME_SIZE]) {
    snprintf(name, BPT_CHECKPOINT_NAME_SIZE, "rank-%u.%s.safetensors", job->rank,
             bpt_job_learning(job).optimizer->state_name[i]);
}

/* Where the job stands, the weights and the shards' velocity (by rank 0 only), the optimiser's
 * state. */
enum { FILES_OF_A_RANK = 3 + BPT_MAX_STATES };

static bpt_status write_files(bpt_job *job, const char *folder,
                              bpt_checkpoint_file files[FILES_OF_A_RANK]) {
    char name[BPT_CHECKPOINT_NAME_SIZE];
    snprintf(name, sizeof name, "rank-%u.json", job->rank);
    BPT_TRY(write_state(job, folder, name));
    BPT_TRY(bpt_checkpoint_measure(folder, name, &files[0]));
    for (size_t i = 0; i < bpt_job_n_states(job); i++) {
        name_vector(job, i, name);
        BPT_TRY(
            write_vector(job, (bpt_vector)(BPT_VECTOR_STATE_0 + i), folder, name, &files[3 + i]));
    }
    if (job->rank != 0) return BPT_OK;
    return write_vector(job, BPT_VECTOR_WEIGHTS, folder, WEIGHTS, &files[1]);
}

/* The shards' velocity, gathered from all ranks; collective. */
static bpt_status write_velocity(bpt_job *job, const char *folder, bpt_checkpoint_file *file) {
    if (n_velocities(job) == 0) return BPT_OK;
    BPT_TRY(bpt_exchange_velocity(job->exchange, job->flat));
    return bpt_comm_agree(job->comm,
                          job->rank == 0 ? write_flat(job, folder, VELOCITY, file) : BPT_OK);
}

/* Rank 0: makes the checkpoint whole, and puts it in its place. */
static bpt_status complete(const char *checkpoints, const char *part, const char *folder,
                           bpt_checkpoint_file *files, size_t n_files) {
    size_t n = 0;
    uint64_t serial;
    for (size_t i = 0; i < n_files; i++)
        if (files[i].name[0]) files[n++] = files[i];
    BPT_TRY(bpt_checkpoint_next_serial(checkpoints, &serial));
    BPT_TRY(bpt_checkpoint_write_done(part, serial, files, n));
    BPT_TRY(bpt_checkpoint_place(part, folder));
    return bpt_dir_sync(checkpoints);
}

/* What is saved stays saved, also where an older checkpoint cannot be removed. */
static void prune(const bpt_job *job, const char *checkpoints) {
    if (bpt_checkpoint_prune(checkpoints, (size_t)job->options->checkpoint_keep) != BPT_OK)
        bpt_warn("older checkpoints stay: %s", bpt_error_last()->text);
}

/* Without its parents: a run folder that went away just now is not made anew. */
static bpt_status make_one(const char *path, bool may_exist) {
    if (mkdir(path, 0777) == 0 || (may_exist && errno == EEXIST)) return BPT_OK;
    return bpt_fail_write(errno, "create", path);
}

static bpt_status make_folder(const bpt_job *job, const char *checkpoints, const char *part) {
    bpt_status status = BPT_OK;
    if (job->rank == 0) {
        status = bpt_checkpoint_remove(part); /* what an interrupted job left there */
        if (status == BPT_OK) status = make_one(checkpoints, true);
        if (status == BPT_OK) status = make_one(part, false);
    }
    return bpt_comm_agree(job->comm, status);
}

static bpt_status save(bpt_job *job, const char *checkpoints, const char *part, const char *folder,
                       bpt_checkpoint_file *all) {
    bpt_checkpoint_file mine[FILES_OF_A_RANK] = {0};
    BPT_TRY(make_folder(job, checkpoints, part));
    BPT_TRY(bpt_comm_agree(job->comm, write_files(job, part, mine)));
    BPT_TRY(write_velocity(job, part, &mine[2]));
    BPT_TRY(bpt_comm_allgather(job->comm, mine, sizeof mine, all));
    bpt_status status = BPT_OK;
    if (job->rank == 0)
        status = complete(checkpoints, part, folder, all, (size_t)job->n_ranks * FILES_OF_A_RANK);
    BPT_TRY(bpt_comm_agree(job->comm, status));
    bpt_info("checkpoint %s at epoch %.2f", folder, bpt_job_epoch(job));
    if (job->rank == 0) prune(job, checkpoints);
    return BPT_OK;
}

/* Who removes the folder of the run while a checkpoint is written has not come to its end yet. */
static bpt_status check_run_again(const bpt_job *job) {
    nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    return bpt_run_folder_check(job->run);
}

static bpt_status explain_failure(const bpt_job *job, bpt_status status, const char *part) {
    const bpt_error error = *bpt_error_last();
    (void)bpt_checkpoint_remove(part);
    if (status != BPT_ENOSPC) BPT_TRY(check_run_again(job));
    bpt_error_record(status, "checkpoint not saved: %.440s", error.text);
    if (status == BPT_ENOSPC)
        bpt_hint("make room, then go on from the checkpoint before with --resume auto");
    else if (error.hint[0])
        bpt_hint("%s", error.hint);
    return status;
}

/* Where the next checkpoint goes, and where it is until it is whole. */
static bpt_status name_folders(const bpt_job *job, char **checkpoints, char **folder, char **part) {
    if (job->rank == 0) BPT_TRY(bpt_run_folder_check(job->run));
    BPT_TRY(bpt_run_folder_entry(job->run, "checkpoints", checkpoints));
    BPT_TRY(bpt_strf(folder, "%s/step-%08llu", *checkpoints,
                     (unsigned long long)(job->count.progress / job->batch_all)));
    return bpt_strf(part, "%s.part", *folder);
}

bpt_status bpt_checkpoint_save(bpt_job *job) {
    char *checkpoints = NULL, *folder = NULL, *part = NULL;
    bpt_checkpoint_file *all = NULL;
    bpt_status status = name_folders(job, &checkpoints, &folder, &part);
    if (status == BPT_OK)
        status = BPT_NEW("checkpoint files", (size_t)job->n_ranks * FILES_OF_A_RANK, &all);
    BPT_TRY_GOTO(status, bpt_comm_agree(job->comm, status), done);
    bpt_comm_doing(job->comm, "a checkpoint");
    bpt_comm_operation_begin(job->comm, "the disk");
    status = save(job, checkpoints, part, folder, all);
    bpt_comm_operation_end(job->comm);
    bpt_comm_doing(job->comm, "training");
    if (status != BPT_OK) status = explain_failure(job, status, part);
done:
    bpt_free(all);
    bpt_free(part);
    bpt_free(folder);
    bpt_free(checkpoints);
    return status;
}

/* ---- going on ---- */

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

static bool same_placement(const bpt_job *job, const bpt_checkpoint *c) {
    const char *mine = job->options->placement;
    if (strcmp(mine, "auto") == 0) return true;
    return strcmp(c->placement, strcmp(mine, "off") == 0 ? "" : mine) == 0;
}

/* Checkpoints of earlier versions do not say which dataset they are of. */
static bpt_status compare_dataset(const bpt_job *job, bpt_checkpoint *c) {
    const bpt_json *root = bpt_json_root(c->state);
    uint64_t theirs;
    if (c->differs || !bpt_json_find(root, "dataset")) return BPT_OK;
    BPT_TRY(bpt_json_get_u64(c->state, root, "dataset", 0, UINT64_MAX, &theirs));
    if (theirs != job->dataset_identity) c->differs = "what --data holds";
    return BPT_OK;
}

/* In what the job that wrote the state differs from this one; NULL: it can go on bit for bit. */
static bpt_status compare_shape(const bpt_job *job, bpt_checkpoint *c) {
    const struct {
        const char *key;
        uint64_t mine;
        const char *what;
        bool later; /* earlier versions had none of it, and did not write 0 */
    } numbers[] = {
        {"ranks", job->n_ranks, "the number of ranks", false},
        {"servers", job->n_servers, "--servers", true},
        {"batch_size", (uint64_t)job->options->batch_size, "--batch-size", false},
        {"seed", (uint64_t)job->options->seed, "--seed", false},
        {"order", bpt_train_order(job->options).kind, "--order", true},
        {"order_block", bpt_train_order(job->options).block, "--order-block", true},
        {"rounds", bpt_job_rounds(job), "--idpa-rounds", false},
        {"held_out", job->held_out, "--quality or --held-out", true},
        {"train_samples", job->epoch_samples, "the number of training samples", false},
        {"total_samples", job->total_samples, "--epochs", false},
        {"optimizer_states", bpt_job_n_states(job), "--momentum, 0 in one of the two,", false},
        {"velocities", n_velocities(job), "--server-momentum, 0 in one of the two,", true},
    };
    const bpt_json_doc *doc = c->state;
    const bpt_json *root = bpt_json_root(doc);
    const bpt_optimizer *mine = bpt_job_learning(job).optimizer;
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
    else if (strcmp(optimizer, mine->name) != 0)
        c->differs = "--optimizer";
    else if (!same_placement(job, c))
        c->differs = "--placement";
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t theirs = 0;
        if (!numbers[i].later || bpt_json_find(root, numbers[i].key))
            BPT_TRY(bpt_json_get_u64(doc, root, numbers[i].key, 0, UINT64_MAX, &theirs));
        if (!c->differs && theirs != numbers[i].mine) c->differs = numbers[i].what;
    }
    BPT_TRY(compare_dataset(job, c));
    c->exact = !c->differs;
    c->exchange = bpt_json_find(root, "exchange");
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
    uint64_t rounds, n_samples;
    BPT_TRY(bpt_json_get_u64(c->state, root, "rounds", 0, UINT64_MAX, &rounds));
    BPT_TRY(get_order(c->state, &theirs));
    BPT_TRY(bpt_json_get_u64(c->state, root, "train_samples", 0, UINT64_MAX, &n_samples));
    const bool global = rounds == 0 && bpt_job_rounds(job) == 0;
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

/* Checkpoints of earlier versions say nothing: batches were cut evenly. */
static bpt_status get_batch(const bpt_json_doc *doc, const bpt_job *job, bpt_checkpoint *c) {
    const bpt_json *root = bpt_json_root(doc);
    c->first_sample = job->first_sample;
    c->batch = job->batch;
    if (!bpt_json_find(root, "first_sample")) return BPT_OK;
    BPT_TRY(bpt_json_get_u64(doc, root, "first_sample", 0, UINT64_MAX, &c->first_sample));
    return bpt_json_get_u64(doc, root, "batch", 1, (uint64_t)job->options->batch_size, &c->batch);
}

static bpt_status get_state(const bpt_job *job, bpt_checkpoint *c) {
    const bpt_json_doc *doc = c->state;
    const bpt_json *root = bpt_json_root(doc);
    BPT_TRY(get_placement(doc, c));
    BPT_TRY(compare_shape(job, c));
    BPT_TRY(compare_order(job, c));
    BPT_TRY(compare_cuts(job, c));
    BPT_TRY(bpt_counters_get(doc, root, &c->count));
    BPT_TRY(bpt_json_get_bool(doc, root, "eval_due", &c->eval_due));
    BPT_TRY(bpt_json_get_u64(doc, root, "optimizer_updates", 0, UINT64_MAX, &c->updates));
    c->placement_updates = c->updates; /* under allreduce, of which earlier versions alone were */
    if (bpt_json_find(root, "placement_updates"))
        BPT_TRY(
            bpt_json_get_u64(doc, root, "placement_updates", 0, UINT64_MAX, &c->placement_updates));
    if (c->exact) {
        BPT_TRY(get_batch(doc, job, c));
        if (job->held_out) BPT_TRY(bpt_quality_get(doc, root, "quality", &c->quality));
        return get_sampler(doc, &c->sampler);
    }
    /* What the ranks of another job did says nothing about these. */
    c->count = (bpt_counters){.progress = c->count.progress, .seconds = c->count.seconds};
    return BPT_OK;
}

/* A rank that the checkpoint does not know learns the progress from rank 0's state. */
static bpt_status load_state(const bpt_job *job, bpt_checkpoint *c) {
    char *path, *text;
    size_t size;
    BPT_TRY(bpt_strf(&path, "%s/rank-%u.json", c->path, job->rank));
    if (!bpt_path_exists(path)) {
        bpt_free(path);
        BPT_TRY(bpt_strf(&path, "%s/rank-0.json", c->path));
    }
    bpt_status status = bpt_file_read(path, 256 << 20, &text, &size);
    if (status == BPT_OK) {
        status = bpt_json_parse(path, text, size, &c->state);
        bpt_free(text);
    }
    if (status == BPT_OK) status = check_format(c, path);
    if (status == BPT_OK) status = get_state(job, c);
    bpt_free(path);
    return status;
}

/* The newest whole checkpoint of a run, or the one that was named itself; NULL if there is none. */
static bpt_status locate(const char *resume, char **path) {
    char *done, *checkpoints;
    BPT_TRY(bpt_strf(&done, "%s/DONE", resume));
    const bool is_checkpoint = bpt_path_exists(done);
    bpt_free(done);
    if (is_checkpoint) return bpt_strdup(resume, path);
    BPT_TRY(bpt_strf(&checkpoints, "%s/checkpoints", resume));
    const bpt_status status = bpt_checkpoint_find(checkpoints, NULL, path);
    bpt_free(checkpoints);
    return status;
}

bpt_status bpt_checkpoint_expect(const char *resume) {
    char *path;
    BPT_TRY(locate(resume, &path));
    const bool found = path != NULL;
    bpt_free(path);
    if (found) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_ENOENT, "no whole checkpoint in %s", resume);
    bpt_hint(
        "--resume takes a run folder or one of its checkpoints/step-NNNNNNNN; a run makes them "
        "with --checkpoint-every or on a signal");
    return status;
}

/* Rank 0 chooses for all, so that ranks cannot differ in what they find.
 * @param[out] c->path stays NULL where there is none */
static bpt_status choose(const bpt_job *job, bpt_checkpoint *c) {
    const char *resume = job->options->resume;
    char path[PATH_MAX] = "";
    bpt_status status = BPT_OK;
    if (job->rank == 0) {
        char *found = NULL;
        status =
            locate(strcmp(resume, "auto") == 0 ? bpt_run_folder_path(job->run) : resume, &found);
        if (found) snprintf(path, sizeof path, "%s", found);
        bpt_free(found);
    }
    BPT_TRY(bpt_comm_agree(job->comm, status));
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, path, sizeof path));
    return path[0] ? bpt_strdup(path, &c->path) : BPT_OK;
}

bpt_status bpt_checkpoint_open(const bpt_job *job, bool *found, bpt_checkpoint *c) {
    *c = (bpt_checkpoint){0};
    *found = false;
    BPT_TRY(choose(job, c));
    if (!c->path) return BPT_OK;
    bpt_status status = bpt_checkpoint_verify(c->path, job->rank);
    if (status == BPT_OK) status = load_state(job, c);
    if (status != BPT_OK) {
        bpt_checkpoint_close(c);
        return status;
    }
    *found = true;
    return BPT_OK;
}

void bpt_checkpoint_close(bpt_checkpoint *c) {
    bpt_json_doc_free(c->state);
    bpt_free(c->path);
    *c = (bpt_checkpoint){0};
}

static void warn_of_torn(const bpt_job *job) {
    char *checkpoints, names[400];
    if (bpt_run_folder_entry(job->run, "checkpoints", &checkpoints) != BPT_OK) return;
    if (bpt_checkpoint_torn(checkpoints, names, sizeof names) == BPT_OK && names[0])
        bpt_warn(
            "no checkpoint in %s is whole (without DONE: %s): training starts anew, and the next "
            "checkpoint removes them",
            checkpoints, names);
    bpt_free(checkpoints);
}

void bpt_checkpoint_warn(const bpt_job *job, const bpt_checkpoint *c) {
    if (c && c->exact && !c->same_cuts)
        bpt_warn(
            "what rank %u cuts convolutions by has changed since %s: the last bits of results may "
            "not be those of a run that never stopped (--tuned decides)",
            job->rank, c->path);
    if (job->rank != 0) return;
    if (!c && job->options->resume) warn_of_torn(job);
    if (!c || c->exact) return;
    const char *order = "the optimiser's state and the order of samples start anew";
    if (c->same_order)
        order = "the optimiser's state starts anew, the order of samples goes on";
    else if (!job->shares)
        order = "the optimiser's state starts anew, the samples come in another order";
    bpt_warn("%s is of another job (%s differs): %s", c->path, c->differs, order);
}

static bpt_status read_vector(const bpt_checkpoint *c, const bpt_job *job, const char *name,
                              float *values) {
    char *path;
    BPT_TRY(bpt_strf(&path, "%s/%s", c->path, name));
    const bpt_status status = bpt_safetensors_read(path, &job->model->segments, values);
    bpt_free(path);
    return status;
}

bpt_status bpt_checkpoint_read(const bpt_checkpoint *c, bpt_job *job, float *weights) {
    if (job->rank == 0) BPT_TRY(read_vector(c, job, WEIGHTS, weights));
    if (!c->exact) return BPT_OK;
    for (size_t i = 0; i < bpt_job_n_states(job); i++) {
        char name[BPT_CHECKPOINT_NAME_SIZE];
        name_vector(job, i, name);
        BPT_TRY(read_vector(c, job, name, job->flat));
        BPT_TRY(bpt_job_set_state(job, (bpt_vector)(BPT_VECTOR_STATE_0 + i), job->flat));
    }
    bpt_job_set_updates(job, c->updates, c->placement_updates);
    return BPT_OK;
}

bpt_status bpt_checkpoint_velocity(const bpt_checkpoint *c, const bpt_job *job, float *velocity) {
    return job->rank == 0 ? read_vector(c, job, VELOCITY, velocity) : BPT_OK;
}
