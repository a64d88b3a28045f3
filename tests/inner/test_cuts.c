/* What parts of a step are made of, and how cuts follow from costs.
 *
 * ctest: cpu TIMEOUT=20 */
#include "base/memory.h"
#include "base/random.h"
#include "inner/cuts/cost_table.h"
#include "tests/base/near.h"
#include "tests/inner/conv_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20273, N_PROBLEMS = 4000 };

/* ---- parts ---- */

static int64_t draw(bpt_random *r, int64_t min, int64_t max) {
    return min + bpt_random_below(r, (uint32_t)(max - min + 1));
}

static bpt_conv_problem random_problem(bpt_random *r) {
    bpt_conv_problem p = {.n = draw(r, 1, 5),
                          .groups = draw(r, 0, 3) ? 1 : draw(r, 2, 32),
                          .r = draw(r, 1, 4),
                          .s = 1,
                          .stride = {draw(r, 1, 3), 1},
                          .dilation = {draw(r, 1, 3), 1},
                          .pad = {draw(r, 0, 3), 0}};
    p.c = p.groups * (p.groups > 1 ? draw(r, 1, 8) : 16 * draw(r, 1, 4));
    p.k = p.groups * (p.groups > 1 ? draw(r, 1, 8) : 16 * draw(r, 1, 4));
    p.h = (p.r - 1) * p.dilation[0] + 1 + draw(r, 0, 12);
    p.w = p.q = 1;
    p.p = (p.h + 2 * p.pad[0] - (p.r - 1) * p.dilation[0] - 1) / p.stride[0] + 1;
    return p;
}

/* A part's rows meet those of the whole: each window reads the same rows, and what lies in the
 * padding of the part lies in that of the whole, unless another part computes it. */
static void check_rows(const bpt_conv_problem *whole, const bpt_conv_part *part, bool data) {
    const bpt_conv_problem *p = &part->problem;
    for (int64_t o = 0; o < p->p; o++)
        for (int64_t i = 0; i < p->r; i++) {
            const int64_t own = o * p->stride[0] - p->pad[0] + i * p->dilation[0];
            const int64_t row =
                (part->out[2] + o) * whole->stride[0] - whole->pad[0] + i * whole->dilation[0];
            assert_int_equal(part->in[2] + own, row);
            if (!data && (own < 0 || own >= p->h)) assert_true(row < 0 || row >= whole->h);
        }
}

/* Of backward data: all output rows that an input row of the part goes into are the part's. */
static void check_rows_reached(const bpt_conv_problem *whole, const bpt_conv_part *part) {
    for (int64_t o = 0; o < whole->p; o++)
        for (int64_t i = 0; i < whole->r; i++) {
            const int64_t row = o * whole->stride[0] - whole->pad[0] + i * whole->dilation[0];
            if (row < part->in[2] || row >= part->in[2] + part->problem.h) continue;
            assert_true(o >= part->out[2] && o < part->out[2] + part->problem.p);
        }
}

/* A window that begins behind the first row, or ends a stride before the last, has no kernel. */
static void check_pads(const bpt_conv_problem *p) {
    const int64_t window = (p->r - 1) * p->dilation[0] + 1;
    const int64_t end =
        (p->p - 1) * p->stride[0] + window - p->pad[0]; /* behind the last row read */
    assert_true(p->pad[0] >= 0);
    assert_true(p->h - end < p->stride[0]);
}

/* How many parts give each (sample, channel, row) of what the step computes. */
static void count_results(const bpt_conv_part *part, bpt_conv_step step, const int64_t *extent,
                          uint8_t *counts) {
    const bpt_conv_problem *p = &part->problem;
    const bool data = step == BPT_CONV_BACKWARD_DATA;
    const int64_t *from = data ? part->in : part->out;
    const int64_t channels = data ? p->c : p->k, rows = data ? p->h : p->p;
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t h = 0; h < rows; h++)
                counts[((from[0] + n) * extent[1] + from[1] + c) * extent[2] + from[2] + h]++;
}

static bool check_step(const bpt_conv_problem *p, bpt_conv_step step, bpt_cut cut) {
    static uint8_t counts[5 * 256 * 64];
    const bool data = step == BPT_CONV_BACKWARD_DATA;
    const int64_t extent[] = {p->n, data ? p->c : p->k, data ? p->h : p->p};
    const size_t n = (size_t)(extent[0] * extent[1] * extent[2]);
    assert_true(n <= sizeof counts);
    memset(counts, 0, n);
    for (size_t i = 0; i < bpt_cut_parts(cut, p->n); i++) {
        bpt_conv_part part;
        if (!bpt_cut_part(p, step, cut, i, &part)) return false;
        assert_true(part.partial < bpt_cut_partials(cut, p->n));
        check_pads(&part.problem);
        check_rows(p, &part, data);
        if (data) check_rows_reached(p, &part);
        count_results(&part, step, extent, counts);
    }
    for (size_t i = 0; i < n; i++) assert_int_equal(counts[i], 1);
    return true;
}

static void test_parts_make_the_whole(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 0);
    int n_possible = 0;
    for (int i = 0; i < N_PROBLEMS; i++) {
        const bpt_conv_problem p = random_problem(&r);
        const bpt_cut cut = {draw(&r, 0, 3), draw(&r, 0, 3), draw(&r, 0, 3)};
        n_possible += check_step(&p, (bpt_conv_step)draw(&r, 0, 2), cut);
    }
    assert_true(n_possible > N_PROBLEMS / 4);
}

static void test_parts_say_where_they_are(void **state) {
    (void)state;
    bpt_conv_problem p = conv_square(1, 32, 48, 8);
    bpt_conv_part part;
    assert_true(bpt_cut_part(&p, BPT_CONV_FORWARD, (bpt_cut){.channels = 2}, 1, &part));
    assert_int_equal(part.out[1], 16);
    assert_int_equal(part.problem.k, 32);
    assert_int_equal(part.weights[0], 16);
    assert_true(bpt_cut_part(&p, BPT_CONV_BACKWARD_DATA, (bpt_cut){.channels = 2}, 1, &part));
    assert_int_equal(part.in[1], 16);
    assert_int_equal(part.weights[1], 16);
    assert_true(bpt_cut_part(&p, BPT_CONV_FORWARD, (bpt_cut){.rows = 2}, 1, &part));
    assert_int_equal(part.in[2], 3);
    assert_int_equal(part.problem.h, 5);
    assert_int_equal(part.problem.pad[0], 0);
    assert_false(bpt_cut_part(&p, BPT_CONV_FORWARD, (bpt_cut){.channels = 4}, 0, &part));
    p.groups = 2; /* a part of one group has weights of another number of dimensions */
    assert_false(bpt_cut_part(&p, BPT_CONV_FORWARD, (bpt_cut){.channels = 2}, 0, &part));
}

/* 48 channels are three blocks, 17 rows five and four times three. */
static void test_the_largest_part(void **state) {
    (void)state;
    const bpt_conv_problem p = conv_square(3, 32, 48, 17);
    const struct {
        bpt_cut cut;
        double share;
    } rows[] = {{{0}, 1.0},
                {{.samples = 1}, 1.0 / 3},
                {{.samples = 2}, 2.0 / 3},
                {{.channels = 3}, 1.0 / 9},
                {{.channels = 2}, 2.0 / 9},
                {{.rows = 5}, 4.0 / 51},
                {{.channels = 4}, 0.0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_near(bpt_cut_largest(&p, BPT_CONV_FORWARD, rows[i].cut), rows[i].share, 1e-9);
    assert_near(bpt_cut_largest(&p, BPT_CONV_BACKWARD_DATA, (bpt_cut){.channels = 2}), 1.0 / 6,
                1e-9); /* of two blocks of the input */
    assert_near(bpt_cut_largest(&p, BPT_CONV_BACKWARD_DATA, (bpt_cut){.rows = 5}), 4.0 / 51, 1e-9);
}

/* Rows want channels last and have pads of one side, which Winograd's algorithm takes neither of.
 */
static void test_rows_are_computed_directly(void **state) {
    (void)state;
    bpt_conv_problem p = conv_square(1, 64, 64, 8);
    bpt_conv_part part;
    p.winograd = true;
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) {
        assert_true(bpt_cut_part(&p, (bpt_conv_step)step, (bpt_cut){.rows = 2}, 1, &part));
        assert_false(part.problem.winograd);
        assert_true(bpt_cut_part(&p, (bpt_conv_step)step, (bpt_cut){.channels = 2}, 1, &part));
        assert_true(part.problem.winograd);
    }
}

static void test_cuts_have_one_spelling(void **state) {
    (void)state;
    assert_true(bpt_cut_is_whole((bpt_cut){0}, 4));
    assert_true(bpt_cut_is_whole((bpt_cut){4, 1, 1}, 4));
    assert_false(bpt_cut_is_whole((bpt_cut){3, 1, 1}, 4));
    assert_int_equal(bpt_cut_parts((bpt_cut){3, 0, 0}, 4), 2);
    assert_int_equal(bpt_cut_parts((bpt_cut){3, 2, 0}, 4), 8); /* of one sample each */
    assert_int_equal(bpt_cut_partials((bpt_cut){0, 2, 0}, 1), 1);
    assert_int_equal(bpt_cut_partials((bpt_cut){0, 1, 3}, 2), 6);
}

/* ---- the choice ---- */

typedef struct {
    bpt_cost_table table;
    bpt_conv_problem problem;
    bpt_cut cuts[BPT_N_CONV_STEPS];
} choice;

static choice open_choice(int64_t workers) {
    return (choice){.table = {.workers = workers}, .problem = conv_square(1, 64, 64, 8)};
}

static void note(choice *c, bpt_conv_step step, int64_t samples, int64_t channels, int64_t rows,
                 uint64_t ns) {
    const bpt_cost cost = {step, c->problem, {samples, channels, rows}, ns};
    assert_int_equal(bpt_cost_table_add(&c->table, &cost), BPT_OK);
}

static void choose(choice *c, size_t n_chunks, int64_t samples) {
    int64_t chunks[32];
    for (size_t i = 0; i < n_chunks; i++) chunks[i] = samples;
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) c->cuts[step] = (bpt_cut){0};
    bpt_cost_table_choose(&c->table, &c->problem, chunks, n_chunks, true, c->cuts);
}

static void assert_cut(bpt_cut cut, int64_t channels, int64_t rows) {
    assert_int_equal(bpt_cut_normal(cut, 1).channels, channels);
    assert_int_equal(bpt_cut_normal(cut, 1).rows, rows);
}

static void test_nothing_measured_is_nothing_cut(void **state) {
    (void)state;
    choice c = open_choice(8);
    choose(&c, 1, 1);
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) assert_cut(c.cuts[step], 1, 1);
    note(&c, BPT_CONV_FORWARD, 1, 4, 1, 10); /* but not what it would save */
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 1, 1);
    c.problem.dilation[0] = 2; /* costs of another convolution */
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, 100);
    c.problem.dilation[0] = 1;
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 1, 1);
    bpt_cost_table_clear(&c.table);
}

/* 4 workers. One tile: 100, 2 x 55, 4 x 30, 8 x 20 in two rounds. */
static void test_the_soonest_end_wins(void **state) {
    (void)state;
    choice c = open_choice(4);
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, 100);
    note(&c, BPT_CONV_FORWARD, 1, 2, 1, 55);
    note(&c, BPT_CONV_FORWARD, 1, 4, 1, 30);
    note(&c, BPT_CONV_FORWARD, 1, 8, 1, 20);
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 4, 1);
    choose(&c, 2, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 2, 1);
    choose(&c, 4, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 1, 1);
    choose(&c, 5, 1); /* 200, 3 x 55, 5 x 30, 10 x 20 */
    assert_cut(c.cuts[BPT_CONV_FORWARD], 4, 1);
    bpt_cost_table_clear(&c.table);
}

/* 2 workers. One tile: 1000, 2 x 951, 2 x 950. */
static void test_a_gain_below_the_margin_is_none(void **state) {
    (void)state;
    choice c = open_choice(2);
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, 1000);
    note(&c, BPT_CONV_FORWARD, 1, 2, 1, 951);
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 2, 1);
    c.table.margin_percent = 5;
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 1, 1);
    note(&c, BPT_CONV_FORWARD, 1, 2, 1, 950);
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 2, 1);
    /* Beyond it the soonest counts, by however little. */
    note(&c, BPT_CONV_FORWARD, 1, 4, 1, 474);
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 4, 1);
    c.table.margin_percent = 99;
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 1, 1);
    bpt_cost_table_clear(&c.table);
    c = open_choice(1); /* a sum that 64 bits do not hold */
    c.table.margin_percent = 99;
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, UINT64_MAX);
    note(&c, BPT_CONV_FORWARD, 1, 2, 1, UINT64_MAX / 250);
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 2, 1);
    bpt_cost_table_clear(&c.table);
}

static void test_fewer_parts_win_a_draw(void **state) {
    (void)state;
    choice c = open_choice(4);
    note(&c, BPT_CONV_FORWARD, 1, 4, 1, 50);
    note(&c, BPT_CONV_FORWARD, 1, 2, 1, 50);
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, 100);
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 2, 1);
    bpt_cost_table_clear(&c.table);
}

/* Tiles of 4 samples, of which one was measured. */
static void test_samples_are_cut_where_tiles_are_few(void **state) {
    (void)state;
    choice c = open_choice(8);
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, 100);
    note(&c, BPT_CONV_BACKWARD_WEIGHTS, 1, 1, 1, 100);
    choose(&c, 4, 4);
    assert_int_equal(c.cuts[BPT_CONV_FORWARD].samples, 1);
    assert_int_equal(bpt_cut_normal(c.cuts[BPT_CONV_BACKWARD_WEIGHTS], 4).samples, 4);
    choose(&c, 8, 4);
    assert_int_equal(bpt_cut_normal(c.cuts[BPT_CONV_FORWARD], 4).samples, 4);
    bpt_cost_table_clear(&c.table);
}

static void test_no_more_partial_gradients_than_tiles(void **state) {
    (void)state;
    choice c = open_choice(8);
    note(&c, BPT_CONV_BACKWARD_WEIGHTS, 1, 1, 1, 100);
    note(&c, BPT_CONV_BACKWARD_WEIGHTS, 1, 4, 1, 26);
    note(&c, BPT_CONV_BACKWARD_WEIGHTS, 1, 1, 8, 1);
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_BACKWARD_WEIGHTS], 4, 1);
    choose(&c, 1, 4);
    assert_cut(c.cuts[BPT_CONV_BACKWARD_WEIGHTS], 1, 1);
    bpt_cost_table_clear(&c.table);
}

static void test_a_layer_has_rows_or_channels(void **state) {
    (void)state;
    choice c = open_choice(4);
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) note(&c, (bpt_conv_step)step, 1, 1, 1, 100);
    note(&c, BPT_CONV_FORWARD, 1, 4, 1, 50);
    note(&c, BPT_CONV_FORWARD, 1, 1, 4, 40);
    note(&c, BPT_CONV_BACKWARD_DATA, 1, 4, 1, 30);
    choose(&c, 1, 1); /* 50 + 30 by channels, 40 + 100 by rows */
    assert_cut(c.cuts[BPT_CONV_FORWARD], 4, 1);
    assert_cut(c.cuts[BPT_CONV_BACKWARD_DATA], 4, 1);
    bpt_cut cuts[BPT_N_CONV_STEPS] = {{0}}; /* the first layer of a model has no backward data */
    bpt_cost_table_choose(&c.table, &c.problem, (int64_t[]){1}, 1, false, cuts);
    assert_cut(cuts[BPT_CONV_FORWARD], 1, 4);
    assert_cut(cuts[BPT_CONV_BACKWARD_DATA], 1, 1);
    note(&c, BPT_CONV_BACKWARD_DATA, 1, 1, 4, 35);
    choose(&c, 1, 1); /* 40 + 35 by rows */
    assert_cut(c.cuts[BPT_CONV_FORWARD], 1, 4);
    assert_cut(c.cuts[BPT_CONV_BACKWARD_DATA], 1, 4);
    bpt_cost_table_clear(&c.table);
}

/* Rows would be sooner, but not by the algorithm that the whole steps were measured with. */
static void test_winograd_is_not_cut_along_rows(void **state) {
    (void)state;
    choice c = open_choice(4);
    for (int winograd = 0; winograd < 2; winograd++) {
        c.problem.winograd = winograd;
        note(&c, BPT_CONV_FORWARD, 1, 1, 1, 100);
        note(&c, BPT_CONV_FORWARD, 1, 4, 1, 50);
        note(&c, BPT_CONV_FORWARD, 1, 1, 4, 40);
    }
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 4, 1);
    c.problem.winograd = false;
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 1, 4);
    bpt_cost_table_clear(&c.table);
}

static void test_costs_of_another_algorithm_are_none(void **state) {
    (void)state;
    choice c = open_choice(4);
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, 100);
    note(&c, BPT_CONV_FORWARD, 1, 4, 1, 50);
    c.problem.winograd = true;
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 1, 1);
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, 30);
    assert_int_equal(c.table.n, 3);
    bpt_cost_table_clear(&c.table);
}

/* Whatever tells two convolutions apart, the number of their samples aside. */
static void test_costs_of_another_convolution_are_none(void **state) {
    (void)state;
    choice c = open_choice(4);
    bpt_conv_problem *p = &c.problem;
    int64_t *const numbers[] = {&p->c,         &p->h,           &p->w,           &p->k,
                                &p->p,         &p->q,           &p->r,           &p->s,
                                &p->stride[0], &p->stride[1],   &p->pad[0],      &p->pad[1],
                                &p->groups,    &p->dilation[0], &p->dilation[1], &p->n};
    const bpt_cut cut = {1, 1, 1};
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, 100);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ++*numbers[i];
        assert_int_equal(bpt_cost_table_find(&c.table, BPT_CONV_FORWARD, p, cut),
                         numbers[i] == &p->n ? 100 : 0);
        --*numbers[i];
    }
    p->type = BPT_BF16;
    assert_int_equal(bpt_cost_table_find(&c.table, BPT_CONV_FORWARD, p, cut), 0);
    p->type = BPT_F32;
    assert_int_equal(bpt_cost_table_find(&c.table, BPT_CONV_BACKWARD_DATA, p, cut), 0);
    assert_int_equal(bpt_cost_table_find(&c.table, BPT_CONV_FORWARD, p, cut), 100);
    bpt_cost_table_clear(&c.table);
}

/* 2^62 a sample: 16 samples take longer than any number can say, and so does a sum of steps. */
static void test_absurd_costs_are_long(void **state) {
    (void)state;
    choice c = open_choice(1);
    const uint64_t ns = (uint64_t)1 << 62;
    for (int step = 0; step < BPT_N_CONV_STEPS; step++) note(&c, (bpt_conv_step)step, 1, 1, 1, ns);
    note(&c, BPT_CONV_FORWARD, 1, 2, 1, 5);
    assert_true(bpt_cost_table_find(&c.table, BPT_CONV_FORWARD, &c.problem, (bpt_cut){16, 1, 1}) ==
                UINT64_MAX);
    choose(&c, 1, 16);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 2, 1);
    /* Nor does a sum that is too long keep the next step from its choice. */
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, UINT64_MAX);
    note(&c, BPT_CONV_FORWARD, 1, 2, 1, UINT64_MAX);
    note(&c, BPT_CONV_BACKWARD_WEIGHTS, 1, 2, 1, 5);
    c.cuts[BPT_CONV_BACKWARD_WEIGHTS] = (bpt_cut){9, 9, 9};
    choose(&c, 1, 1);
    assert_cut(c.cuts[BPT_CONV_FORWARD], 1, 1);
    assert_cut(c.cuts[BPT_CONV_BACKWARD_WEIGHTS], 2, 1);
    bpt_cost_table_clear(&c.table);
}

static void test_a_newer_cost_takes_the_place_of_the_old(void **state) {
    (void)state;
    choice c = open_choice(4);
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, 100);
    note(&c, BPT_CONV_FORWARD, 1, 1, 1, 90);
    assert_int_equal(c.table.n, 1);
    assert_int_equal(
        bpt_cost_table_find(&c.table, BPT_CONV_FORWARD, &c.problem, (bpt_cut){1, 1, 1}), 90);
    assert_int_equal(
        bpt_cost_table_find(&c.table, BPT_CONV_FORWARD, &c.problem, (bpt_cut){3, 1, 1}), 270);
    assert_int_equal(
        bpt_cost_table_find(&c.table, BPT_CONV_FORWARD, &c.problem, (bpt_cut){1, 2, 1}), 0);
    assert_int_equal(
        bpt_cost_table_find(&c.table, BPT_CONV_FORWARD, &c.problem, (bpt_cut){1, 1, 2}), 0);
    bpt_cost_table_clear(&c.table);
}

static void test_of_two_tables_the_shorter_costs_stay(void **state) {
    (void)state;
    choice a = open_choice(4), b = open_choice(9);
    note(&a, BPT_CONV_FORWARD, 1, 1, 1, 100);
    note(&a, BPT_CONV_FORWARD, 1, 2, 1, 60);
    note(&b, BPT_CONV_FORWARD, 1, 2, 1, 50);
    note(&b, BPT_CONV_FORWARD, 1, 1, 1, 110);
    note(&b, BPT_CONV_FORWARD, 8, 1, 1, 900); /* more than 8 x 100, and measured itself */
    assert_int_equal(bpt_cost_table_merge(&a.table, &b.table), BPT_OK);
    assert_int_equal(a.table.n, 3);
    assert_int_equal(a.table.workers, 4);
    assert_int_equal(a.table.costs[0].ns, 100);
    assert_int_equal(a.table.costs[1].ns, 50);
    assert_int_equal(a.table.costs[2].ns, 900);
    bpt_cost_table_clear(&a.table);
    bpt_cost_table_clear(&b.table);
}

/* ---- the file ---- */

static bpt_status parse(const char *text, bpt_cost_table *out) {
    bpt_yaml *doc;
    const bpt_status parsed = bpt_yaml_parse("costs.yaml", text, strlen(text), &doc);
    if (parsed != BPT_OK) return parsed;
    const bpt_status status = bpt_cost_table_read(doc, bpt_yaml_root(doc), out);
    bpt_yaml_free(doc);
    return status;
}

static void test_a_file_gives_the_table_back(void **state) {
    (void)state;
    choice c = open_choice(12);
    bpt_cost_table read = {0};
    c.table.margin_percent = 7;
    char *text, *again;
    assert_int_equal(bpt_cost_table_write(&c.table, 0, &text), BPT_OK);
    assert_int_equal(parse(text, &read), BPT_OK);
    assert_int_equal(read.n, 0);
    bpt_free(text);
    note(&c, BPT_CONV_FORWARD, 1, 4, 1, 123456789);
    c.problem.winograd = true;
    note(&c, BPT_CONV_FORWARD, 1, 4, 1, 98765);
    c.problem.winograd = false;
    c.problem.type = BPT_BF16;
    c.problem.dilation[1] = 3;
    c.problem.groups = 16;
    note(&c, BPT_CONV_BACKWARD_WEIGHTS, 16, 1, 1, 1);
    assert_int_equal(bpt_cost_table_write(&c.table, 4, &text), BPT_OK);
    assert_int_equal(parse(text, &read), BPT_OK);
    assert_int_equal(read.workers, 12);
    assert_int_equal(read.margin_percent, 7);
    assert_int_equal(read.n, 3);
    assert_int_equal(read.costs[0].ns, 123456789);
    assert_int_equal(read.costs[1].ns, 98765);
    assert_true(read.costs[1].problem.winograd);
    assert_int_equal(
        bpt_cost_table_find(&read, BPT_CONV_BACKWARD_WEIGHTS, &c.problem, (bpt_cut){16, 1, 1}), 1);
    assert_int_equal(bpt_cost_table_write(&read, 4, &again), BPT_OK);
    assert_string_equal(text, again);
    bpt_free(again);
    bpt_free(text);
    bpt_cost_table_clear(&read);
    bpt_cost_table_clear(&c.table);
}

/* Numbers of as many digits as there are, far to the right. */
static void test_a_file_of_long_numbers(void **state) {
    (void)state;
    enum { N = 9, INDENT = 400, MOST = INT32_MAX };
    bpt_cost_table t = {.workers = 1}, read = {0};
    bpt_cost cost = {.problem = {.c = MOST,
                                 .h = MOST,
                                 .w = MOST,
                                 .k = MOST,
                                 .p = MOST,
                                 .q = MOST,
                                 .r = MOST,
                                 .s = MOST,
                                 .stride = {MOST, MOST},
                                 .pad = {MOST, MOST},
                                 .dilation = {MOST, MOST},
                                 .groups = MOST},
                     .ns = INT64_MAX};
    char *text, *again;
    for (int i = 0; i < N; i++) {
        cost.cut = (bpt_cut){MOST - i, BPT_MAX_CUT, BPT_MAX_CUT};
        assert_int_equal(bpt_cost_table_add(&t, &cost), BPT_OK);
    }
    assert_int_equal(bpt_cost_table_write(&t, INDENT, &text), BPT_OK);
    assert_int_equal(parse(text, &read), BPT_OK);
    assert_int_equal(read.n, N);
    assert_true(read.costs[N - 1].ns == INT64_MAX);
    assert_int_equal(bpt_cost_table_write(&read, INDENT, &again), BPT_OK);
    assert_string_equal(text, again);
    bpt_free(again);
    bpt_free(text);
    bpt_cost_table_clear(&read);
    bpt_cost_table_clear(&t);
}

#define CONV "[64, 8, 8, 64, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1]"

static void test_a_wrong_file_is_refused_by_line(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "workers: 4\n",
        "costs: []\n",
        "workers: 0\ncosts: []\n",
        "workers: 4\ncosts: 3\n",
        "workers: 4\nmargin-percent: 100\ncosts: []\n",
        "workers: 4\nmargin-percent: -1\ncosts: []\n",
        "workers: 4\ncosts: []\nother: 1\n",
        "workers: 4\ncosts:\n  - [forward, fp32, direct, " CONV ", [1, 1, 1]]\n",
        "workers: 4\ncosts:\n  - [sideways, fp32, direct, " CONV ", [1, 1, 1], 5]\n",
        "workers: 4\ncosts:\n  - [forward, fp64, direct, " CONV ", [1, 1, 1], 5]\n",
        "workers: 4\ncosts:\n  - [forward, fp32, " CONV ", [1, 1, 1], 5]\n", /* format 1 */
        "workers: 4\ncosts:\n  - [forward, fp32, fft, " CONV ", [1, 1, 1], 5]\n",
        "workers: 4\ncosts:\n  - [forward, fp32, direct, [64, 8], [1, 1, 1], 5]\n",
        "workers: 4\ncosts:\n  - [forward, fp32, direct, " CONV ", [0, 1, 1], 5]\n",
        "workers: 4\ncosts:\n  - [forward, fp32, direct, " CONV ", [1, 65, 1], 5]\n",
        "workers: 4\ncosts:\n  - [forward, fp32, direct, " CONV ", [1, 1, 65], 5]\n",
        "workers: 4\ncosts:\n  - [forward, fp32, direct, " CONV ", [1, 1, 1], 0]\n",
        "workers: 4\ncosts:\n"
        "  - [forward, fp32, direct, [0, 8, 8, 64, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1], "
        "5]\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bpt_cost_table t = {0};
        if (parse(wrong[i], &t) != BPT_EUSAGE) fail_msg("accepted: %s", wrong[i]);
        assert_non_null(strstr(bpt_error_last()->text, "costs.yaml:"));
        assert_null(t.costs);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_make_the_whole),
        cmocka_unit_test(test_parts_say_where_they_are),
        cmocka_unit_test(test_the_largest_part),
        cmocka_unit_test(test_rows_are_computed_directly),
        cmocka_unit_test(test_cuts_have_one_spelling),
        cmocka_unit_test(test_nothing_measured_is_nothing_cut),
        cmocka_unit_test(test_the_soonest_end_wins),
        cmocka_unit_test(test_a_gain_below_the_margin_is_none),
        cmocka_unit_test(test_fewer_parts_win_a_draw),
        cmocka_unit_test(test_samples_are_cut_where_tiles_are_few),
        cmocka_unit_test(test_no_more_partial_gradients_than_tiles),
        cmocka_unit_test(test_a_layer_has_rows_or_channels),
        cmocka_unit_test(test_winograd_is_not_cut_along_rows),
        cmocka_unit_test(test_costs_of_another_algorithm_are_none),
        cmocka_unit_test(test_costs_of_another_convolution_are_none),
        cmocka_unit_test(test_absurd_costs_are_long),
        cmocka_unit_test(test_a_newer_cost_takes_the_place_of_the_old),
        cmocka_unit_test(test_of_two_tables_the_shorter_costs_stay),
        cmocka_unit_test(test_a_file_gives_the_table_back),
        cmocka_unit_test(test_a_file_of_long_numbers),
        cmocka_unit_test(test_a_wrong_file_is_refused_by_line),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
