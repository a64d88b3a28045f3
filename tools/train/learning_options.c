#include "tools/train/learning_options.h"

#include "base/log.h"

#include <string.h>

/* ---- values ---- */

bpt_learning bpt_train_learning(const bpt_train_options *o) {
    return (bpt_learning){
        .optimizer = bpt_optimizer_at((size_t)o->optimizer),
        .momentum = o->momentum,
        .decay = o->weight_decay,
        .nesterov = o->nesterov,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .eps = o->adam_eps,
        .eta = o->lars_eta,
        .clip_norm = o->clip_norm,
        .label_smoothing = o->label_smoothing,
    };
}

_Static_assert((int)BPT_OPTION_LIST_MAX == (int)BPT_SCHEDULE_MAX_MILESTONES,
               "a list of milestones fits into a schedule");

bpt_schedule bpt_train_schedule(const bpt_train_options *o) {
    bpt_schedule s = {
        .kind = bpt_schedule_kind_at((size_t)o->schedule),
        .base = o->lr,
        .total_epochs = o->epochs,
        .warmup_epochs = o->warmup_epochs,
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

static bool is_default(const bpt_option_set *set, const char *option) {
    return bpt_option_where(set, option) == BPT_SOURCE_DEFAULT;
}

void bpt_learning_options_default(bpt_train_options *o, const bpt_option_set *set) {
    const bool adamw = strcmp(optimizer_name(o), "adamw") == 0;
    const bool lars = strcmp(optimizer_name(o), "lars") == 0;
    if (is_default(set, "lr")) o->lr = adamw ? 1e-3 : lars ? 2.0 : o->lr;
    if (is_default(set, "weight-decay") && adamw) o->weight_decay = 0.01;
    if (is_default(set, "warmup-epochs") && strcmp(schedule_name(o), "onecycle") == 0)
        o->warmup_epochs = 0.0;
}

/* ---- what goes with what ---- */

/* An option that some optimisers or schedules use. */
typedef struct {
    const char *option;
    const char *chooser; /* the option that decides */
    const char *users;   /* its values for which this one counts, between spaces */
} dependent;

static const dependent dependents[] = {
    {"momentum", "optimizer", " sgd lars "},
    {"nesterov", "optimizer", " sgd "},
    {"beta1", "optimizer", " adamw "},
    {"beta2", "optimizer", " adamw "},
    {"adam-eps", "optimizer", " adamw "},
    {"lars-eta", "optimizer", " lars "},
    {"lr-step-size", "schedule", " step "},
    {"milestones", "schedule", " multistep "},
    {"lr-step-factor", "schedule", " step multistep "},
    {"pct-start", "schedule", " onecycle "},
    {"div-factor", "schedule", " onecycle "},
    {"final-div-factor", "schedule", " onecycle "},
    {"power", "schedule", " polynomial "},
};

enum { N_DEPENDENTS = sizeof dependents / sizeof *dependents };

static const char *chosen(const bpt_train_options *o, const dependent *d) {
    return strcmp(d->chooser, "optimizer") == 0 ? optimizer_name(o) : schedule_name(o);
}

static bool is_used(const bpt_train_options *o, const dependent *d) {
    char word[24];
    snprintf(word, sizeof word, " %s ", chosen(o, d));
    return strstr(d->users, word) != NULL;
}

static bpt_status refuse(const bpt_train_options *o, const dependent *d) {
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--%s is not used by --%s %s", d->option, d->chooser, chosen(o, d));
    const int first = (int)strcspn(d->users + 1, " ");
    bpt_hint("leave it out, or choose --%s %.*s", d->chooser, first, d->users + 1);
    return status;
}

static bpt_status check_milestones(const bpt_train_options *o) {
    if (strcmp(schedule_name(o), "multistep") == 0 && o->milestones[0] < 0) {
        const bpt_status status = bpt_fail(BPT_EUSAGE, "option --milestones is missing");
        bpt_hint("--schedule multistep needs the epochs of its steps, e.g. --milestones 4,6");
        return status;
    }
    for (int i = 1; i < BPT_OPTION_LIST_MAX && o->milestones[i] >= 0; i++)
        if (o->milestones[i] <= o->milestones[i - 1])
            return bpt_fail(BPT_EUSAGE, "option milestones: epochs must grow");
    return BPT_OK;
}

bpt_status bpt_learning_options_check(const bpt_train_options *o, const bpt_option_set *set) {
    for (size_t i = 0; i < N_DEPENDENTS; i++) {
        const dependent *d = &dependents[i];
        if (bpt_option_where(set, d->option) == BPT_SOURCE_COMMAND_LINE && !is_used(o, d))
            return refuse(o, d);
    }
    if (o->nesterov && o->momentum == 0.0 && strcmp(optimizer_name(o), "sgd") == 0)
        return bpt_fail(BPT_EUSAGE, "--nesterov needs a --momentum above 0");
    return check_milestones(o);
}

/* ---- values of a file that count for nothing ---- */

static const bpt_option *row_of(const char *name) {
    const bpt_option *row = bpt_train_command.options;
    while (strcmp(row->name, name) != 0) row++;
    return row;
}

static bool equal(const bpt_option *row, const bpt_train_options *a, const bpt_train_options *b) {
    const char *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;
    const size_t size = row->type == BPT_OPTION_FLAG   ? sizeof(bool)
                        : row->type == BPT_OPTION_LIST ? sizeof a->milestones
                                                       : sizeof(double);
    return memcmp(x, y, size) == 0;
}

void bpt_learning_options_warn(const bpt_train_options *o, const bpt_option_set *set) {
    char *nothing[] = {(char *)bpt_train_command.name};
    bpt_train_options defaults;
    bpt_option_request request;
    bpt_option_set *of_defaults;
    if (bpt_options_parse(&bpt_train_command, 1, nothing, &defaults, &request, &of_defaults) !=
        BPT_OK)
        return;
    for (size_t i = 0; i < N_DEPENDENTS; i++) {
        const dependent *d = &dependents[i];
        if (bpt_option_where(set, d->option) == BPT_SOURCE_FILE && !is_used(o, d) &&
            !equal(row_of(d->option), o, &defaults))
            bpt_warn("%s in the configuration is not used by --%s %s", d->option, d->chooser,
                     chosen(o, d));
    }
    bpt_option_set_free(of_defaults);
}
