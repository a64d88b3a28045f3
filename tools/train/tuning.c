#include "tools/train/tuning.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "tools/train/learning_options.h"
#include "tools/tuned_file.h"

#include <inttypes.h>
#include <stdio.h>

struct bpt_tuning {
    char *path; /* of this host */
    bpt_tuned *file;
    /* As they were given. */
    const char *policy;
    int64_t threads, loader_threads, prefetch;
    char taken[200], kept[200]; /* names and values of options, for a message */
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
    const bpt_tuned_choices *c = &t->file->choices;
    take_number(o, set, t, "threads", c->threads, &o->threads);
    take_policy(set, t, o);
    if (o->bench) return BPT_OK; /* nothing is loaded */
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

bpt_status bpt_tuning_check(const bpt_train_options *o, const bpt_model *model, int64_t batch,
                            unsigned cores, const char *host) {
    if (!o->tuning) return BPT_OK;
    const bpt_learning learning = bpt_train_learning(o);
    const bpt_tuned_step step = {
        .model = model,
        .batch = batch,
        .activations = bpt_train_activations(o),
        .optimizer = bpt_learning_optimizer(&learning)->name,
        .cores = cores,
    };
    bpt_tuned_key here;
    BPT_TRY(bpt_tuned_key_make(&step, &here));
    return bpt_tuned_key_check(o->tuning->path, &o->tuning->file->key, &here, host);
}

void bpt_tuning_expect(const bpt_train_options *o, bpt_network *network) {
    if (o->tuning) bpt_network_expect(network, bpt_tuned_cost, o->tuning->file);
}

void bpt_tuning_say(const bpt_train_options *o) {
    const bpt_tuning *t = o->tuning;
    if (!t) return;
    bpt_info("tuned by %s: %s%scosts of %zu kinds of tasks%s%s", t->path, t->taken,
             t->taken[0] ? ", " : "", t->file->n_costs, t->kept[0] ? "; given, and kept: " : "",
             t->kept);
}

bpt_train_options bpt_tuning_repeat(const bpt_train_options *o) {
    bpt_train_options repeat = *o;
    if (!o->tuning || !bpt_tuned_path_varies(o->tuned)) return repeat;
    repeat.policy = o->tuning->policy;
    repeat.threads = o->tuning->threads;
    repeat.loader_threads = o->tuning->loader_threads;
    repeat.prefetch = o->tuning->prefetch;
    return repeat;
}
