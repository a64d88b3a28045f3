#include "tools/train/run/tuning.h"

#include "base/checksum.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "tools/train/options/learning_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct bpt_tuning {
    char *path; /* of this host */
    bpt_tuned *file;
    /* As they were given. */
    const char *policy;
    int64_t threads, loader_threads, prefetch;
    char taken[200], kept[200]; /* names and values of options, for a message */
    char cuts[17];              /* bpt_tuning_cuts() */
};

/* ---- taking values ---- */

/* A file that a run has written names every option: there a default means that nobody cared. */
static bool is_given(const bpt_train_options *o, const bpt_option_set *set, const char *name) {
    const bpt_option_source source = bpt_option_where(set, name);
    return source == BPT_SOURCE_COMMAND_LINE ||
           (source == BPT_SOURCE_FILE && !bpt_option_is_default(&bpt_train_command, name, o));
}

static void note(bpt_tuning *t, bool given, const char *name, const char *value) {
    char item[64];
    snprintf(item, sizeof item, "%s %.40s", name, value);
    bpt_list_add(given ? t->kept : t->taken, sizeof t->taken, item);
}

/* @param value 0: the file has none */
static void take_number(const bpt_train_options *o, const bpt_option_set *set, bpt_tuning *t,
                        const char *name, int64_t value, int64_t *field) {
    const bool given = is_given(o, set, name);
    char text[24];
    if (value == 0) return;
    if (!given) *field = value;
    snprintf(text, sizeof text, "%" PRId64, *field);
    note(t, given, name, text);
}

static void take_policy(const bpt_option_set *set, bpt_tuning *t, bpt_train_options *o) {
    const bool given = is_given(o, set, "policy");
    if (!given) o->policy = t->file->choices.policy;
    note(t, given, "policy", o->policy);
}

/* Tables of the same text cut alike, an empty one like none. */
static bpt_status sum_cuts(bpt_tuning *t) {
    const bpt_cost_table *table = t->file->choices.cuts;
    char *text;
    if (!table || table->n == 0) return BPT_OK;
    BPT_TRY(bpt_cost_table_write(table, 0, &text));
    snprintf(t->cuts, sizeof t->cuts, "%016" PRIx64, bpt_checksum(text, strlen(text)));
    bpt_free(text);
    return BPT_OK;
}

bpt_status bpt_tuning_open(bpt_train_options *o, const bpt_option_set *set) {
    if (!o->tuned) return BPT_OK;
    bpt_tuning *t;
    BPT_TRY(BPT_NEW("tuning", 1, &t));
    *t = (bpt_tuning){.policy = o->policy,
                      .threads = o->threads,
                      .loader_threads = o->loader_threads,
                      .prefetch = o->prefetch};
    o->tuning = t;
    BPT_TRY(bpt_tuned_path(o->tuned, &t->path));
    BPT_TRY(bpt_tuned_read(t->path, &t->file));
    BPT_TRY(sum_cuts(t));
    const bpt_tuned_choices *c = &t->file->choices;
    take_number(o, set, t, "threads", c->threads, &o->threads);
    take_policy(set, t, o);
    if (o->bench && !o->data) return BPT_OK; /* nothing is loaded */
    take_number(o, set, t, "loader-threads", c->loader_threads, &o->loader_threads);
    take_number(o, set, t, "prefetch", c->prefetch, &o->prefetch);
    return BPT_OK;
}

void bpt_tuning_close(bpt_train_options *o) {
    if (!o->tuning) return;
    bpt_tuned_free(o->tuning->file);
    bpt_free(o->tuning->path);
    bpt_free(o->tuning);
    o->tuning = NULL;
}

/* ---- using the file ---- */

bpt_status bpt_tuning_check(const bpt_train_options *o, const char *path, const bpt_tuned *file,
                            const bpt_tuning_job *job) {
    const bpt_learning learning = bpt_train_learning(o, 1);
    const bpt_tuned_step step = {
        .model = job->model,
        .batch = job->batch,
        .activations = bpt_train_activations(o, NULL),
        .optimizer = bpt_learning_optimizer(&learning)->name,
        .cores = job->cores,
        .dataset = job->dataset,
    };
    bpt_tuned_key here;
    BPT_TRY(bpt_tuned_key_make(&step, &here));
    return bpt_tuned_key_check(path, &file->key, &here, job->host);
}

bpt_status bpt_tuning_use(const bpt_train_options *o, bpt_model *model, const bpt_dataset *dataset,
                          int64_t batch, unsigned cores, const char *host) {
    if (!o->tuning) return BPT_OK;
    const bpt_tuning_job job = {model, dataset, batch, cores, host};
    BPT_TRY(bpt_tuning_check(o, o->tuning->path, o->tuning->file, &job));
    bpt_model_use_costs(model, o->tuning->file->choices.cuts);
    return BPT_OK;
}

const char *bpt_tuning_cuts(const bpt_train_options *o) {
    return o->tuning ? o->tuning->cuts : "";
}

void bpt_tuning_expect(const bpt_train_options *o, bpt_network *network) {
    if (o->tuning) bpt_network_expect(network, bpt_tuned_cost, o->tuning->file);
}

void bpt_tuning_say(const bpt_train_options *o) {
    const bpt_tuning *t = o->tuning;
    if (!t) return;
    bpt_info("tuned by %s: %s%scosts of %zu kinds of tasks%s%s%s", t->path, t->taken,
             t->taken[0] ? ", " : "", t->file->n_costs,
             t->cuts[0] ? ", convolutions cut by measured costs" : "",
             t->kept[0] ? "; given, and kept: " : "", t->kept);
}

/* ---- in a run's folder ---- */

#define KEPT_NAME "tuned.rank-%" PRIu32 ".yaml"

static bpt_status kept_path(const char *run, uint32_t rank, char **path) {
    return bpt_strf(path, "%s/" KEPT_NAME, run, rank);
}

bpt_status bpt_tuning_keep(const bpt_train_options *o, const bpt_run_folder *run, uint32_t rank) {
    char *path, comment[80], name[40];
    snprintf(name, sizeof name, KEPT_NAME, rank);
    if (!o->tuning) return bpt_run_folder_remove(run, name);
    BPT_TRY(kept_path(bpt_run_folder_path(run), rank, &path));
    snprintf(comment, sizeof comment, "# What rank %" PRIu32 " of this run was tuned by.\n", rank);
    const bpt_status status = bpt_tuned_write(path, o->tuning->file, comment);
    bpt_free(path);
    return status;
}

bpt_status bpt_tuning_kept(const char *run, uint32_t rank, bpt_tuned **tuned) {
    char *path;
    BPT_TRY(kept_path(run, rank, &path));
    const bpt_status status = bpt_tuned_read(path, tuned);
    bpt_free(path);
    return status;
}

/* ---- repeating it ---- */

bpt_train_options bpt_tuning_repeat(const bpt_train_options *o) {
    bpt_train_options repeat = *o;
    if (!o->tuning || !bpt_tuned_path_varies(o->tuned)) return repeat;
    repeat.policy = o->tuning->policy;
    repeat.threads = o->tuning->threads;
    repeat.loader_threads = o->tuning->loader_threads;
    repeat.prefetch = o->tuning->prefetch;
    return repeat;
}
