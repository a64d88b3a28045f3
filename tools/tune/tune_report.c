#include "tools/tune/tune_report.h"

#include <inttypes.h>

static double percent(double ratio) {
    return 100.0 * (ratio - 1.0);
}

static const char *describe(const bpt_trial *t) {
    static const char *const words[] = {
        [BPT_WITHIN_NOISE] = "within the noise", [BPT_FASTER] = "faster", [BPT_SLOWER] = "slower"};
    return words[t->verdict];
}

/* Why it was not measured. */
static const char *why_not(const bpt_trial *t) {
    if (t->alike) return "the same: no cut gains enough by them";
    return t->too_large ? "no room for so many parts" : "no time for it";
}

static void print_trial(const bpt_trial *t, const char *prefix, FILE *out) {
    fprintf(out, "%s%-14s  %-13s  %-13s  ", prefix, t->option, t->value, t->against);
    if (!t->measured) {
        fprintf(out, "%s\n", why_not(t));
        return;
    }
    fprintf(out, "%+7.1f %%  %+6.1f to %+6.1f %%  %6zu  %s\n", percent(t->ratio.median),
            percent(t->ratio.low), percent(t->ratio.high), t->ratio.n, describe(t));
}

static void print_side(const char *name, const bpt_tuned_choices *c, const bpt_spread *s,
                       bool loads, const char *prefix, FILE *out) {
    fprintf(out, "%s%s: threads %" PRId64 ", policy %s", prefix, name, c->threads, c->policy);
    if (loads)
        fprintf(out, ", loader-threads %" PRId64 ", prefetch %" PRId64, c->loader_threads,
                c->prefetch);
    if (c->cuts) fprintf(out, ", cuts by costs");
    fprintf(out, ": %.4g ms a step (half of the rounds %.4g to %.4g)\n", 1e3 * s->median,
            1e3 * s->quartile_1, 1e3 * s->quartile_3);
}

static void print_conclusion(const bpt_search *s, const char *prefix, FILE *out) {
    const bool confirmed = s->gain.n > 0 && bpt_spread_judge(&s->gain, s->noise) == BPT_FASTER;
    print_side("default", &s->standard, &s->standard_s, s->limits.loads, prefix, out);
    if (confirmed) {
        print_side("best   ", &s->best, &s->best_s, s->limits.loads, prefix, out);
        fprintf(out, "%sthe best takes %.1f %% less time (%.1f to %.1f %%, %zu rounds)\n", prefix,
                -percent(s->gain.median), -percent(s->gain.high), -percent(s->gain.low), s->gain.n);
        return;
    }
    fprintf(out, "%sbest   : the default", prefix);
    if (s->gain.n >= BPT_SPREAD_MIN)
        fprintf(out, "; what seemed faster was not in the end: %+.1f %% (%+.1f to %+.1f %%)",
                percent(s->gain.median), percent(s->gain.low), percent(s->gain.high));
    fprintf(out, "\n");
}

void bpt_tune_report(const bpt_search *s, const bpt_tuned_key *key, const char *prefix, FILE *out) {
    fprintf(out, "%s%s, %s sample%s a step, %s, %s, %s core%s: %" PRIu64 " rounds, noise %.1f %%\n",
            prefix, key->value[BPT_TUNED_MODEL], key->value[BPT_TUNED_BATCH],
            s->subject->batch == 1 ? "" : "s", key->value[BPT_TUNED_PRECISION],
            key->value[BPT_TUNED_CPU], key->value[BPT_TUNED_CORES], s->limits.cores == 1 ? "" : "s",
            s->n_rounds, 100.0 * s->noise);
    if (s->n_trials)
        fprintf(out, "%s%-14s  %-13s  %-13s  %9s  %18s  %6s\n", prefix, "option", "value",
                "against", "step time", "95 % interval", "rounds");
    for (size_t i = 0; i < s->n_trials; i++) print_trial(&s->trials[i], prefix, out);
    print_conclusion(s, prefix, out);
}
