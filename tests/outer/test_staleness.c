/* The staleness bound under simulated timings of workers. */
#include "base/random.h"
#include "outer/rules/staleness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { M_MAX = 6, CLOCKS = 200 };

typedef struct worker {
    uint64_t ready_at; /* when its next submission arrives */
    uint64_t applied;  /* submissions applied: the clock that the others can see */
    bool waiting;      /* a submission is here, not applied */
} worker;

static void apply_admitted(bpt_clocks *c, worker *w, bpt_random *r, uint64_t now) {
    for (bool again = true; again;) {
        again = false;
        for (uint32_t j = 0; j < c->n_workers; j++) {
            if (!w[j].waiting || !bpt_clocks_admit(c, j)) continue;
            w[j].waiting = false;
            w[j].applied++;
            w[j].ready_at = now + 1 + bpt_random_below(r, j == 0 ? 100 : 10 * (j + 1));
            if (w[j].applied == CLOCKS) c->active[j] = false; /* ended */
            again = true;
        }
    }
}

/* Runs m workers of different speeds until each has made CLOCKS submissions.
 * @return the largest lead at which a submission was applied */
static uint64_t simulate(uint32_t m, uint32_t bound, uint64_t id) {
    uint64_t clock[M_MAX];
    bool active[M_MAX];
    bpt_clocks c = {.n_workers = m, .bound = bound, .clock = clock, .active = active};
    bpt_clocks_level(&c);
    bpt_random r = bpt_random_stream(6, BPT_PURPOSE_TEST, id);
    worker w[M_MAX] = {0};
    uint64_t largest = 0;
    for (uint64_t now = 0;; now++) {
        bool all_ended = true, any_moves = false;
        for (uint32_t j = 0; j < m; j++) {
            if (!active[j]) continue;
            all_ended = false;
            if (w[j].waiting) continue;
            any_moves = true;
            if (w[j].ready_at > now) continue;
            clock[j]++;
            w[j].waiting = true;
            if (bpt_clocks_admit(&c, j) && bpt_clocks_lead(&c, j) > largest)
                largest = bpt_clocks_lead(&c, j);
        }
        if (all_ended) return largest;
        assert_true(any_moves); /* else all wait: a deadlock */
        apply_admitted(&c, w, &r, now);
        for (uint32_t j = 0; j < m; j++)
            for (uint32_t k = 0; k < m; k++)
                if (active[j] && active[k]) assert_true(w[j].applied <= clock[k] + bound);
    }
}

static void test_bound_holds_without_deadlock(void **state) {
    (void)state;
    const uint32_t bounds[] = {0, 1, 3, 10, 1000};
    for (uint32_t m = 1; m <= M_MAX; m++)
        for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++)
            for (uint64_t trial = 0; trial < 5; trial++)
                assert_true(simulate(m, bounds[b], trial * 100 + m * 10 + b) <= bounds[b]);
}

static void test_no_bound_never_waits(void **state) {
    (void)state;
    uint64_t clock[] = {1000000, 0};
    bool active[] = {true, true};
    bpt_clocks c = {.n_workers = 2, .bound = BPT_STALENESS_NONE, .clock = clock, .active = active};
    assert_true(bpt_clocks_admit(&c, 0));
    assert_int_equal(bpt_clocks_lead(&c, 0), 1000000);
}

static void test_ended_workers_do_not_count(void **state) {
    (void)state;
    uint64_t clock[] = {9, 4, 7};
    bool active[] = {true, true, true};
    bpt_clocks c = {.n_workers = 3, .bound = 2, .clock = clock, .active = active};
    assert_int_equal(bpt_clocks_lead(&c, 0), 5);
    assert_false(bpt_clocks_admit(&c, 0));
    assert_true(bpt_clocks_admit(&c, 1)); /* the slowest */
    active[1] = false;
    assert_int_equal(bpt_clocks_lead(&c, 0), 2);
    assert_true(bpt_clocks_admit(&c, 0));
    active[0] = active[2] = false;
    assert_true(bpt_clocks_admit(&c, 0));
    bpt_clocks_level(&c);
    assert_int_equal(clock[0], 0);
    assert_true(active[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_holds_without_deadlock),
        cmocka_unit_test(test_no_bound_never_waits),
        cmocka_unit_test(test_ended_workers_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
