#include "tools/train/replay/replay.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "tools/train/options/option_uses.h"
#include "tools/train/replay/replay_ranks.h"
#include "tools/train/replay/replay_start.h"
#include "tools/train/replay/replay_state.h"

#include <string.h>

static bpt_status compare(const bpt__replay *r) {
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

static void hint_at_folder(void) {
    bpt_hint(
        "a replay needs the folder of an agwu or easgd run that was never resumed, as the run "
        "left it, and the same dataset, model, initial weights, program and kind of processor; "
        "a run of one rank (local) is repeated by --config RUN/config.yaml");
}

/* @param[out] set caller owns */
static bpt_status read_config(const char *run, bpt_train_options *o, bpt_option_set **set) {
    char *config;
    bpt_option_request request;
    BPT_TRY(bpt_strf(&config, "%s/config.yaml", run));
    char *arguments[] = {"bpt-train", "--config", config};
    const bpt_status status = bpt_options_parse(&bpt_train_command, 3, arguments, o, &request, set);
    if (status != BPT_OK && !bpt_path_exists(config)) hint_at_folder(); /* nobody gave --config */
    bpt_free(config);
    return status;
}

/* The options of the run itself, and over them what the user gave, on the command line or in a
 * file, of those that a replay uses: a dataset that has moved. Others in a file are warned of. */
static bpt_status load_options(const bpt_train_options *given, const bpt_option_set *set,
                               bpt_train_options *of_run, bpt_option_set **set_of_run) {
    BPT_TRY(read_config(given->replay, of_run, set_of_run));
    for (size_t i = 0; i < bpt_train_command.n_options; i++) {
        const char *name = bpt_train_command.options[i].name;
        if (bpt_option_where(set, name) != BPT_SOURCE_DEFAULT && bpt_option_uses_any(given, name))
            bpt_option_copy(&bpt_train_command, name, given, of_run);
    }
    return bpt_train_options_check(of_run, *set_of_run);
}

/* Somebody may have changed the file. */
static bpt_status check_named(const char *run, const char *value, const char *key) {
    return value ? BPT_OK : bpt_fail(BPT_EUSAGE, "%s/config.yaml names no %s", run, key);
}

static bpt_status repeat(const bpt_train_options *of_run) {
    bpt__replay r = {.o = of_run};
    bpt_status status = bpt__replay_open(&r);
    if (status == BPT_OK) status = bpt__replay_run(&r);
    if (status == BPT_OK) status = compare(&r);
    bpt__replay_close(&r);
    return status;
}

bpt_status bpt_replay(const bpt_train_options *given, const bpt_option_set *set) {
    const char *run = given->replay;
    bpt_train_options of_run = {0};
    bpt_option_set *set_of_run = NULL;
    bpt_status status = load_options(given, set, &of_run, &set_of_run);
    if (status == BPT_OK) status = check_named(run, of_run.model, "model");
    if (status == BPT_OK) status = check_named(run, of_run.data, "data");
    if (status == BPT_OK) status = bpt_replay_check_start(run, of_run.resume);
    if (status == BPT_OK) status = bpt_replay_check_devices(run);
    if (status == BPT_OK) status = repeat(&of_run);
    bpt_option_set_free(set_of_run);
    if (status != BPT_OK && !bpt_error_last()->hint[0]) hint_at_folder();
    return status;
}
