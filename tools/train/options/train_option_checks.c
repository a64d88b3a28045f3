/* Which options of bpt-train are missing, and which cannot go together. Those that would do nothing
 * beside others are in option_uses.c. */
#include "base/file_system.h"
#include "tools/device_option.h"
#include "tools/program.h"
#include "tools/train/options/learning_options.h"
#include "tools/train/options/momentum_gain.h"
#include "tools/train/options/option_uses.h"
#include "tools/train/options/train_options.h"

#include <string.h>

static bpt_status missing(const char *name, const char *hint) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--%s is missing", name);
    bpt_hint("%s; `bpt-train --help` lists all options", hint);
    return status;
}

/* Whether the work needs no dataset. */
static bool is_made_up(const bpt_train_options *o) {
    const bpt_train_task task = bpt_train_task_of(o);
    return task == BPT_TASK_BENCH || task == BPT_TASK_DRY_RUN;
}

/* Given, and empty: a variable of a script that is not set. */
static bpt_status check_empty(const bpt_train_options *o) {
    const struct {
        const char *name, *value;
    } paths[] = {{"init-weights", o->init_weights},
                 {"replay", o->replay},
                 {"resume", o->resume},
                 {"stage", o->stage},
                 {"trace", o->trace},
                 {"tuned", o->tuned}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (paths[i].value && !*paths[i].value)
            return missing(paths[i].name, "name a file or folder, or leave it out");
    if (o->init_except && !*o->init_except)
        return missing("init-except", "name layers, e.g. fc1 or conv1,fc1, or leave it out");
    if (o->freeze_before && !*o->freeze_before)
        return missing("freeze-before", "name the first layer that learns, or leave it out");
    return BPT_OK;
}

/* No layer has an empty name: one was forgotten, or is a variable that is not set. */
static bpt_status check_except(const bpt_train_options *o) {
    const char *list = o->init_except;
    if (!list || (list[0] != ',' && !strstr(list, ",,") && list[strlen(list) - 1] != ','))
        return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--init-except %s: a name beside a comma is empty", list);
    bpt_hint("put one comma between two names of layers, and none elsewhere");
    return status;
}

/* What is put there before the run begins makes the folder of a run one of somebody else's. */
static bpt_status check_apart(const bpt_train_options *o) {
    const struct {
        const char *name, *value;
    } kept[] = {{"scratch", o->data_mode == BPT_DATA_SCATTER ? o->scratch : NULL},
                {"stage", o->stage}};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (!o->output || !kept[i].value || !bpt_path_lies_in(kept[i].value, o->output)) continue;
        const bpt_status status = bpt_fail(BPT_EUSAGE, "--%s %s lies in the folder of --output",
                                           kept[i].name, kept[i].value);
        bpt_hint("keep samples in another folder, which other runs can use too");
        return status;
    }
    return BPT_OK;
}

static bpt_status check_required(const bpt_train_options *o) {
    if (bpt_train_task_of(o) == BPT_TASK_CHECK) return BPT_OK; /* what is there is looked at */
    if (!bpt_program_has(o->model)) return missing("model", "e.g. --model lenet");
    if (is_made_up(o)) return BPT_OK;
    if (!bpt_program_has(o->data)) return missing("data", "name a dataset made by bpt-ingest");
    if (!bpt_program_has(o->output)) return missing("output", "name a new folder, e.g. runs/first");
    return BPT_OK;
}

/* Where the others keep what rank 0 gives them. */
static bpt_status check_scratch(const bpt_train_options *o) {
    if (o->data_mode != BPT_DATA_SCATTER || is_made_up(o) || bpt_program_has(o->scratch))
        return BPT_OK;
    return missing("scratch",
                   "with --data-mode scatter name a folder on each machine's own disk, "
                   "e.g. /var/tmp/bpt");
}

bpt_augment bpt_train_augment(const bpt_train_options *o) {
    bpt_augment augment = {.n = 0};
    bpt_augment_parse(o->augment, &augment);
    return augment;
}

static bpt_status check_auto(const bpt_train_options *o) {
    if (o->update != BPT_UPDATE_AUTO || o->calibrate > 0) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--update auto goes by measurements, and --calibrate 0 makes none");
    bpt_hint("leave out one of them");
    return status;
}

/* What a file gives and nothing has a use for is warned of, and clashes with nothing. */
static bool places(const bpt_train_options *o) {
    return strcmp(o->placement, "off") != 0 && bpt_option_uses_any(o, "placement");
}

static bool serves(const bpt_train_options *o) {
    return o->servers > 0 && bpt_option_uses_any(o, "servers");
}

static bool judges(const bpt_train_options *o) {
    return o->quality == BPT_QUALITY_HELD_OUT && bpt_option_uses_any(o, "quality");
}

/* Ranks ask for samples as they are numbered among those that are given out. */
static bpt_status check_held_out(const bpt_train_options *o) {
    if (!judges(o) || o->data_mode != BPT_DATA_SCATTER) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "--quality held-out wants the dataset on every rank, and --data-mode scatter "
                 "leaves it to rank 0");
    bpt_hint("leave out one of them");
    return status;
}

/* An image may be mixed with any other of the split. */
static bpt_status check_mixing(const bpt_train_options *o) {
    const bpt_augment augment = bpt_train_augment(o);
    if (!bpt_augment_mixes(&augment) || o->data_mode != BPT_DATA_SCATTER) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "--augment %s mixes images with any others of the split, and --data-mode scatter "
                 "gives a rank its own alone",
                 o->augment);
    bpt_hint("leave out mixup and cutmix, or give every rank the dataset (--data-mode shared)");
    return status;
}

static bpt_status refuse_beside_placement(const char *option, const char *why) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--placement and --%s: %s", option, why);
    bpt_hint("leave out one of them");
    return status;
}

static bpt_status check_placement(const bpt_train_options *o) {
    if (!places(o)) return BPT_OK;
    if (o->clip_norm > 0)
        return refuse_beside_placement("clip-norm", "no rank knows the norm of the whole gradient");
    const bpt_augment augment = bpt_train_augment(o);
    if (bpt_augment_mixes(&augment))
        return refuse_beside_placement("augment",
                                       "of mixed images no second labels travel to other ranks");
    if (o->freeze_before)
        return refuse_beside_placement("freeze-before",
                                       "a model is parted before one layer, and "
                                       "either of them says before which");
    if (o->tuned)
        return refuse_beside_placement("tuned", "such a file is for networks that are whole");
    if (o->server_momentum > 0 && bpt_option_uses_any(o, "server-momentum"))
        return refuse_beside_placement("server-momentum",
                                       "layers that one rank computes are pushed by nobody");
    if (bpt_momentum_gain(o->shared_momentum, 1) > 0 && bpt_option_uses_any(o, "shared-momentum"))
        return refuse_beside_placement(
            "shared-momentum", "layers that one rank computes have a momentum of their own");
    if (judges(o))
        return refuse_beside_placement("quality",
                                       "no rank has all the weights that it would be judged by");
    if (strcmp(o->placement, "auto") == 0 && !(o->calibrate > 0))
        return refuse_beside_placement("calibrate", "auto goes by measurements, and 0 makes none");
    return BPT_OK;
}

/* Layers that one rank computes for all are on a rank that trains. */
static bpt_status check_servers(const bpt_train_options *o) {
    if (!serves(o) || !places(o)) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "--servers and --placement: servers hold all weights, and compute no layer");
    bpt_hint("leave out one of them");
    return status;
}

/* A file of bpt-tune is for one number of samples a step of a rank. */
static bpt_status check_tuned(const bpt_train_options *o) {
    const bool cut = o->update == BPT_UPDATE_ALLREDUCE && o->partition == BPT_PARTITION_IDPA;
    if (!o->tuned || (o->update != BPT_UPDATE_AUTO && !cut)) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "--tuned is for one number of samples a step, and under %s it is not known before",
                 cut ? "--update allreduce --partition idpa" : "--update auto");
    bpt_hint("leave out --tuned, or choose %s",
             cut ? "--partition even" : "--update agwu or allreduce");
    return status;
}

static bpt_status check_partition(const bpt_train_options *o, const bpt_option_set *set) {
    if (o->update != BPT_UPDATE_LOCAL || o->partition != BPT_PARTITION_IDPA) return BPT_OK;
    if (bpt_option_where(set, "partition") == BPT_SOURCE_FILE) return BPT_OK; /* warned of */
    const bpt_status status = bpt_fail(
        BPT_EUSAGE,
        "--update local trains on one rank with all the data and takes no --partition idpa");
    bpt_hint("use --update agwu for shares by measured speed");
    return status;
}

bpt_status bpt_train_options_check(const bpt_train_options *o, const bpt_option_set *set) {
    BPT_TRY(bpt_option_uses_check(o, set));
    BPT_TRY(check_empty(o));
    BPT_TRY(check_except(o));
    if (o->replay) return BPT_OK; /* what ranks computed with, their run says */
    BPT_TRY(bpt_device_option_check(o->device, (bpt_precision)o->precision));
    BPT_TRY(check_required(o));
    BPT_TRY(check_scratch(o));
    BPT_TRY(bpt_learning_options_check(o, set));
    if (o->bench) return BPT_OK;
    BPT_TRY(bpt_options_check_texts(&bpt_train_command, o)); /* config.yaml has them */
    BPT_TRY(check_apart(o));
    BPT_TRY(check_auto(o));
    BPT_TRY(check_tuned(o));
    BPT_TRY(check_placement(o));
    BPT_TRY(check_servers(o));
    BPT_TRY(check_held_out(o));
    BPT_TRY(check_mixing(o));
    return check_partition(o, set);
}
