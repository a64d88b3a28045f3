/* The search of bpt-tune in a world of its own: sides whose steps take what the test says, on a
 * clock that only they move. It finds what is faster, keeps the default where nothing is, and ends
 * in time. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "scheduler/policy.h"
#include "tools/tune/cut_costs.h"
#include "tools/tune/search.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- the world ---- */

typedef double (*factor_of)(const bpt_tuned_choices *c);

static struct {
    double now_s, step_s, build_s;
    double noise;     /* each side of a round takes up to so much more, relative */
    double drift;     /* relative, a second: everything becomes slower */
    double stretch;   /* now and then a side takes so many times as long */
    double misplaced; /* relative: what the first side loses by where its memory lies */
    factor_of factor;
    uint64_t half_ns; /* what half of a convolution takes, of which the whole takes WHOLE_NS */
    bool too_many;    /* no network takes the parts that the costs want */
    bpt_random random;
    unsigned n_contenders, most_contenders, n_built;
    double said_s, silence_s; /* when there was progress last, and the longest time without */
} world;

uint64_t __wrap_bpt_clock_ns(void);
double __wrap_bpt_clock_seconds_since(uint64_t since_ns);

uint64_t __wrap_bpt_clock_ns(void) {
    return (uint64_t)(world.now_s * 1e9);
}

double __wrap_bpt_clock_seconds_since(uint64_t since_ns) {
    return world.now_s - (double)since_ns * 1e-9;
}

void __wrap_bpt_log_progress(const char *line);

void __wrap_bpt_log_progress(const char *line) {
    unsigned round;
    double past_s, budget_s;
    const char *const at = strstr(line, ": round ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, ": round %u, %lf of %lf s", &round, &past_s, &budget_s), 3);
    assert_true(fabs(past_s - world.now_s) < 0.51 && budget_s >= 1.0); /* it begins at 0 */
    world.silence_s = fmax(world.silence_s, world.now_s - world.said_s);
    world.said_s = world.now_s;
}

enum { WHOLE_NS = 100000 };

struct bpt_contender {
    bpt_tuned_choices choices;
    bool first;
};

bpt_status bpt_contender_create(const bpt_tune_subject *subject, const bpt_tuned_choices *choices,
                                bpt_contender **c) {
    (void)subject;
    if (choices->cuts && world.too_many) return bpt_fail(BPT_EFULL, "too many tasks");
    BPT_TRY(BPT_NEW("contender", 1, c));
    (*c)->choices = *choices;
    (*c)->first = world.n_built++ == 0;
    world.now_s += world.build_s;
    if (++world.n_contenders > world.most_contenders) world.most_contenders = world.n_contenders;
    return BPT_OK;
}

void bpt_contender_free(bpt_contender *c) {
    if (c) world.n_contenders--;
    bpt_free(c);
}

bpt_status bpt_contender_run(bpt_contender *c, uint64_t n_steps, double *seconds) {
    double s = world.step_s * (double)n_steps * world.factor(&c->choices);
    s *= 1.0 + world.noise * bpt_random_uniform(&world.random);
    s *= 1.0 + world.drift * world.now_s;
    if (c->first) s *= 1.0 + world.misplaced;
    if (world.stretch > 1.0 && bpt_random_below(&world.random, 8) == 0) s *= world.stretch;
    world.now_s += s;
    *seconds = s;
    return BPT_OK;
}

/* The world has one convolution, a chunk of one sample, and kernels that take it in two ranges of
 * channels. */
static const bpt_conv_problem problem = {.n = 1, .c = 32, .k = 32};

size_t bpt_contender_n_cuts(const bpt_contender *c) {
    const int64_t chunk = 1;
    bpt_cut cuts[BPT_N_CONV_STEPS] = {{0}};
    if (!c->choices.cuts) return 0;
    bpt_cost_table_choose(c->choices.cuts, &problem, &chunk, 1, true, cuts);
    return !bpt_cut_is_whole(cuts[BPT_CONV_FORWARD], 1);
}

bpt_status bpt_cut_costs_measure(const bpt_tune_subject *subject, const bpt_tuned_choices *choices,
                                 bpt_cut cut, uint64_t n_steps, bpt_cost_table *costs) {
    (void)subject;
    const double slower = 1.0 + world.noise * bpt_random_uniform(&world.random);
    const bool halves = cut.channels == 2, whole = cut.channels == 1 && cut.rows == 1;
    const uint64_t ns = halves ? world.half_ns : WHOLE_NS;
    assert_null(choices->cuts);
    world.now_s += world.build_s + world.step_s * (double)n_steps * slower;
    if (world.n_contenders + 1 > world.most_contenders)
        world.most_contenders = world.n_contenders + 1;
    if (!halves && !whole) return BPT_OK;
    const bpt_cost_table now = {.costs = &(bpt_cost){.problem = problem,
                                                     .cut = bpt_cut_normal(cut, 1),
                                                     .ns = (uint64_t)((double)ns * slower)},
                                .n = 1};
    return bpt_cost_table_merge(costs, &now);
}

bool bpt_cut_costs_too_large(bpt_status status) {
    return status == BPT_EFULL;
}

int64_t bpt_cut_costs_margin(double noise) {
    return noise < 0.05 ? 5 : 10;
}

const bpt_task_costs *bpt_contender_costs(const bpt_contender *c) {
    return (const bpt_task_costs *)c; /* whose they are */
}

/* ---- what steps take ---- */

static double alike(const bpt_tuned_choices *c) {
    (void)c;
    return 1.0;
}

static double fifo_is_faster(const bpt_tuned_choices *c) {
    return strcmp(c->policy, "fifo") == 0 ? 0.9 : 1.0;
}

/* Less than two networks that are alike may differ by. */
static double fifo_is_hardly_faster(const bpt_tuned_choices *c) {
    return strcmp(c->policy, "fifo") == 0 ? 0.995 : 1.0;
}

/* One helps only after the other. */
static double two_together(const bpt_tuned_choices *c) {
    const bool few = c->threads == 4;
    return (few ? 0.8 : 1.0) * (few && strcmp(c->policy, "eft") == 0 ? 0.85 : 1.0);
}

static double loading_is_slow(const bpt_tuned_choices *c) {
    return 1.0 / (double)c->loader_threads + (c->prefetch >= 16 ? 0.0 : 0.2);
}

static double cuts_are_faster(const bpt_tuned_choices *c) {
    return c->cuts ? 0.8 : 1.0;
}

static double cuts_of_few_threads(const bpt_tuned_choices *c) {
    return (c->threads == 4 ? 0.8 : 1.0) * cuts_are_faster(c);
}

/* ---- searches ---- */

static bpt_tune_subject with_data = {.dataset = (bpt_dataset *)&with_data};
static bpt_tune_subject without_data;

static void begin_world(uint64_t seed, factor_of factor) {
    memset(&world, 0, sizeof world);
    world.step_s = 0.02;
    world.build_s = 0.3;
    world.factor = factor;
    world.half_ns = WHOLE_NS;
    world.random = bpt_random_stream(seed, BPT_PURPOSE_TEST, 0);
}

/* @return the search, released: what came out is there */
static bpt_search run(bool loads, double budget_s) {
    bpt_search s = {
        .subject = loads ? &with_data : &without_data,
        .prefix = "",
        .limits = {8, 8, loads},
        .budget = {.start_ns = 0, .total = budget_s},
    };
    assert_int_equal(bpt_search_run(&s), BPT_OK);
    const bpt_contender *of_costs = (const bpt_contender *)bpt_search_costs(&s);
    if (!of_costs)
        assert_int_equal(s.gain.n, 0); /* there was no time to measure the default again */
    const bpt_tuned_choices *costs_are_of = of_costs ? &of_costs->choices : &s.standard;
    for (int k = 0; s.n_rounds > 0 && k < BPT_N_KNOBS; k++)
        assert_false(bpt_knob_differs((bpt_knob)k, costs_are_of, &s.best));
    assert_true(s.n_rounds == 0 || costs_are_of->cuts == s.best.cuts);
    if (s.best.cuts) {
        assert_ptr_equal(s.best.cuts, &s.cuts);
        assert_int_equal(s.cuts.workers, s.best.threads);
        assert_int_equal(s.cuts.margin_percent, bpt_cut_costs_margin(s.noise));
    }
    bpt_search_release(&s);
    assert_int_equal(world.n_contenders, 0);
    assert_true(world.most_contenders <= 2); /* memory */
    return s;
}

static bool is_default(const bpt_search *s) {
    for (int k = 0; k < BPT_N_KNOBS; k++)
        if (bpt_knob_differs((bpt_knob)k, &s->best, &s->standard)) return false;
    return !s->best.cuts;
}

static void test_noise_is_no_gain(void **state) {
    (void)state;
    enum { SEARCHES = 200 };
    for (uint64_t seed = 0; seed < SEARCHES; seed++) {
        begin_world(seed, alike);
        world.noise = 0.1;
        world.stretch = seed % 2 ? 3.0 : 1.0;
        world.drift = seed % 4 < 2 ? 0.0 : 0.02;
        if (seed % 5 == 0) world.half_ns = WHOLE_NS / 2; /* a promise that is not kept */
        const bpt_search s = run(seed % 3 == 0, 60.0);
        if (!is_default(&s))
            fail_msg("seed %u: a choice without a gain, ratio %g (%g to %g)", (unsigned)seed,
                     s.gain.median, s.gain.low, s.gain.high);
    }
}

/* Also where every comparison is over within seconds: here there are sixty rounds of a fifth of a
 * second in the longest. On no terminal something is said every five seconds, and then a comparison
 * has to begin and to have a round. */
static void test_progress_is_shown(void **state) {
    (void)state;
    const double budgets[] = {20.0, 60.0, 600.0};
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            begin_world(seed, alike);
            world.noise = 0.1;
            world.step_s = seed % 2 ? 0.001 : 0.02;
            (void)run(seed % 3 == 0, budgets[i]);
            world.silence_s = fmax(world.silence_s, world.now_s - world.said_s);
            assert_true(world.said_s > 0 && world.silence_s < 8.0);
        }
}

static void test_a_gain_is_found(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        begin_world(seed, fifo_is_faster);
        world.noise = 0.05;
        world.drift = seed % 2 ? 0.0 : 0.01;
        const bpt_search s = run(false, 60.0);
        assert_string_equal(s.best.policy, "fifo");
        assert_int_equal(s.best.threads, 8);
        assert_true(s.gain.n >= BPT_SPREAD_MIN);
        assert_true(fabs(s.gain.median - 0.9) < 0.03);
        assert_true(s.best_s.median < s.standard_s.median);
        if (world.drift > 0.0) continue;
        assert_true(fabs(s.standard_s.median / world.step_s - 1.025) < 0.025); /* of one step */
    }
}

static void test_a_tiny_gain_is_dropped(void **state) {
    (void)state;
    begin_world(1, fifo_is_hardly_faster);
    const bpt_search s = run(false, 60.0);
    assert_true(is_default(&s));
    assert_true(s.trials[s.n_trials - 2].measured); /* the last but the cuts */
}

/* Every other network looks faster than the first one, its twin too. */
static void test_what_a_twin_gains_is_noise(void **state) {
    (void)state;
    begin_world(5, alike);
    world.misplaced = 0.04;
    world.noise = 0.01;
    const bpt_search s = run(false, 60.0);
    assert_true(s.noise > 0.03 && s.noise < 0.05);
    for (size_t i = 0; i + 1 < s.n_trials; i++) { /* but for the cuts */
        assert_true(s.trials[i].measured);
        assert_int_equal(s.trials[i].verdict, BPT_WITHIN_NOISE);
    }
    begin_world(5, fifo_is_faster);
    world.misplaced = 0.04;
    assert_string_equal(run(false, 60.0).best.policy, "fifo");
}

static void test_knobs_build_on_each_other(void **state) {
    (void)state;
    begin_world(2, two_together);
    world.noise = 0.03;
    const bpt_search s = run(false, 120.0);
    assert_int_equal(s.best.threads, 4);
    assert_string_equal(s.best.policy, "eft");
    assert_true(fabs(s.gain.median - 0.68) < 0.03);
    /* What each was compared with. */
    static const struct {
        const char *value, *against;
    } threads[] = {{"7", "8"}, {"4", "8"}, {"2", "4"}, {"1", "4"}};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        assert_string_equal(s.trials[i].option, "threads");
        assert_string_equal(s.trials[i].value, threads[i].value);
        assert_string_equal(s.trials[i].against, threads[i].against);
    }
}

static void test_loading(void **state) {
    (void)state;
    begin_world(3, loading_is_slow);
    world.noise = 0.03;
    const bpt_search s = run(true, 120.0);
    assert_int_equal(s.best.loader_threads, 4);
    assert_int_equal(s.best.prefetch, 16);
    begin_world(3, alike);
    const bpt_search none = run(false, 120.0);
    assert_int_equal(none.best.loader_threads, 0); /* not measured, so not chosen */
    assert_int_equal(none.best.prefetch, 0);
}

/* ---- cuts ---- */

static const bpt_trial *trial_of_cuts(const bpt_search *s) {
    const bpt_trial *t = &s->trials[s->n_trials - 1];
    assert_string_equal(t->option, "cuts");
    assert_string_equal(t->value, "by costs");
    assert_string_equal(t->against, "as usual");
    return t;
}

static void test_cuts_are_the_last_choice(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        begin_world(seed, cuts_of_few_threads);
        world.half_ns = WHOLE_NS * 6 / 10;
        world.noise = 0.03;
        const bpt_search s = run(seed % 2, 120.0);
        assert_non_null(s.best.cuts);
        assert_int_equal(s.best.threads, 4);
        assert_true(trial_of_cuts(&s)->measured && !trial_of_cuts(&s)->alike);
        assert_int_equal(trial_of_cuts(&s)->verdict, BPT_FASTER);
        assert_true(fabs(trial_of_cuts(&s)->ratio.median - 0.8) < 0.03);
        assert_true(fabs(s.gain.median - 0.64) < 0.03);
    }
}

/* Halves that take 0.97 of the whole each are sooner by less than the margin: no step is compared,
 * although it would be faster. */
static void test_without_a_promise_nothing_is_compared(void **state) {
    (void)state;
    begin_world(6, cuts_are_faster);
    world.half_ns = WHOLE_NS * 97 / 100;
    const bpt_search s = run(false, 60.0);
    assert_true(is_default(&s));
    assert_true(trial_of_cuts(&s)->alike && !trial_of_cuts(&s)->measured);
}

static void test_a_promise_that_is_not_kept(void **state) {
    (void)state;
    begin_world(7, alike);
    world.half_ns = WHOLE_NS / 2;
    const bpt_search s = run(false, 60.0);
    assert_true(is_default(&s));
    assert_true(trial_of_cuts(&s)->measured);
    assert_int_equal(trial_of_cuts(&s)->verdict, BPT_WITHIN_NOISE);
}

static void test_cuts_that_no_network_takes(void **state) {
    (void)state;
    begin_world(8, cuts_are_faster);
    world.half_ns = WHOLE_NS / 2;
    world.too_many = true;
    const bpt_search s = run(false, 60.0);
    assert_true(is_default(&s));
    assert_false(trial_of_cuts(&s)->measured);
    assert_true(trial_of_cuts(&s)->too_large); /* and not that there was no time */
}

/* ---- time ---- */

/* From a step of a millisecond to one of ten seconds, from a budget that is too small for anything
 * to one that lasts. */
static void test_budget(void **state) {
    (void)state;
    for (double step_s = 1e-3; step_s < 11.0; step_s *= 10.0)
        for (double budget_s = 1.0; budget_s < 2000.0; budget_s *= 3.0)
            for (uint64_t seed = 0; seed < 4; seed++) {
                begin_world(seed, seed % 2 ? fifo_is_faster : cuts_are_faster);
                if (seed > 1) world.half_ns = WHOLE_NS / 2;
                world.step_s = step_s;
                world.build_s = 3.0 * step_s + 0.1;
                world.noise = 0.05;
                const bpt_search s = run(seed < 2, budget_s);
                const double side_s = fmax(0.2, step_s);
                /* The default is built and run in any case. */
                const double least_s = world.build_s + 2.0 * side_s * 1.2;
                const double end_s = fmax(budget_s, least_s) + 2.0 * side_s;
                if (world.now_s > end_s)
                    fail_msg("step %g s, budget %g s: took %g s", step_s, budget_s, world.now_s);
                for (size_t i = 0; i < s.n_trials; i++)
                    if (s.trials[i].measured) assert_true(s.trials[i].ratio.n >= BPT_SPREAD_MIN);
            }
}

static void test_without_time_the_default_stays(void **state) {
    (void)state;
    begin_world(5, fifo_is_faster);
    const bpt_search s = run(false, 1.0);
    assert_true(is_default(&s));
    assert_true(s.n_trials > 0 && fabs(s.standard_s.median / world.step_s - 1.0) < 1e-6);
    for (size_t i = 0; i < s.n_trials; i++) assert_false(s.trials[i].measured);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noise_is_no_gain),
        cmocka_unit_test(test_a_gain_is_found),
        cmocka_unit_test(test_progress_is_shown),
        cmocka_unit_test(test_a_tiny_gain_is_dropped),
        cmocka_unit_test(test_what_a_twin_gains_is_noise),
        cmocka_unit_test(test_knobs_build_on_each_other),
        cmocka_unit_test(test_loading),
        cmocka_unit_test(test_cuts_are_the_last_choice),
        cmocka_unit_test(test_without_a_promise_nothing_is_compared),
        cmocka_unit_test(test_a_promise_that_is_not_kept),
        cmocka_unit_test(test_cuts_that_no_network_takes),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_without_time_the_default_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
