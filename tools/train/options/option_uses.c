#include "tools/train/options/option_uses.h"

#include "base/log.h"
#include "base/text.h"
#include "inner/optimizers/optimizer.h"
#include "inner/schedules/schedule.h"
#include "tools/train/options/servers.h"

#include <stdio.h>
#include <string.h>

/* What decides whether an option counts. */
typedef enum {
    BY_TASK,
    BY_DATA,
    BY_BATCHES,
    BY_TRACE,
    BY_OPTIMIZER,
    BY_SCHEDULE,
    BY_ORDER,
    BY_UPDATE,
    BY_PARTITION,
    BY_DATA_MODE,
    BY_QUALITY,
    BY_RESUME,
    BY_INIT,
    N_CHOOSERS
} chooser;

/* An option that only some choices use. */
typedef struct {
    const char *option;
    chooser by;
    const char *users; /* words of chosen(), each between spaces */
} dependent;

/* Of each option the row of the task comes first: what a task does not use needs no other reason.
 */
static const dependent dependents[] = {
    {"device", BY_TASK, " train check dry-run bench "},
    {"train-split", BY_TASK, " train check dry-run bench "},
    {"test-split", BY_TASK, " train check dry-run "},
    {"init-weights", BY_TASK, " train check dry-run replay "},
    {"init-except", BY_TASK, " train check dry-run "},
    {"freeze-before", BY_TASK, " train check dry-run bench "},
    {"output", BY_TASK, " train check dry-run "},
    {"force", BY_TASK, " train check dry-run "},
    {"input-size", BY_TASK, " train check dry-run bench "},
    {"classes", BY_TASK, " train check dry-run bench "},
    {"epochs", BY_TASK, " train check dry-run "},
    {"augment", BY_TASK, " train check dry-run bench "},
    {"lr", BY_TASK, " train check dry-run "},
    {"lr-scale", BY_TASK, " train check dry-run "},
    {"schedule", BY_TASK, " train check dry-run "},
    {"warmup-epochs", BY_TASK, " train check dry-run "},
    {"warmup-start", BY_TASK, " train check dry-run "},
    {"lr-step-size", BY_TASK, " train check dry-run "},
    {"milestones", BY_TASK, " train check dry-run "},
    {"lr-step-factor", BY_TASK, " train check dry-run "},
    {"pct-start", BY_TASK, " train check dry-run "},
    {"div-factor", BY_TASK, " train check dry-run "},
    {"final-div-factor", BY_TASK, " train check dry-run "},
    {"power", BY_TASK, " train check dry-run "},
    {"update", BY_TASK, " train check dry-run "},
    {"partition", BY_TASK, " train check dry-run "},
    {"idpa-rounds", BY_TASK, " train check dry-run "},
    {"calibrate", BY_TASK, " train check dry-run "},
    {"rebalance", BY_TASK, " train check dry-run "},
    {"data-mode", BY_TASK, " train check dry-run "},
    {"scratch", BY_TASK, " train check dry-run "},
    {"stage", BY_TASK, " train check dry-run "},
    {"sync-every", BY_TASK, " train check dry-run "},
    {"gamma", BY_TASK, " train check dry-run "},
    {"placement", BY_TASK, " train check dry-run "},
    {"servers", BY_TASK, " train check dry-run "},
    {"max-staleness", BY_TASK, " train check dry-run "},
    {"shared-momentum", BY_TASK, " train check dry-run "},
    {"server-momentum", BY_TASK, " train check dry-run "},
    {"delay-compensation", BY_TASK, " train check dry-run "},
    {"elasticity", BY_TASK, " train check dry-run "},
    {"quality", BY_TASK, " train check dry-run "},
    {"held-out", BY_TASK, " train check dry-run "},
    {"batch-size", BY_TASK, " train check dry-run bench "},
    {"optimizer", BY_TASK, " train check dry-run bench "},
    {"momentum", BY_TASK, " train check dry-run bench "},
    {"nesterov", BY_TASK, " train check dry-run bench "},
    {"weight-decay", BY_TASK, " train check dry-run bench "},
    {"beta1", BY_TASK, " train check dry-run bench "},
    {"beta2", BY_TASK, " train check dry-run bench "},
    {"adam-eps", BY_TASK, " train check dry-run bench "},
    {"lars-eta", BY_TASK, " train check dry-run bench "},
    {"clip-norm", BY_TASK, " train check dry-run bench "},
    {"step-limit", BY_TASK, " train check dry-run bench "},
    {"label-smoothing", BY_TASK, " train check dry-run bench "},
    {"seed", BY_TASK, " train check dry-run bench "},
    {"order", BY_TASK, " train check dry-run bench "},
    {"order-block", BY_TASK, " train check dry-run bench "},
    {"threads", BY_TASK, " train check dry-run bench "},
    {"policy", BY_TASK, " train check dry-run bench "},
    {"precision", BY_TASK, " train check dry-run bench "},
    {"loader-threads", BY_TASK, " train check dry-run bench "},
    {"prefetch", BY_TASK, " train check dry-run bench "},
    {"tuned", BY_TASK, " train check dry-run bench "},
    {"eval-every", BY_TASK, " train check dry-run "},
    {"checkpoint-every", BY_TASK, " train check dry-run "},
    {"checkpoint-minutes", BY_TASK, " train check dry-run "},
    {"checkpoint-keep", BY_TASK, " train check dry-run "},
    {"resume", BY_TASK, " train check dry-run "},
    {"bench", BY_TASK, " train check dry-run bench "},
    {"dry-run", BY_TASK, " train dry-run "},
    {"check", BY_TASK, " train check "},
    {"stall-warning", BY_TASK, " train check dry-run "},
    {"stall-timeout", BY_TASK, " train check dry-run "},
    {"log-interval", BY_TASK, " train check dry-run replay "},
    {"trace", BY_TASK, " train check bench "},
    {"trace-steps", BY_TASK, " train check bench "},

    {"classes", BY_DATA, " no-data "},

    {"train-split", BY_BATCHES, " read "},
    {"augment", BY_BATCHES, " read "},
    {"order", BY_BATCHES, " read "},
    {"order-block", BY_BATCHES, " read "},
    {"loader-threads", BY_BATCHES, " read "},
    {"prefetch", BY_BATCHES, " read "},

    {"trace-steps", BY_TRACE, " traced "},

    {"momentum", BY_OPTIMIZER, " sgd lars "},
    {"nesterov", BY_OPTIMIZER, " sgd "},
    {"step-limit", BY_OPTIMIZER,
     " sgd "}, /* the others' steps do not follow the gradient's length */
    {"beta1", BY_OPTIMIZER, " adamw "},
    {"beta2", BY_OPTIMIZER, " adamw "},
    {"adam-eps", BY_OPTIMIZER, " adamw "},
    {"lars-eta", BY_OPTIMIZER, " lars "},
    {"shared-momentum", BY_OPTIMIZER, " sgd "},
    {"delay-compensation", BY_OPTIMIZER, " sgd "}, /* other deltas are no sums of gradients */

    {"lr-step-size", BY_SCHEDULE, " step "},
    {"milestones", BY_SCHEDULE, " multistep "},
    {"lr-step-factor", BY_SCHEDULE, " step multistep "},
    {"pct-start", BY_SCHEDULE, " onecycle "},
    {"div-factor", BY_SCHEDULE, " onecycle "},
    {"final-div-factor", BY_SCHEDULE, " onecycle "},
    {"power", BY_SCHEDULE, " polynomial "},

    {"order-block", BY_ORDER, " blocks "},

    /* under default the number of ranks decides: bpt_option_uses_warn_ranks() */
    {"lr-scale", BY_UPDATE, " agwu sgwu easgd auto default "},
    {"sync-every", BY_UPDATE, " agwu sgwu easgd auto default "},
    {"idpa-rounds", BY_UPDATE, " agwu sgwu easgd auto default "},
    {"calibrate", BY_UPDATE, " agwu sgwu easgd allreduce auto default "},
    {"rebalance", BY_UPDATE, " agwu sgwu easgd auto default "},
    {"gamma", BY_UPDATE, " agwu auto default "},
    {"placement", BY_UPDATE, " allreduce agwu auto default "},
    {"servers", BY_UPDATE, " agwu sgwu easgd auto default "},
    {"max-staleness", BY_UPDATE, " agwu easgd auto default "},
    {"shared-momentum", BY_UPDATE, " agwu sgwu auto default "},
    {"server-momentum", BY_UPDATE, " agwu sgwu auto default "},
    {"delay-compensation", BY_UPDATE, " agwu auto default "},
    {"elasticity", BY_UPDATE, " easgd "},
    {"quality", BY_UPDATE, " agwu sgwu auto default "},

    {"idpa-rounds", BY_PARTITION, " idpa auto "},
    {"rebalance", BY_PARTITION, " idpa auto "},

    {"scratch", BY_DATA_MODE, " scatter "},
    {"held-out", BY_QUALITY, " held-out "},

    {"init-weights", BY_RESUME, " anew "},
    {"init-except", BY_RESUME, " anew "},
    {"init-except", BY_INIT, " file "},
};

enum { N_DEPENDENTS = sizeof dependents / sizeof *dependents };

/* ---- what is chosen ---- */

bpt_train_task bpt_train_task_of(const bpt_train_options *o) {
    if (o->replay) return BPT_TASK_REPLAY;
    if (o->bench) return BPT_TASK_BENCH;
    if (o->check) return BPT_TASK_CHECK;
    return o->dry_run ? BPT_TASK_DRY_RUN : BPT_TASK_TRAIN;
}

static const char *task_name(const bpt_train_options *o) {
    static const char *const names[] = {
        [BPT_TASK_REPLAY] = "replay",   [BPT_TASK_BENCH] = "bench", [BPT_TASK_CHECK] = "check",
        [BPT_TASK_DRY_RUN] = "dry-run", [BPT_TASK_TRAIN] = "train",
    };
    return names[bpt_train_task_of(o)];
}

static const char *chosen(const bpt_train_options *o, chooser by) {
    switch (by) {
    case BY_TASK:
        return task_name(o);
    case BY_DATA:
        return o->data ? "data" : "no-data";
    case BY_BATCHES: /* --dry-run plans for them without a dataset, too */
        return o->bench && !o->data ? "made-up" : "read";
    case BY_TRACE:
        return o->trace ? "traced" : "untraced";
    case BY_OPTIMIZER:
        return bpt_optimizer_at((size_t)o->optimizer)->name;
    case BY_SCHEDULE:
        return bpt_schedule_kind_at((size_t)o->schedule)->name;
    case BY_ORDER:
        return bpt_order_kind_name((bpt_order_kind)o->order);
    case BY_UPDATE:
        return bpt_update_choice_name((bpt_update_choice)o->update);
    case BY_PARTITION:
        return bpt_partition_choice_name((bpt_partition_choice)o->partition);
    case BY_DATA_MODE:
        return bpt_data_mode_name((bpt_data_mode)o->data_mode);
    case BY_QUALITY:
        return o->quality == BPT_QUALITY_HELD_OUT ? "held-out" : "off";
    case BY_RESUME: /* with auto there may be nothing to go on from */
        return o->resume && strcmp(o->resume, "auto") != 0 ? "resumed" : "anew";
    case BY_INIT:
        return o->init_weights ? "file" : "drawn";
    case N_CHOOSERS:
        break;
    }
    return "";
}

static const char *const flags[] = {
    [BY_OPTIMIZER] = "optimizer", [BY_SCHEDULE] = "schedule",   [BY_ORDER] = "order",
    [BY_UPDATE] = "update",       [BY_PARTITION] = "partition", [BY_DATA_MODE] = "data-mode",
    [BY_QUALITY] = "quality"};

/* "by --optimizer sgd", behind "not used". */
static void describe(const bpt_train_options *o, chooser by, char *text, size_t size) {
    if (by == BY_TASK)
        snprintf(text, size, "by --%s", task_name(o));
    else if (by == BY_DATA)
        snprintf(text, size, "with --data");
    else if (by == BY_BATCHES)
        snprintf(text, size, "by --bench without --data");
    else if (by == BY_TRACE)
        snprintf(text, size, "without --trace");
    else if (by == BY_RESUME)
        snprintf(text, size, "with --resume RUN");
    else if (by == BY_INIT)
        snprintf(text, size, "without --init-weights");
    else
        snprintf(text, size, "by --%s %s", flags[by], chosen(o, by));
}

static bool is_user(const dependent *d, const char *word) {
    char spaced[24];
    snprintf(spaced, sizeof spaced, " %s ", word);
    return strstr(d->users, spaced) != NULL;
}

/* A replay takes its learning from the run: what stands beside it is judged by its task alone. */
static bool is_idle(const bpt_train_options *o, const dependent *d) {
    if (o->replay && d->by != BY_TASK) return false;
    return !is_user(d, chosen(o, d->by));
}

bool bpt_option_uses_any(const bpt_train_options *o, const char *option) {
    for (const dependent *d = dependents; d != dependents + N_DEPENDENTS; d++)
        if (strcmp(d->option, option) == 0 && is_idle(o, d)) return false;
    return true;
}

/* Whether an earlier row says so already. */
static bool is_known_idle(const bpt_train_options *o, const dependent *d) {
    for (const dependent *other = dependents; other != d; other++)
        if (strcmp(other->option, d->option) == 0 && is_idle(o, other)) return true;
    return false;
}

/* ---- on the command line ---- */

static bpt_status refuse(const bpt_train_options *o, const dependent *d) {
    char reason[64];
    describe(o, d->by, reason, sizeof reason);
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--%s is not used %s", d->option, reason);
    const int first = (int)strcspn(d->users + 1, " ");
    if (d->by == BY_TASK)
        bpt_hint("leave it out, or --%s", task_name(o));
    else if (d->by == BY_DATA)
        bpt_hint("the dataset decides it; without --data --bench and --dry-run take any");
    else if (d->by == BY_BATCHES)
        bpt_hint("leave it out, or name a dataset with --data");
    else if (d->by == BY_TRACE)
        bpt_hint("leave it out, or give --trace FILE");
    else if (d->by == BY_RESUME)
        bpt_hint("leave one of them out: the run has all weights to go on with");
    else if (d->by == BY_INIT)
        bpt_hint("leave it out, or name a file with --init-weights");
    else
        bpt_hint("leave it out, or choose --%s %.*s", flags[d->by], first, d->users + 1);
    return status;
}

bpt_status bpt_option_uses_check(const bpt_train_options *o, const bpt_option_set *set) {
    for (const dependent *d = dependents; d != dependents + N_DEPENDENTS; d++)
        if (bpt_option_where(set, d->option) == BPT_SOURCE_COMMAND_LINE && is_idle(o, d))
            return refuse(o, d);
    return BPT_OK;
}

/* ---- in a file ---- */

enum { LIST_SIZE = 300 };

static bool is_set(const bpt_train_options *o, const char *option) {
    return !bpt_option_is_default(&bpt_train_command, option, o);
}

void bpt_option_uses_warn(const bpt_train_options *o, const bpt_option_set *set) {
    for (int by = BY_TASK; by < N_CHOOSERS; by++) {
        char list[LIST_SIZE] = "", reason[64];
        int n = 0;
        for (const dependent *d = dependents; d != dependents + N_DEPENDENTS; d++)
            if ((int)d->by == by && bpt_option_where(set, d->option) == BPT_SOURCE_FILE &&
                is_set(o, d->option) && is_idle(o, d) && !is_known_idle(o, d)) {
                bpt_list_add(list, sizeof list, d->option);
                n++;
            }
        describe(o, (chooser)by, reason, sizeof reason);
        if (n > 0)
            bpt_warn("%s in the configuration %s not used %s", list, n == 1 ? "is" : "are", reason);
    }
}

/* ---- by the number of ranks ---- */

bpt_update_choice bpt_update_resolve(bpt_update_choice update, uint32_t n_ranks) {
    if (update != BPT_UPDATE_AUTO && update != BPT_UPDATE_DEFAULT) return update;
    return n_ranks == 1 ? BPT_UPDATE_LOCAL : BPT_UPDATE_AGWU;
}

/* On a rank by itself idpa on the command line is refused beside --update local
 * (train_option_checks.c), but not beside --update default, nor in a file. */
bpt_partition_choice bpt_partition_resolve(bpt_partition_choice partition,
                                           bpt_update_choice update) {
    if (update == BPT_UPDATE_LOCAL) return BPT_PARTITION_EVEN;
    if (partition != BPT_PARTITION_AUTO) return partition;
    return update == BPT_UPDATE_ALLREDUCE ? BPT_PARTITION_EVEN : BPT_PARTITION_IDPA;
}

/* Somebody wants it: a file that a run has written names all options with their defaults. */
static bool is_wanted(const bpt_train_options *o, const bpt_option_set *set, const char *option) {
    const bpt_option_source source = bpt_option_where(set, option);
    return source == BPT_SOURCE_COMMAND_LINE || (source == BPT_SOURCE_FILE && is_set(o, option));
}

/* The ranks of a job. */
typedef struct {
    uint32_t n, n_workers; /* all; those that train */
    bpt_update_choice update;
} company;

static company company_of(const bpt_train_options *o, uint32_t n_ranks) {
    uint32_t n_servers;
    if (bpt_servers_count(o, n_ranks, &n_servers) != BPT_OK) n_servers = 0; /* it is refused */
    return (company){n_ranks, n_ranks - n_servers,
                     bpt_update_resolve((bpt_update_choice)o->update, n_ranks)};
}

/* What a worker by itself has no use for, beside servers or not. How fast it is they do ask. */
static bool needs_others(const company *c, const char *option) {
    static const char *const options[] = {"max-staleness",      "gamma",  "rebalance", "placement",
                                          "delay-compensation", "quality"};
    if (strcmp(option, "calibrate") == 0) return c->n == 1;
    if (c->n_workers > 1) return false;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(option, options[i]) == 0) return true;
    return false;
}

static bool is_idle_among(const company *c, const dependent *d) {
    if (c->n == 1 && strcmp(d->option, "servers") == 0) return false; /* refused, not ignored */
    return !is_user(d, bpt_update_choice_name(c->update)) || needs_others(c, d->option);
}

static void add_flag(char list[LIST_SIZE], const char *option) {
    char flag[64];
    snprintf(flag, sizeof flag, "--%s", option);
    bpt_list_add(list, LIST_SIZE, flag);
}

void bpt_option_uses_warn_ranks(const bpt_train_options *o, const bpt_option_set *set,
                                uint32_t n_ranks) {
    const company c = company_of(o, n_ranks);
    const char *which = c.n > c.n_workers ? " that trains" : "";
    char list[LIST_SIZE] = "";
    for (const dependent *d = dependents; d != dependents + N_DEPENDENTS; d++) {
        if (d->by != BY_UPDATE || is_idle(o, d) || !is_idle_among(&c, d)) continue;
        if (is_wanted(o, set, d->option)) add_flag(list, d->option);
        if (strcmp(d->option, "quality") == 0 && o->quality == BPT_QUALITY_HELD_OUT &&
            is_wanted(o, set, "held-out"))
            add_flag(list, "held-out");
    }
    if (o->partition == BPT_PARTITION_IDPA && c.update == BPT_UPDATE_LOCAL)
        bpt_list_add(list, sizeof list, "--partition idpa");
    if (o->data_mode == BPT_DATA_SCATTER && !bpt_servers_scatter(o, n_ranks))
        bpt_list_add(list, sizeof list, "--data-mode scatter");
    if (list[0])
        bpt_warn("%s: without effect on %u rank%s%s, where --update is %s", list, c.n_workers,
                 c.n_workers == 1 ? "" : "s", which, bpt_update_choice_name(c.update));
}
