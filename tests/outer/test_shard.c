/* How the vector of weights is cut, and how large a part each rank gets. */
#include "base/memory.h"
#include "base/random.h"
#include "outer/exchange/shard.h"
#include "outer/placement/placement.h"
#include "tests/base/near.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void check_shards(size_t n, uint32_t m) {
    bpt_shard_table *t = NULL;
    assert_int_equal(bpt_shard_table_create(n, m, 0, NULL, &t), BPT_OK);
    assert_int_equal(bpt_shard_count(t), m);
    size_t at = 0, smallest = n, largest = 0;
    for (uint32_t s = 0; s < m; s++) {
        const bpt_shard *shard = bpt_shard_at(t, s);
        assert_int_equal(shard->begin, at);
        assert_true(shard->end >= shard->begin);
        assert_int_equal(shard->host, s);
        if (shard->end < n) assert_int_equal(shard->end % BPT_SHARD_ALIGNMENT, 0);
        at = shard->end;
        if (at - shard->begin < smallest) smallest = at - shard->begin;
        if (at - shard->begin > largest) largest = at - shard->begin;
    }
    assert_int_equal(at, n);
    assert_true(largest - smallest <= 2 * BPT_SHARD_ALIGNMENT);
    bpt_shard_table_free(t);
}

static void test_shards(void **state) {
    (void)state;
    const size_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 1000, 44426, 138357544};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint32_t m = 1; m <= 30; m++) check_shards(sizes[i], m);
}

static void test_describe(void **state) {
    (void)state;
    bpt_shard_table *t = NULL;
    char text[128];
    assert_int_equal(bpt_shard_table_create(20, 3, 0, NULL, &t), BPT_OK);
    bpt_shard_describe(t, 1, text, sizeof text);
    assert_string_equal(text, "shard 1 of 3 on rank 1: elements 16..19 (16 bytes)");
    bpt_shard_describe(t, 2, text, sizeof text);
    assert_string_equal(text, "shard 2 of 3 on rank 2: empty");
    bpt_shard_table_free(t);
}

/* Every element in one shard, borders aligned, sizes by the parts. */
static void check_parts(size_t n, uint32_t m, const double *part) {
    bpt_shard_table *t = NULL;
    size_t at = 0;
    assert_int_equal(bpt_shard_table_create(n, m, 0, part, &t), BPT_OK);
    for (uint32_t s = 0; s < m; s++) {
        const bpt_shard *shard = bpt_shard_at(t, s);
        assert_int_equal(shard->begin, at);
        assert_in_range(shard->end, at, n);
        if (shard->end < n) assert_int_equal(shard->end % BPT_SHARD_ALIGNMENT, 0);
        assert_true(fabs((double)(shard->end - at) - part[s] * (double)n) <=
                    2 * BPT_SHARD_ALIGNMENT);
        at = shard->end;
    }
    assert_int_equal(at, n);
    bpt_shard_table_free(t);
}

static void test_parts(void **state) {
    (void)state;
    const double unequal[] = {0.5, 0.25, 0.125, 0.125}, none[] = {0, 1, 0};
    const size_t sizes[] = {0, 1, 16, 17, 1000, 44426, 138357544};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_parts(sizes[i], 4, unequal);
        check_parts(sizes[i], 3, none);
        for (uint32_t m = 1; m <= 30; m++) {
            double part[30];
            for (uint32_t s = 0; s < m; s++) part[s] = (1.0 + s) / (m * (m + 1) / 2.0);
            check_parts(sizes[i], m, part);
        }
    }
}

static void test_borders(void **state) {
    (void)state;
    bpt_shard_table *t = NULL;
    const uint64_t right[] = {0, 160, 160, 1000};
    assert_int_equal(bpt_shard_table_at(1000, 4, 0, right, &t), BPT_OK);
    assert_int_equal(bpt_shard_at(t, 1)->begin, 160);
    assert_int_equal(bpt_shard_at(t, 1)->end, 160);
    assert_int_equal(bpt_shard_at(t, 2)->end, 1000);
    assert_int_equal(bpt_shard_at(t, 3)->end, 1000);
    bpt_shard_table_free(t);
    const uint64_t wrong[][4] = {
        {16, 160, 320, 480}, {0, 160, 144, 480}, {0, 160, 170, 480}, {0, 160, 320, 1008}};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(bpt_shard_table_at(1000, 4, 0, wrong[i], &t), BPT_EDATA);
    assert_int_equal(bpt_shard_table_at(64, 2, 0, (const uint64_t[]){32, 16}, &t), BPT_EDATA);
    assert_int_equal(bpt_shard_table_at(64, 3, 0, (const uint64_t[]){0, 32, 16}, &t), BPT_EDATA);
}

/* Ten times a tenth is not all of it, as floating-point numbers have it. */
static void test_the_last_ends_with_the_vector(void **state) {
    (void)state;
    const size_t n = (size_t)1 << 60;
    double part[10];
    bpt_shard_table *t = NULL;
    for (int s = 0; s < 10; s++) part[s] = 0.1;
    assert_int_equal(bpt_shard_table_create(n, 10, 0, part, &t), BPT_OK);
    assert_true(bpt_shard_at(t, 9)->end == n);
    bpt_shard_table_free(t);
}

/* Of three shards the second is empty: what it has taken is in no answer. */
static void test_spread(void **state) {
    (void)state;
    bpt_shard_table *t = NULL;
    assert_int_equal(bpt_shard_table_at(100, 3, 0, (const uint64_t[]){0, 48, 48}, &t), BPT_OK);
    assert_int_equal(bpt_shard_spread(t, (const uint64_t[]){7, 1, 7}), 0);
    assert_int_equal(bpt_shard_spread(t, (const uint64_t[]){0, 0, 0}), 0);
    assert_int_equal(bpt_shard_spread(t, (const uint64_t[]){9, 30, 7}), 2);
    assert_int_equal(bpt_shard_spread(t, (const uint64_t[]){3, 3, 8}), 5);
    bpt_shard_table_free(t);
    assert_int_equal(bpt_shard_table_create(0, 2, 0, NULL, &t), BPT_OK);
    assert_int_equal(bpt_shard_spread(t, (const uint64_t[]){3, 4}), 0);
    bpt_shard_table_free(t);
}

/* Hosts may begin at any rank, with as many shards as there are of them. */
static void test_hosts(void **state) {
    (void)state;
    bpt_shard_table *t = NULL;
    assert_int_equal(bpt_shard_table_create(64, 2, 3, (const double[]){0.25, 0.75}, &t), BPT_OK);
    assert_int_equal(bpt_shard_count(t), 2);
    assert_true(bpt_shard_at(t, 0)->host == 3 && bpt_shard_at(t, 1)->host == 4);
    assert_true(bpt_shard_at(t, 0)->end == 16 && bpt_shard_at(t, 1)->end == 64);
    bpt_shard_table_free(t);
    assert_int_equal(bpt_shard_table_at(64, 2, 5, (const uint64_t[]){0, 32}, &t), BPT_OK);
    assert_true(bpt_shard_at(t, 0)->host == 5 && bpt_shard_at(t, 1)->host == 6);
    bpt_shard_table_free(t);
}

static void place(const double *speed, uint32_t n, double *part) {
    bpt_place_shards(&(bpt_place_inputs){.n_ranks = n, .speed = speed}, part);
}

static void test_placement_by_speed(void **state) {
    (void)state;
    double part[4];
    place((const double[]){3, 2.01, 2.5}, 3, part); /* alike, as far as one can tell */
    assert_true(part[0] == 1.0 / 3 && part[1] == 1.0 / 3 && part[2] == 1.0 / 3);
    place((const double[]){7}, 1, part);
    assert_true(part[0] == 1.0);
    bpt_place_inputs in = {
        .n_ranks = 4, .speed = (const double[]){400, 200, 100, 100}, .in_rounds = true};
    bpt_place_shards(&in, part);
    assert_true(part[0] == 0.5 && part[1] == 0.25 && part[2] == 0.125 && part[3] == 0.125);
}

/* In rounds all push equally often: a link carries (1 - p) / n of a round, and p (n - 1) / n. */
static void test_placement_in_rounds(void **state) {
    (void)state;
    const double speed[] = {8, 1, 1, 1, 1, 1, 1, 1};
    const double link[] = {125, 125, 125, 125, 125, 125, 125, 125};
    double part[8];
    bpt_place_inputs in = {8, speed, link, .pushed_bytes_per_s = 100, .in_rounds = true};
    bpt_place_shards(&in, part); /* half of all speed, but no more than memory is planned for */
    assert_near(part[0], 0.25, 1e-12);
    assert_near(part[7], 0.75 / 7, 1e-12);
    in.pushed_bytes_per_s = 250; /* 250 (1/8 + p 6/8) = 62.5 for p = 1/6 */
    bpt_place_shards(&in, part);
    assert_near(part[0], 1.0 / 6, 1e-12);
    assert_near(part[7], 5.0 / 42, 1e-12);
}

/* What is guessed decides little. */
static void test_placement_by_guesses(void **state) {
    (void)state;
    double part[4];
    bpt_place_shards(&(bpt_place_inputs){4, (const double[]){700, 100, 100, 100}, .guessed = true},
                     part);
    assert_near(part[0], 0.5, 1e-12);
    assert_near(part[1], 0.5 / 3, 1e-12);
    assert_near(part[3], 0.5 / 3, 1e-12);
}

/* Where nobody waits, messages are to cost all ranks the same part of their time. */
static void test_placement_by_messages(void **state) {
    (void)state;
    double part[5];
    place((const double[]){400, 200, 100, 100}, 4, part); /* it makes half of all pushes */
    assert_true(part[0] == 1 && part[1] == 0 && part[2] == 0 && part[3] == 0);
    place((const double[]){1, 8}, 2, part);
    assert_true(part[0] == 0 && part[1] == 1);
    /* f / (1 - 2 f): 3/10 / 4/10 = 9/12, twice 2/10 / 6/10 = 4/12, twice 3/20 / 14/20 = 3/14 */
    place((const double[]){6, 4, 4, 3, 3}, 5, part);
    const double all = 3.0 / 4 + 2.0 / 3 + 3.0 / 7;
    assert_near(part[0], 3.0 / 4 / all, 1e-12);
    assert_near(part[1], 1.0 / 3 / all, 1e-12);
    assert_near(part[2], part[1], 1e-12);
    assert_near(part[3], 3.0 / 14 / all, 1e-12);
    assert_true(part[4] == part[3]);
    /* f = 9/20, 9/20, 2/20: the last part would be 1/73, less than a quarter of a third */
    place((const double[]){9, 9, 2}, 3, part);
    assert_near(part[0], 0.5, 1e-12);
    assert_near(part[1], 0.5, 1e-12);
    assert_true(part[2] == 0);
    /* f / (1 - 2 f) of f = 0.396 and 0.208: 1.904 and 0.356; 0.3975 and 0.205: 1.939 and 0.347 */
    place((const double[]){396, 396, 208}, 3, part);
    assert_true(part[2] * 3 > 0.25 && part[2] * 3 < 0.26);
    place((const double[]){3975, 3975, 2050}, 3, part);
    assert_true(part[2] == 0);
}

static void test_room(void **state) {
    (void)state;
    assert_near(bpt_place_room(0.25, 0, 4e9), 0.25, 1e-12);   /* what was planned for is there */
    assert_near(bpt_place_room(0.25, 4e9, 4e9), 0.75, 1e-12); /* half of what is left */
    assert_true(bpt_place_room(0.25, 6e9, 4e9) == 1 && bpt_place_room(0.25, 1e12, 4e9) == 1);
    assert_true(bpt_place_room(1, 0, 4e9) == 1);
    assert_true(bpt_place_room(0.75, 4e9, 4e9) == 1);
    assert_true(bpt_place_planned(1) == 1 && bpt_place_planned(2) == 1);
    assert_near(bpt_place_planned(3), 2.0 / 3, 1e-12);
    assert_near(bpt_place_planned(4), 0.5, 1e-12);
}

/* A rank hosts no more than it has memory for, even if others then host little. */
static void test_placement_by_memory(void **state) {
    (void)state;
    double part[4];
    bpt_place_inputs in = {.n_ranks = 4,
                           .speed = (const double[]){400, 200, 100, 100},
                           .largest = (const double[]){0.5, 1, 1, 1}};
    bpt_place_shards(&in, part); /* of the rest 1/2 to 1/6 to 1/6 */
    assert_near(part[0], 0.5, 1e-12);
    assert_near(part[1], 0.3, 1e-12);
    assert_near(part[2], 0.1, 1e-12);
    assert_near(part[3], 0.1, 1e-12);
    in.largest = (const double[]){0.75, 0.5, 0.5, 0.5}; /* 0.15, and twice 0.05: too small */
    bpt_place_shards(&in, part);
    assert_near(part[0], 0.75, 1e-12);
    assert_near(part[1], 0.25, 1e-12);
    assert_true(part[2] == 0 && part[3] == 0);
    in.largest = (const double[]){0.95, 0.5, 0.5, 0.5}; /* all too small, but somebody has to */
    bpt_place_shards(&in, part);
    assert_near(part[0], 0.95, 1e-12);
    assert_near(part[1], 0.03, 1e-12);
    assert_near(part[2], 0.01, 1e-12);
    assert_near(part[3], 0.01, 1e-12);
}

/* @return bytes a second that a rank's link carries each way, by who sends what to whom */
static double carried(const bpt_place_inputs *in, const double *part, uint32_t r) {
    double speeds = 0, out = 0;
    for (uint32_t j = 0; j < in->n_ranks; j++) speeds += in->speed[j];
    for (uint32_t j = 0; j < in->n_ranks; j++) {
        const double pushed = in->pushed_bytes_per_s * in->speed[j] / speeds;
        for (uint32_t host = 0; host < in->n_ranks; host++)
            if (j != host && (j == r || host == r)) out += pushed * part[host];
    }
    return out; /* pushes of r to others, and answers to others' pushes */
}

static void test_placement_by_links(void **state) {
    (void)state;
    double part[4];
    const double speed[4] = {100, 100, 100, 100};
    const double link[4] = {1000, 1000, 1000, 100};
    bpt_place_inputs in = {4, speed, link, .pushed_bytes_per_s = 100};
    bpt_place_shards(&in, part); /* 100 (1/4 3/4 + 1/4 3/4) = 37.5 are less than half of 100 */
    for (int r = 0; r < 4; r++) assert_true(part[r] == 0.25);
    in.pushed_bytes_per_s = 160; /* 160 (1/4 (1 - p) + 3/4 p) = 50 for p = 1/8 */
    bpt_place_shards(&in, part);
    assert_true(fabs(part[3] - 0.125) < 1e-12);
    for (int r = 0; r < 3; r++) assert_true(fabs(part[r] - 0.875 / 3) < 1e-12);
    in.pushed_bytes_per_s = 200; /* its own pushes are half of the link */
    bpt_place_shards(&in, part);
    assert_true(part[3] == 0);
    in.bytes_per_s = (const double[]){0, 0, 0, 0}; /* nobody knows */
    bpt_place_shards(&in, part);
    for (int r = 0; r < 4; r++) assert_true(part[r] == 0.25);
}

/* Two links carry the same: for like ranks half of all whatever the parts, so that noise moves
 * nothing; for unlike ones least where the faster one hosts all. */
static void test_links_of_two(void **state) {
    (void)state;
    const double links[] = {125, 125};
    double part[2];
    bpt_place_inputs in = {2, (const double[]){3, 1}, links, .pushed_bytes_per_s = 1000};
    bpt_place_shards(&in, part);
    assert_true(part[0] == 1 && part[1] == 0);
    assert_true(fabs(carried(&in, part, 0) - 250) < 1e-9 && carried(&in, part, 1) == 250);
}

/* What is noise for parts is noise for bounds: with like links, like machines get like parts. */
static void test_noise_moves_nothing(void **state) {
    (void)state;
    const double links[] = {125e6, 125e6, 125e6, 125e6};
    const double speed[] = {1, 1.4, 1.1, 1.2};
    for (uint32_t n = 2; n <= 4; n++)
        for (double pushed = 1e3; pushed < 1e13; pushed *= 1.7) {
            double part[4];
            bpt_place_shards(&(bpt_place_inputs){n, speed, links, .pushed_bytes_per_s = pushed},
                             part);
            for (uint32_t r = 0; r < n; r++) assert_true(fabs(part[r] - 1.0 / n) < 1e-12);
        }
}

/* Servers push nothing: each link carries what its rank hosts, each way. */
static void test_placement_of_servers(void **state) {
    (void)state;
    double part[3];
    bpt_place_inputs in = {.n_ranks = 2,
                           .speed = (const double[]){1, 1},
                           .bytes_per_s = (const double[]){1000, 1000},
                           .pushed_bytes_per_s = 200,
                           .apart = true};
    bpt_place_shards(&in, part); /* half of 200 each is a tenth of a link */
    assert_true(part[0] == 0.5 && part[1] == 0.5);
    in.bytes_per_s = (const double[]){1000, 100}; /* 200 p = 50 for p = 1/4 */
    bpt_place_shards(&in, part);
    assert_true(fabs(part[0] - 0.75) < 1e-12 && fabs(part[1] - 0.25) < 1e-12);
    in.bytes_per_s =
        (const double[]){100, 50}; /* too much for both: they are as busy as each other */
    bpt_place_shards(&in, part);
    assert_true(fabs(part[0] + part[1] - 1) < 1e-12);
    assert_true(fabs(part[0] / part[1] - 2) < 0.2);
    in = (bpt_place_inputs){.n_ranks = 1, .speed = (const double[]){3}, .apart = true};
    bpt_place_shards(&in, part);
    assert_true(part[0] == 1);
    in = (bpt_place_inputs){.n_ranks = 3, .speed = (const double[]){4, 2, 2}, .apart = true};
    bpt_place_shards(&in, part); /* links are not known: by speed */
    assert_true(part[0] == 0.5 && part[1] == 0.25 && part[2] == 0.25);
}

/* Nowhere is a link busier than half, if it can be helped; else none is much busier than it has to
 * be: no other parts of a hundred tried at random do better by a tenth. */
static void test_links_are_spared(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(2, BPT_PURPOSE_TEST, 0);
    for (int i = 0; i < 300; i++) {
        double speed[8], link[8], largest[8], part[8], other[8];
        const uint32_t m = 3 + bpt_random_below(&r, 6);
        for (uint32_t s = 0; s < m; s++)
            largest[s] = bpt_place_planned(m) * (1 + (double)bpt_random_uniform(&r));
        for (uint32_t s = 0; s < m; s++) speed[s] = exp(bpt_random_normal(&r));
        for (uint32_t s = 0; s < m; s++) link[s] = exp(bpt_random_normal(&r));
        const bpt_place_inputs in = {m, speed, link, 2, .largest = largest};
        double busiest = 0;
        bpt_place_shards(&in, part);
        for (uint32_t s = 0; s < m; s++) busiest = fmax(busiest, carried(&in, part, s) / link[s]);
        for (int tried = 0; tried < 100 && busiest > 0.5 * (1 + 1e-9); tried++) {
            double sum = 0, theirs = 0, excess = 0;
            for (uint32_t s = 0; s < m; s++) sum += other[s] = exp(2 * bpt_random_normal(&r));
            for (uint32_t s = 0; s < m; s++) other[s] /= sum;
            for (uint32_t s = 0; s < m; s++) excess = fmax(excess, other[s] - largest[s]);
            if (excess > 0) continue;
            for (uint32_t s = 0; s < m; s++)
                theirs = fmax(theirs, carried(&in, other, s) / link[s]);
            assert_true(theirs > busiest / 1.1);
        }
    }
}

/* @return what all links carry together, in parts of what is pushed */
static double messages(const double *speed, const double *part, uint32_t n) {
    const bpt_place_inputs in = {n, speed, NULL, .pushed_bytes_per_s = 1};
    double all = 0;
    for (uint32_t r = 0; r < n; r++) all += carried(&in, part, r);
    return all;
}

/* Whatever the speeds: parts of a whole, none above its bound, a faster rank has no less, and no
 * more is carried than with parts by speed. */
static void test_any_placement(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(1, BPT_PURPOSE_TEST, 0);
    for (int i = 0; i < 1000; i++) {
        double speed[40], part[40], by_speed[40], largest[40], sum = 0;
        const uint32_t m = 1 + bpt_random_below(&r, 40);
        const bool bounded = bpt_random_below(&r, 2) == 1;
        for (uint32_t s = 0; s < m; s++) speed[s] = exp(4.0 * bpt_random_normal(&r));
        for (uint32_t s = 0; s < m; s++) largest[s] = bounded ? bpt_place_planned(m) : 1;
        bpt_place_shards(&(bpt_place_inputs){.n_ranks = m, .speed = speed, .largest = largest},
                         part);
        bpt_place_shards(&(bpt_place_inputs){m, speed, .largest = largest, .in_rounds = true},
                         by_speed);
        for (uint32_t s = 0; s < m; s++) {
            assert_true(part[s] >= 0 && part[s] <= largest[s] * (1 + 1e-12));
            for (uint32_t k = 0; k < m; k++)
                if (speed[k] <= speed[s]) assert_true(part[k] <= part[s] * (1 + 1e-12));
            sum += part[s];
        }
        assert_true(fabs(sum - 1) < 1e-9);
        assert_true(messages(speed, part, m) <= messages(speed, by_speed, m) * (1 + 1e-9));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_the_last_ends_with_the_vector),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_placement_by_speed),
        cmocka_unit_test(test_placement_in_rounds),
        cmocka_unit_test(test_placement_by_guesses),
        cmocka_unit_test(test_placement_by_messages),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_placement_by_memory),
        cmocka_unit_test(test_any_placement),
        cmocka_unit_test(test_placement_by_links),
        cmocka_unit_test(test_placement_of_servers),
        cmocka_unit_test(test_links_of_two),
        cmocka_unit_test(test_noise_moves_nothing),
        cmocka_unit_test(test_links_are_spared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
