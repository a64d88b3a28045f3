#include "tools/tune/knobs.h"

#include "scheduler/policy.h"
#include "scheduler/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* As bpt-train has them; tests/tools/test_tune_parts.c compares. */
enum { DEFAULT_LOADER_THREADS = 1, DEFAULT_PREFETCH = 4 };

static const char *const names[] = {
    [BPT_KNOB_THREADS] = "threads",
    [BPT_KNOB_LOADER_THREADS] = "loader-threads",
    [BPT_KNOB_POLICY] = "policy",
    [BPT_KNOB_PREFETCH] = "prefetch",
};

const char *bpt_knob_name(bpt_knob knob) {
    return names[knob];
}

bpt_knob_limits bpt_knob_limits_make(unsigned cores, unsigned processors, bool loads) {
    if (processors < cores) processors = cores;
    if (processors > BPT_MAX_WORKERS) processors = BPT_MAX_WORKERS;
    return (bpt_knob_limits){cores, processors, loads};
}

bpt_tuned_choices bpt_knob_defaults(const bpt_knob_limits *limits) {
    bpt_tuned_choices c = {.threads = limits->cores};
    snprintf(c.policy, sizeof c.policy, "%s", bpt_policy_at(0)->name);
    if (limits->loads) {
        c.loader_threads = DEFAULT_LOADER_THREADS;
        c.prefetch = DEFAULT_PREFETCH;
    }
    return c;
}

/* ---- values ---- */

typedef struct {
    int64_t *values;
    size_t n;
} value_list;

static void add(value_list *list, int64_t value) {
    for (size_t i = 0; i < list->n; i++)
        if (list->values[i] == value) return;
    if (list->n < BPT_MAX_CANDIDATES) list->values[list->n++] = value;
}

/* Fewer where the loader or somebody else needs a core, or where memory is the limit; more where
 * a core has several processors. */
static void add_threads(const bpt_knob_limits *limits, value_list *list) {
    const int64_t cores = limits->cores;
    if (cores > 1) add(list, cores - 1);
    if (limits->processors > limits->cores) add(list, limits->processors);
    for (int64_t n = cores / 2; n >= 1; n /= 2) add(list, n);
}

size_t bpt_knob_candidates(bpt_knob knob, const bpt_knob_limits *limits, int64_t *values) {
    value_list list = {values, 0};
    const bool loader = knob == BPT_KNOB_LOADER_THREADS || knob == BPT_KNOB_PREFETCH;
    if (loader && !limits->loads) return 0;
    switch (knob) {
    case BPT_KNOB_THREADS:
        add_threads(limits, &list);
        break;
    case BPT_KNOB_LOADER_THREADS:
        add(&list, 2);
        if (limits->cores > 2) add(&list, BPT_MOST_LOADER_THREADS);
        break;
    case BPT_KNOB_POLICY:
        for (int64_t i = 1; bpt_policy_at((size_t)i); i++) add(&list, i);
        break;
    case BPT_KNOB_PREFETCH:
        add(&list, 8);
        add(&list, BPT_MOST_PREFETCH);
        add(&list, 2);
        break;
    case BPT_N_KNOBS:
        break;
    }
    return list.n;
}

/* ---- in a set of choices ---- */

static int64_t *count_of(bpt_knob knob, bpt_tuned_choices *c) {
    return knob == BPT_KNOB_THREADS          ? &c->threads
           : knob == BPT_KNOB_LOADER_THREADS ? &c->loader_threads
                                             : &c->prefetch;
}

void bpt_knob_set(bpt_knob knob, int64_t value, bpt_tuned_choices *choices) {
    if (knob == BPT_KNOB_POLICY)
        snprintf(choices->policy, sizeof choices->policy, "%s", bpt_policy_at((size_t)value)->name);
    else
        *count_of(knob, choices) = value;
}

void bpt_knob_text(bpt_knob knob, const bpt_tuned_choices *choices, char *text, size_t size) {
    bpt_tuned_choices c = *choices;
    if (knob == BPT_KNOB_POLICY)
        snprintf(text, size, "%s", c.policy);
    else
        snprintf(text, size, "%" PRId64, *count_of(knob, &c));
}

bool bpt_knob_differs(bpt_knob knob, const bpt_tuned_choices *a, const bpt_tuned_choices *b) {
    char x[32], y[32];
    bpt_knob_text(knob, a, x, sizeof x);
    bpt_knob_text(knob, b, y, sizeof y);
    return strcmp(x, y) != 0;
}
