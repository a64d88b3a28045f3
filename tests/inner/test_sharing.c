/* The planner of shared memory alone: random graphs, every pair of buffers checked against a plain
 * reachability, offsets against overlap and bounds.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/memory.h"
#include "base/random.h"
#include "inner/memory/sharing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20268, MAX_TASKS = 160, MAX_BUFFERS = 90, MAX_LIST = 24 };

typedef struct {
    size_t n_tasks, n_buffers;
    bpt_user users[MAX_TASKS];
    uint32_t after[MAX_TASKS][MAX_LIST], touched[MAX_TASKS][MAX_LIST];
    size_t bytes[MAX_BUFFERS];
    bool reaches[MAX_TASKS][MAX_TASKS]; /* [a][b]: b cannot begin before a has ended */
    bool uses[MAX_BUFFERS][MAX_TASKS];
} sample;

static void ok(bpt_status status) {
    if (status != BPT_OK) fail_msg("%s", bpt_error_last()->text);
}

static bool has(const uint32_t *list, size_t n, uint32_t x) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == x) return true;
    return false;
}

static void add_edge(sample *s, size_t to, uint32_t from) {
    bpt_user *u = &s->users[to];
    if (u->n_after < MAX_LIST) s->after[to][u->n_after++] = from;
}

static void add_use(sample *s, size_t task, uint32_t buffer) {
    bpt_user *u = &s->users[task];
    if (u->n_buffers < MAX_LIST && !has(s->touched[task], u->n_buffers, buffer))
        s->touched[task][u->n_buffers++] = buffer;
}

static sample *new_sample(size_t n_tasks, size_t n_buffers) {
    sample *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->n_tasks = n_tasks;
    s->n_buffers = n_buffers;
    for (size_t t = 0; t < n_tasks; t++)
        s->users[t] = (bpt_user){.after = s->after[t], .buffers = s->touched[t]};
    return s;
}

/* Buffers are touched by tasks near each other, as activations are; some by none at all. */
static sample *random_sample(uint64_t id) {
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, id);
    const size_t n_tasks = 1 + bpt_random_below(&r, MAX_TASKS);
    sample *s = new_sample(n_tasks, 1 + bpt_random_below(&r, MAX_BUFFERS));
    const uint32_t n_edges = bpt_random_below(&r, 4), spread = 1 + bpt_random_below(&r, 20);
    for (size_t t = 1; t < n_tasks; t++)
        for (uint32_t e = 0; e < n_edges; e++) {
            const size_t back = 1 + bpt_random_below(&r, spread);
            add_edge(s, t, (uint32_t)(t > back ? t - back : 0));
        }
    /* Some wait for what the one before waits for, by the same list. */
    for (size_t t = 1; t < n_tasks; t++)
        if (bpt_random_below(&r, 3) == 0) {
            s->users[t].after = s->users[t - 1].after;
            s->users[t].n_after = s->users[t - 1].n_after;
        }
    for (uint32_t b = 0; b < s->n_buffers; b++) {
        const size_t first = bpt_random_below(&r, (uint32_t)n_tasks);
        const uint32_t n_uses = bpt_random_below(&r, 6);
        s->bytes[b] = bpt_random_below(&r, 4) ? 64 * (1 + (size_t)bpt_random_below(&r, 50)) : 64;
        for (uint32_t i = 0; i < n_uses; i++) {
            const size_t t = first + bpt_random_below(&r, spread);
            add_use(s, t < n_tasks ? t : n_tasks - 1, b);
        }
    }
    return s;
}

static void find_reach(sample *s) {
    for (size_t t = 0; t < s->n_tasks; t++)
        for (size_t i = 0; i < s->users[t].n_buffers; i++) s->uses[s->touched[t][i]][t] = true;
    for (size_t b = 0; b < s->n_tasks; b++)
        for (size_t i = 0; i < s->users[b].n_after; i++) {
            const size_t before = s->users[b].after[i];
            s->reaches[before][b] = true;
            for (size_t a = 0; a < before; a++) s->reaches[a][b] |= s->reaches[a][before];
        }
}

/* Every use of @p a ends before any of @p b begins. */
static bool is_before(const sample *s, uint32_t a, uint32_t b) {
    for (size_t x = 0; x < s->n_tasks; x++)
        for (size_t y = 0; s->uses[a][x] && y < s->n_tasks; y++)
            if (s->uses[b][y] && !s->reaches[x][y]) return false;
    return true;
}

static bool may_share(const sample *s, uint32_t a, uint32_t b) {
    return is_before(s, a, b) || is_before(s, b, a);
}

/* No plan is smaller than what one task touches. */
static size_t lower_bound(const sample *s) {
    size_t bound = 0;
    for (size_t t = 0; t < s->n_tasks; t++) {
        size_t sum = 0;
        for (size_t i = 0; i < s->users[t].n_buffers; i++) sum += s->bytes[s->touched[t][i]];
        if (sum > bound) bound = sum;
    }
    return bound;
}

static void check_places(const sample *const *graphs, size_t n_graphs, const bpt_sharing *sharing) {
    const sample *s = graphs[0];
    size_t offsets[MAX_BUFFERS], total, sum = 0;
    ok(bpt_sharing_place(sharing, s->bytes, offsets, &total));
    for (uint32_t a = 0; a < s->n_buffers; a++) {
        sum += s->bytes[a];
        assert_true(offsets[a] + s->bytes[a] <= total);
        for (uint32_t b = 0; b < a; b++) {
            bool share = true;
            for (size_t g = 0; g < n_graphs; g++) share &= may_share(graphs[g], a, b);
            assert_int_equal(bpt_sharing_allows(sharing, a, b), share);
            assert_int_equal(bpt_sharing_allows(sharing, b, a), share);
            const bool apart =
                offsets[a] + s->bytes[a] <= offsets[b] || offsets[b] + s->bytes[b] <= offsets[a];
            if (!share && !apart) fail_msg("buffers %u and %u overlap", a, b);
        }
    }
    assert_true(total <= sum);
    for (size_t g = 0; g < n_graphs; g++) assert_true(total >= lower_bound(graphs[g]));
}

static void check(const sample *const *graphs, size_t n_graphs) {
    bpt_sharing *sharing = NULL;
    ok(bpt_sharing_create(graphs[0]->n_buffers, &sharing));
    for (size_t g = 0; g < n_graphs; g++)
        ok(bpt_sharing_note(sharing, graphs[g]->users, graphs[g]->n_tasks));
    check_places(graphs, n_graphs, sharing);
    bpt_sharing_free(sharing);
}

static void test_random_graphs(void **state) {
    (void)state;
    for (uint64_t id = 0; id < 80; id++) {
        sample *s = random_sample(id);
        find_reach(s);
        check((const sample *const[]){s}, 1);
        free(s);
    }
}

/* More last uses than are looked at together, in chains: most buffers are over before most others
 * begin. No edge leads from one use of a buffer to another, so that each is a last one. Every fifth
 * is not used, by turns also where a group of them ends. By turns all tasks are one chain. */
static void test_many_uses(void **state) {
    (void)state;
    enum { N_TASKS = 150, N_USES = 24, APART = 3, N_PLACES = 12, SPAN = APART * N_PLACES };
    for (uint64_t id = 0; id < 10; id++) {
        bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 2000 + id);
        sample *s = new_sample(N_TASKS, MAX_BUFFERS);
        size_t n_uses = 0;
        for (size_t t = 1; t < N_TASKS; t++)
            add_edge(s, t,
                     (uint32_t)(t - 1 - bpt_random_below(&r, t > 3 && id % 2 ? APART - 1 : 1)));
        for (uint32_t b = 0; b < MAX_BUFFERS; b++) {
            const size_t first = b * (N_TASKS - SPAN) / MAX_BUFFERS / APART * APART;
            s->bytes[b] = 64;
            for (uint32_t i = 0; i < N_USES && (b + id) % 5; i++)
                add_use(s, first + (size_t)APART * bpt_random_below(&r, N_PLACES), b);
        }
        for (size_t t = 0; t < N_TASKS; t++) n_uses += s->users[t].n_buffers;
        assert_true(n_uses > 512);
        find_reach(s);
        check((const sample *const[]){s}, 1);
        free(s);
    }
}

/* Two graphs on the same buffers: what either keeps apart stays apart. */
static void test_several_graphs(void **state) {
    (void)state;
    for (uint64_t id = 0; id < 40; id++) {
        sample *a = random_sample(1000 + 2 * id), *b = random_sample(1001 + 2 * id);
        for (size_t t = 0; t < b->n_tasks; t++) {
            b->users[t].n_buffers = 0;
            for (uint32_t i = 0; i < 2 && a->n_buffers > 0; i++)
                add_use(b, t, (uint32_t)((t * 7 + i * 3 + id) % a->n_buffers));
        }
        b->n_buffers = a->n_buffers;
        memcpy(b->bytes, a->bytes, sizeof b->bytes);
        find_reach(a);
        find_reach(b);
        check((const sample *const[]){a, b}, 2);
        free(a);
        free(b);
    }
}

/* In a chain where each task reads what the one before has written, two buffers are live at a time,
 * and greedy placing finds the best plan. */
static void test_chain(void **state) {
    (void)state;
    sample *s = new_sample(60, 59);
    for (uint32_t t = 0; t < 60; t++) {
        if (t > 0) add_edge(s, t, t - 1);
        if (t > 0) add_use(s, t, t - 1);
        if (t < 59) add_use(s, t, t);
    }
    for (size_t b = 0; b < 59; b++) s->bytes[b] = 128;
    find_reach(s);
    bpt_sharing *sharing = NULL;
    size_t offsets[MAX_BUFFERS], total;
    ok(bpt_sharing_create(s->n_buffers, &sharing));
    ok(bpt_sharing_note(sharing, s->users, s->n_tasks));
    check_places((const sample *const[]){s}, 1, sharing);
    ok(bpt_sharing_place(sharing, s->bytes, offsets, &total));
    assert_int_equal(total, 2 * 128);
    bpt_sharing_free(sharing);
    free(s);
}

/* A buffer takes the smallest gap that has room for it, and leaves larger ones to others. The first
 * four lie one on the other; the fifth would fit under the second or between the second and the
 * fourth, the last under the second alone. */
static void test_best_fit(void **state) {
    (void)state;
    enum { N_TASKS = 4, N_BUFFERS = 6 };
    static const size_t bytes[N_BUFFERS] = {640, 576, 512, 448, 384, 320};
    static const bool uses[N_TASKS][N_BUFFERS] = {{true, true, true, true, false, false},
                                                  {false, true, true, true, false, true},
                                                  {false, true, false, true, true, true},
                                                  {false, true, false, true, true, false}};
    sample *s = new_sample(N_TASKS, N_BUFFERS);
    for (uint32_t t = 0; t < N_TASKS; t++) {
        if (t > 0) add_edge(s, t, t - 1);
        for (uint32_t b = 0; b < N_BUFFERS; b++)
            if (uses[t][b]) add_use(s, t, b);
    }
    memcpy(s->bytes, bytes, sizeof bytes);
    find_reach(s);
    bpt_sharing *sharing = NULL;
    size_t offsets[MAX_BUFFERS], total;
    ok(bpt_sharing_create(N_BUFFERS, &sharing));
    ok(bpt_sharing_note(sharing, s->users, s->n_tasks));
    check_places((const sample *const[]){s}, 1, sharing);
    ok(bpt_sharing_place(sharing, s->bytes, offsets, &total));
    assert_int_equal(total, lower_bound(s));
    bpt_sharing_free(sharing);
    free(s);
}

/* Numbers in order are no order: without edges nothing is shared. A buffer with more uses than a
 * word has bits is followed too. */
static void test_edges_alone_order(void **state) {
    (void)state;
    sample *s = new_sample(150, 3);
    for (uint32_t t = 0; t < 70; t++) add_use(s, t, 0);
    for (uint32_t t = 71; t < 141; t++) add_use(s, t, 1);
    add_use(s, 149, 2);
    s->bytes[0] = s->bytes[1] = s->bytes[2] = 64;
    for (int joined = 0; joined < 2; joined++) {
        bpt_sharing *sharing = NULL;
        for (uint32_t t = 0; joined && t < 70; t++) { /* by task 70, as a chain */
            if (t > 0) add_edge(s, t, t - 1);
            add_edge(s, 71 + t, 70);
        }
        if (joined) add_edge(s, 70, 69);
        memset(s->reaches, 0, sizeof s->reaches);
        find_reach(s);
        ok(bpt_sharing_create(3, &sharing));
        ok(bpt_sharing_note(sharing, s->users, s->n_tasks));
        assert_int_equal(bpt_sharing_allows(sharing, 0, 1), joined);
        assert_false(bpt_sharing_allows(sharing, 0, 2));
        check_places((const sample *const[]){s}, 1, sharing);
        bpt_sharing_free(sharing);
    }
    free(s);
}

/* Sizes that no sum can hold stay too large. */
static void test_overflow(void **state) {
    (void)state;
    const size_t bytes[] = {SIZE_MAX - 100, 64, SIZE_MAX};
    const uint32_t all[] = {0, 1, 2};
    const bpt_user user = {.buffers = all, .n_buffers = 3};
    bpt_sharing *sharing = NULL;
    size_t offsets[3], total;
    ok(bpt_sharing_create(3, &sharing));
    ok(bpt_sharing_note(sharing, &user, 1));
    ok(bpt_sharing_place(sharing, bytes, offsets, &total));
    assert_true(total == SIZE_MAX);
    bpt_sharing_free(sharing);
}

static bpt_status plan(const sample *s) {
    bpt_sharing *sharing;
    size_t offsets[MAX_BUFFERS], total;
    BPT_TRY(bpt_sharing_create(s->n_buffers, &sharing));
    bpt_status status = bpt_sharing_note(sharing, s->users, s->n_tasks);
    if (status == BPT_OK) status = bpt_sharing_place(sharing, s->bytes, offsets, &total);
    bpt_sharing_free(sharing);
    return status;
}

static void test_no_memory(void **state) {
    (void)state;
    sample *s = random_sample(5);
    const uint64_t live = bpt_memory_live();
    bpt_status status = BPT_ENOMEM;
    int64_t n = 0;
    for (; status != BPT_OK; n++) {
        bpt_memory_fail_at(n);
        status = plan(s);
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_true(n > 8);
    free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_several_graphs),
        cmocka_unit_test(test_many_uses),     cmocka_unit_test(test_chain),
        cmocka_unit_test(test_best_fit),      cmocka_unit_test(test_edges_alone_order),
        cmocka_unit_test(test_overflow),      cmocka_unit_test(test_no_memory),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
