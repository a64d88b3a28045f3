#include "tools/train/options/learning_options.h"

#include "base/log.h"
#include "tools/precision.h"
#include "tools/train/options/momentum_gain.h"
#include "tools/train/options/option_uses.h"
#include "tools/train/options/step_limit.h"
#include "tools/train/options/train_rule.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

static bool is_sgd(const bpt_train_options *o) {
    return bpt_optimizer_at((size_t)o->optimizer) == &bpt_optimizer_sgd;
}

/* It gains where ranks take large steps apart (docs/performance.md, "Accuracy of the ways of
 * updating"). */
static bool has_nesterov(const bpt_train_options *o, double lr_factor) {
    if (!is_sgd(o)) return false;
    if (o->nesterov == BPT_NESTEROV_AUTO) return o->momentum > 0 && lr_factor > 1;
    return o->nesterov == BPT_NESTEROV_TRUE;
}

bpt_learning bpt_train_learning(const bpt_train_options *o, double lr_factor) {
    return (bpt_learning){
        .optimizer = bpt_optimizer_at((size_t)o->optimizer),
        .momentum = o->momentum,
        .decay = o->weight_decay,
        .nesterov = has_nesterov(o, lr_factor),
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .eps = o->adam_eps,
        .eta = o->lars_eta,
        .clip_norm = o->clip_norm,
        .step_limit = is_sgd(o) ? bpt_step_limit(o->step_limit, lr_factor) : 0.0,
        .label_smoothing = o->label_smoothing,
    };
}

double bpt_train_lr_factor(const bpt_train_options *o, bpt_update_choice update,
                           uint32_t n_workers) {
    return o->lr_scale == BPT_LR_SCALE_LINEAR && bpt_update_merges(update) ? n_workers : 1.0;
}

/* Options beside which the movement of the global weights is not the mean of the ranks' momenta, or
 * the correction of a delta counts on theirs. */
static const char *clash_of_momentum(const bpt_train_options *o, bpt_update_choice update) {
    if (o->server_momentum > 0) return "server-momentum";
    const bool agwu = update != BPT_UPDATE_SGWU;
    if (agwu && o->delay_compensation > 0) return "delay-compensation";
    return agwu && o->gamma == BPT_GAMMA_LAG ? "gamma" : NULL;
}

bpt_shared_momentum bpt_train_shared_momentum(const bpt_train_options *o, bpt_update_choice update,
                                              uint32_t n_workers, bool placed) {
    const double lr_factor = bpt_train_lr_factor(o, update, n_workers);
    const bool deltas = update == BPT_UPDATE_AGWU || update == BPT_UPDATE_SGWU;
    const bool has =
        deltas && is_sgd(o) && o->momentum > 0 && !placed && !clash_of_momentum(o, update);
    return (bpt_shared_momentum){
        .gain = has ? bpt_momentum_gain(o->shared_momentum, lr_factor) : 0,
        .ranks = bpt_momentum_gain_follows(o->shared_momentum) ? n_workers : 0,
        .momentum = o->momentum,
        .nesterov = has_nesterov(o, lr_factor),
        .step_samples = n_workers * (uint64_t)o->batch_size,
    };
}

bool bpt_train_shares_momentum(const bpt_train_options *o, bpt_update_choice update,
                               uint32_t n_workers) {
    const bool may_place = strcmp(o->placement, "off") != 0;
    return bpt_train_shared_momentum(o, update, n_workers, may_place).gain > 0;
}

bpt_order bpt_train_order(const bpt_train_options *o) {
    const bool blocks = o->order == BPT_ORDER_BLOCKS;
    return (bpt_order){.seed = (uint64_t)o->seed,
                       .kind = (bpt_order_kind)o->order,
                       .block = blocks ? (uint32_t)o->order_block : 0};
}

bpt_value_type bpt_train_activations(const bpt_train_options *o, const bpt_device *device) {
    return bpt_precision_type((bpt_precision)o->precision, device);
}

/* 1.1 is no binary number: 1.1 epochs of 50000 samples come to a little more than 55000. Such an
 * excess is far below the bound, and what is meant to be a part of a sample far above it, up to
 * some 10^8 samples; beyond, one sample more or less is nothing. */
uint64_t bpt_train_total_samples(const bpt_train_options *o, uint64_t epoch_samples) {
    const double rounding = 1e-9;
    const double n = o->epochs * (double)epoch_samples, whole = round(n);
    return (uint64_t)(fabs(n - whole) <= rounding * n ? whole : ceil(n));
}

_Static_assert((int)BPT_OPTION_LIST_MAX == (int)BPT_SCHEDULE_MAX_MILESTONES,
               "a list of milestones fits into a schedule");

bpt_schedule bpt_train_schedule(const bpt_train_options *o, double lr_factor) {
    bpt_schedule s = {
        .kind = bpt_schedule_kind_at((size_t)o->schedule),
        .base = o->lr * lr_factor,
        .total_epochs = o->epochs,
        .warmup_epochs = o->warmup_epochs,
        .warmup_start = o->warmup_start,
        .factor = o->lr_step_factor,
        .every_epochs = o->lr_step_size,
        .power = o->power,
        .pct_start = o->pct_start,
        .div_factor = o->div_factor,
        .final_div_factor = o->final_div_factor,
    };
    for (; s.n_milestones < BPT_OPTION_LIST_MAX && o->milestones[s.n_milestones] >= 0;
         s.n_milestones++)
        s.milestones[s.n_milestones] = (double)o->milestones[s.n_milestones];
    return s;
}

static const char *optimizer_name(const bpt_train_options *o) {
    return bpt_optimizer_at((size_t)o->optimizer)->name;
}

static const char *schedule_name(const bpt_train_options *o) {
    return bpt_schedule_kind_at((size_t)o->schedule)->name;
}

static int64_t last_milestone(const bpt_train_options *o) {
    int64_t last = -1;
    for (int i = 0; i < BPT_OPTION_LIST_MAX && o->milestones[i] >= 0; i++) last = o->milestones[i];
    return last;
}

/* One that no step begins behind. */
static bool has_late_milestone(const bpt_train_options *o) {
    return strcmp(schedule_name(o), "multistep") == 0 && (double)last_milestone(o) >= o->epochs;
}

/* ---- defaults that follow the optimiser, the schedule and the length of the run ---- */

/* Options that have them, and what decides. */
static const struct {
    const char *option, *chooser;
    size_t offset;
} adapted[] = {
    {"lr", "optimizer", offsetof(bpt_train_options, lr)},
    {"weight-decay", "optimizer", offsetof(bpt_train_options, weight_decay)},
    {"warmup-epochs", "schedule", offsetof(bpt_train_options, warmup_epochs)},
};

enum { N_ADAPTED = sizeof adapted / sizeof *adapted };

/* Where the default is not that of the table. */
static const struct {
    const char *option, *choice;
    double value;
} own_defaults[] = {
    {"lr", "adamw", 1e-3},
    {"lr", "lars", 2.0},
    {"weight-decay", "adamw", 0.01},
    {"warmup-epochs", "onecycle", 0.0},
};

enum { N_OWN_DEFAULTS = sizeof own_defaults / sizeof *own_defaults };

static const char *table_default(const char *option) {
    const bpt_option *row = bpt_train_command.options;
    while (strcmp(row->name, option) != 0) row++;
    return row->value;
}

/* Of the run, at most: a short one would never reach its rate (docs/decisions.md). */
static const double warmup_part = 0.5;

static double default_of(const bpt_train_options *o, const char *option, const char *choice) {
    for (int i = 0; i < N_OWN_DEFAULTS; i++)
        if (strcmp(own_defaults[i].option, option) == 0 &&
            strcmp(own_defaults[i].choice, choice) == 0)
            return own_defaults[i].value;
    const double value = strtod(table_default(option), NULL);
    return strcmp(option, "warmup-epochs") == 0 ? fmin(value, warmup_part * o->epochs) : value;
}

static const char *choice_of(const bpt_train_options *o, const char *chooser) {
    return strcmp(chooser, "optimizer") == 0 ? optimizer_name(o) : schedule_name(o);
}

void bpt_learning_options_default(bpt_train_options *o, const bpt_option_set *set) {
    for (int i = 0; i < N_ADAPTED; i++) {
        double *value = (double *)((char *)o + adapted[i].offset);
        if (bpt_option_where(set, adapted[i].option) == BPT_SOURCE_DEFAULT)
            *value = default_of(o, adapted[i].option, choice_of(o, adapted[i].chooser));
    }
}

/* The default of --update is agwu on several ranks; auto may come to be allreduce, whose batch is
 * that of all. */
static bool multiplies_rate(const bpt_train_options *o) {
    const bpt_update_choice update = (bpt_update_choice)o->update;
    return o->lr_scale == BPT_LR_SCALE_LINEAR &&
           (update == BPT_UPDATE_DEFAULT || bpt_update_merges(update));
}

bool bpt_learning_options_share(bpt_train_options *o, const bpt_option_set *set, uint32_t n_ranks,
                                bool tuned, int64_t before) {
    enum { FEW = 4 }; /* docs/performance.md, "Accuracy of the ways of updating" */
    const bool has_rate = bpt_option_where(set, "lr") != BPT_SOURCE_DEFAULT;
    if ((int64_t)n_ranks - o->servers <= FEW || !is_sgd(o) || tuned ||
        bpt_option_where(set, "batch-size") != BPT_SOURCE_DEFAULT)
        return false;
    const bool halves = before ? before == o->batch_size / 2 && o->update != BPT_UPDATE_ALLREDUCE
                               : multiplies_rate(o) && !has_rate;
    if (!halves) return false;
    o->batch_size /= 2;
    if (!has_rate) o->lr /= 2;
    return true;
}

/* A warm-up that nobody gave may be another one than the table says, or none. */
static bool is_start_of_nothing(const bpt_train_options *o, const bpt_option_set *set) {
    const bool given = bpt_option_where(set, "warmup-epochs") != BPT_SOURCE_DEFAULT;
    const double epochs =
        given ? o->warmup_epochs : default_of(o, "warmup-epochs", schedule_name(o));
    return o->warmup_start > 0 && epochs == 0.0;
}

void bpt_learning_options_warn(const bpt_train_options *o, const bpt_option_set *set) {
    for (int i = 0; i < N_ADAPTED; i++) {
        const char *option = adapted[i].option, *chooser = adapted[i].chooser;
        const char *before = bpt_option_beside(set, chooser, option), *now = choice_of(o, chooser);
        const double value = *(const double *)((const char *)o + adapted[i].offset);
        const double fallback = default_of(o, option, now);
        if (!before) before = table_default(chooser);
        if (bpt_option_where(set, option) == BPT_SOURCE_FILE && strcmp(before, now) != 0 &&
            value != fallback)
            bpt_warn("%s stays %g: the configuration has it, for --%s %s; the default of %s is %g",
                     option, value, chooser, before, now, fallback);
    }
    if (is_start_of_nothing(o, set) && bpt_option_where(set, "warmup-start") == BPT_SOURCE_FILE)
        bpt_warn("warmup-start in the configuration is not used without a warm-up");
    if (has_late_milestone(o) && bpt_option_where(set, "milestones") == BPT_SOURCE_FILE)
        bpt_warn("milestones in the configuration: %" PRId64
                 " is not reached, training ends at epoch %g",
                 last_milestone(o), o->epochs);
}

/* ---- what goes with what ---- */

bpt_status bpt_train_freeze(const bpt_train_options *o, bpt_model *model) {
    if (!o->freeze_before) return BPT_OK;
    const bpt_status status = bpt_model_freeze_before(model, o->freeze_before);
    if (status == BPT_EUSAGE && !bpt_error_last()->hint[0])
        bpt_hint("--freeze-before names the first layer that learns; --dry-run lists the layers");
    return status;
}

static bpt_status check_milestones(const bpt_train_options *o, const bpt_option_set *set) {
    bpt_status status = BPT_OK;
    if (strcmp(schedule_name(o), "multistep") == 0 && o->milestones[0] < 0) {
        status = bpt_fail(BPT_EUSAGE, "--milestones is missing");
        bpt_hint("--schedule multistep needs the epochs of its steps, e.g. --milestones 4,6");
        return status;
    }
    for (int i = 1; i < BPT_OPTION_LIST_MAX && o->milestones[i] >= 0; i++)
        if (o->milestones[i] <= o->milestones[i - 1]) {
            status = bpt_fail(BPT_EUSAGE, "--milestones: epochs must grow");
            bpt_hint("the first one first, each once, e.g. --milestones 4,6");
            return status;
        }
    if (has_late_milestone(o) && bpt_option_where(set, "milestones") == BPT_SOURCE_COMMAND_LINE) {
        status = bpt_fail(BPT_EUSAGE,
                          "--milestones: %" PRId64 " is not reached, training ends at epoch %g",
                          last_milestone(o), o->epochs);
        bpt_hint("leave it out, or train for more --epochs");
    }
    return status;
}

static bpt_status check_warmup(const bpt_train_options *o, const bpt_option_set *set) {
    if (!is_start_of_nothing(o, set) ||
        bpt_option_where(set, "warmup-start") != BPT_SOURCE_COMMAND_LINE)
        return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--warmup-start is not used without a warm-up");
    bpt_hint("leave it out, or give --warmup-epochs above 0");
    return status;
}

static bpt_status check_shared_momentum(const bpt_train_options *o) {
    if (bpt_momentum_gain(o->shared_momentum, 1) == 0 || !bpt_option_uses_any(o, "shared-momentum"))
        return BPT_OK;
    const char *clash = clash_of_momentum(o, (bpt_update_choice)o->update);
    if (clash) {
        const bpt_status status = bpt_fail(BPT_EUSAGE, "--shared-momentum does not go with --%s%s",
                                           clash, strcmp(clash, "gamma") == 0 ? " lag" : "");
        bpt_hint("leave out one of them");
        return status;
    }
    if (o->momentum > 0) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--shared-momentum needs a --momentum above 0");
    bpt_hint("0.9 is usual");
    return status;
}

bpt_status bpt_learning_options_check(const bpt_train_options *o, const bpt_option_set *set) {
    if (o->nesterov == BPT_NESTEROV_TRUE && o->momentum == 0.0 && is_sgd(o)) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "--nesterov true needs a --momentum above 0");
        bpt_hint("0.9 is usual");
        return status;
    }
    BPT_TRY(check_shared_momentum(o));
    if (o->bench) return BPT_OK;
    BPT_TRY(check_warmup(o, set));
    return check_milestones(o, set);
}
