#include "tools/train/exchange/pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST = 4, /* twice as many cost lenet accuracy, half as many time (docs/decisions.md) */
    MOST = 32,
    A_RUN = 16, /* exchanges in a run at least, where auto decides */
    /* and of a rank in an epoch, where they are to become rarer than LEAST: the more ranks there
     * are, the larger are their steps */
    AN_EPOCH = 24,
    AN_EPOCH_A_RANK = 9,
    AN_EPOCH_AT_LEAST = 6, /* however low the rate */
    /* Ranks that lose nothing by longer intervals at lower rates, nor, where they go on with the
     * momentum of all, by AN_EPOCH alone. Eight lose by the former. */
    FEW = 4
};

#define COST      (1.0 / 50) /* of an exchange, over the steps before it */
#define WEIGHT    (1.0 / 4)  /* of the latest in the means */
#define MAX_STEPS 1e6

typedef struct amount {
    double value; /* of steps, or of epochs; 0: auto */
    bool epochs;
} amount;

/* @return whether the text is right */
static bool parse(const char *text, amount *out) {
    *out = (amount){0};
    if (strcmp(text, "auto") == 0) return true;
    char *end;
    out->value = strtod(text, &end);
    if (end != text + strspn(text, "0123456789.")) return false; /* no sign, inf, hexadecimal */
    out->epochs = strcmp(end, "ep") == 0;
    if (!(out->value > 0) || out->value > MAX_STEPS) return false;
    return out->epochs || (*end == '\0' && out->value == floor(out->value));
}

bpt_status bpt_pace_check(const char *text) {
    amount a;
    if (parse(text, &a)) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "--sync-every: \"%s\" is neither a number of steps nor of epochs", text);
    bpt_hint("steps from 1 to %.0f, e.g. --sync-every 8; epochs, e.g. --sync-every 0.05ep; or auto",
             MAX_STEPS);
    return status;
}

static uint64_t between(uint64_t least, double x, uint64_t most) {
    return x < (double)least ? least : x > (double)most ? most : (uint64_t)x;
}

bpt_pace bpt_pace_begin(const char *text, bpt_pace_run run) {
    const double epoch = (double)run.epoch_samples / (double)run.batch_all; /* steps of a rank */
    const double all = (double)run.total_samples / (double)run.batch_all;
    amount a;
    bpt_pace pace = {0};
    (void)parse(text, &a);
    if (a.value > 0) {
        const uint64_t run_steps = between(1, ceil(all), (uint64_t)MAX_STEPS);
        pace.least = between(1, a.epochs ? round(a.value * epoch) : a.value, run_steps);
        pace.most = pace.limit = pace.least;
    } else {
        pace.follows = true;
        pace.least = between(1, all / A_RUN, LEAST);
        const bool few = run.n_workers <= FEW;
        const double of_ranks =
            few && run.shared_momentum ? 0 : (double)AN_EPOCH_A_RANK * run.n_workers;
        pace.most = between(pace.least, epoch / fmax(AN_EPOCH, of_ranks), MOST);
        pace.limit = pace.most;
        if (few)
            pace.limit = between(pace.most, fmin(all / A_RUN, epoch / AN_EPOCH_AT_LEAST), MOST);
    }
    pace.every = pace.least;
    return pace;
}

static double mean(double before, double latest) {
    return before > 0 ? before + WEIGHT * (latest - before) : latest;
}

/* The longest interval that lets ranks drift no further apart than at the highest rate. */
static uint64_t longest(const bpt_pace *pace, double rate) {
    if (!(rate < pace->highest)) return pace->most;
    return between(pace->most, (double)pace->most * (pace->highest / rate), pace->limit);
}

/* Of a span with steps whose cost was measured. */
static void weigh_cost(bpt_pace *pace, const bpt_pace_span *s) {
    const double steps = (double)s->steps;
    pace->step_s = mean(pace->step_s, s->steps_s / steps);
    if (s->progress > 0) pace->step_all = mean(pace->step_all, (double)s->progress / steps);
    pace->exchange_s = mean(pace->exchange_s, s->exchange_s);
    pace->highest = fmax(pace->highest, s->rate);
    const double steps_worth = ceil(pace->exchange_s / (COST * pace->step_s));
    pace->every = between(pace->least, steps_worth, longest(pace, s->rate));
}

bool bpt_pace_note(bpt_pace *pace, const bpt_pace_span *s) {
    if (!pace->follows) return false;
    const uint64_t before = pace->every;
    if (s->steps > 0 && s->steps_s > 0 && s->exchange_s > 0) weigh_cost(pace, s);
    if (pace->step_all > 0) pace->every = between(1, (double)s->left / pace->step_all, pace->every);
    return pace->every != before;
}
