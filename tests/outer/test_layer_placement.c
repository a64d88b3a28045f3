/* Placement of layers: the numbers of ALGORITHMS section 2, and the least step among all cuts.
 *
 * ctest: cpu */
#include "base/random.h"
#include "outer/placement/layer_placement.h"
#include "tests/base/near.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20272, MAX_LAYERS = 40 };

/* ---- networks ---- */

typedef struct {
    bpt_placed_layer layers[MAX_LAYERS];
    size_t n, last_conv; /* last_conv: the pooling behind it */
    double macs;         /* of all layers, a sample */
} table;

static void add(table *t, const char *name, uint64_t parameters, uint64_t values, double macs) {
    t->layers[t->n++] = (bpt_placed_layer){
        .name = name, .parameters = parameters, .values = values, .border = true, .worker_s = macs};
    t->macs += macs;
}

static void add_conv(table *t, const char *name, uint64_t c, uint64_t k, uint64_t r,
                     uint64_t size) {
    const uint64_t weights = k * c * r * r;
    add(t, name, weights + k, k * size * size, (double)(weights * size * size));
}

static void add_fc(table *t, const char *name, uint64_t c, uint64_t k) {
    add(t, name, c * k + k, k, (double)(c * k));
}

static void add_classifier(table *t, uint64_t border) {
    t->last_conv = t->n - 1;
    add_fc(t, "fc6", border, 4096);
    add_fc(t, "fc7", 4096, 4096);
    add_fc(t, "fc8", 4096, 1000);
}

/* Times by multiply-adds: of a worker's batch of 32, @p step_s for all layers. */
static void set_times(table *t, double step_s, double server) {
    for (size_t i = 0; i < t->n; i++) {
        t->layers[i].worker_s *= step_s / t->macs;
        t->layers[i].server_s = server * t->layers[i].worker_s;
    }
    t->macs = step_s;
}

static table vgg16(void) {
    static const char *const names[5][3] = {{"conv1_1", "conv1_2", ""},
                                            {"conv2_1", "conv2_2", ""},
                                            {"conv3_1", "conv3_2", "conv3_3"},
                                            {"conv4_1", "conv4_2", "conv4_3"},
                                            {"conv5_1", "conv5_2", "conv5_3"}};
    static const uint64_t filters[] = {64, 128, 256, 512, 512};
    table t = {0};
    uint64_t c = 3, size = 224;
    for (int block = 0; block < 5; block++) {
        for (int i = 0; i < 3 && names[block][i][0]; i++) {
            add_conv(&t, names[block][i], c, filters[block], 3, size);
            c = filters[block];
        }
        size /= 2;
        add(&t, "pool", 0, c * size * size, 0);
    }
    add_classifier(&t, 25088);
    set_times(&t, 8.0, 1.0);
    return t;
}

/* Convolutions in two groups: half of the inputs each. */
static table alexnet(void) {
    table t = {0};
    add_conv(&t, "conv1", 3, 96, 11, 55);
    add(&t, "pool1", 0, 96 * 27 * 27, 0);
    add_conv(&t, "conv2", 48, 256, 5, 27);
    add(&t, "pool2", 0, 256 * 13 * 13, 0);
    add_conv(&t, "conv3", 256, 384, 3, 13);
    add_conv(&t, "conv4", 192, 384, 3, 13);
    add_conv(&t, "conv5", 192, 256, 3, 13);
    add(&t, "pool5", 0, 9216, 0);
    add_classifier(&t, 9216);
    set_times(&t, 1.0, 1.0);
    return t;
}

/* As one block with a pooling behind it, and one small fully connected layer. */
static table resnet(uint64_t convolutions, uint64_t features, uint64_t classes) {
    table t = {0};
    add(&t, "blocks", convolutions, features * 49, (double)convolutions * 100);
    t.layers[0].border = false;
    add(&t, "pool", 0, features, 0);
    t.last_conv = 1;
    add_fc(&t, "fc", features, classes);
    set_times(&t, 5.0, 1.0);
    return t;
}

static bpt_placement_job job_of(const table *t, uint32_t n_workers, uint32_t batch) {
    return (bpt_placement_job){
        .layers = t->layers,
        .n_layers = t->n,
        .n_workers = n_workers,
        .batch = batch,
        .steps_per_exchange = 1,
        .value_bytes = 4,
        .copies = 4,
        .bytes_per_s = 125e6, /* 1 Gbit/s */
        .server_bytes = INFINITY,
    };
}

/* Of one worker that is not the server, in megabytes. */
static double megabytes(const bpt_placement_job *job, size_t cut) {
    return bpt_placement_bytes(job, cut) / (job->n_workers - 1) / 1e6;
}

/* ---- section 2 ---- */

/* The most samples of a worker's step with which a cut puts no more on wires. */
static void check_break_even(bpt_placement_job job, size_t cut, uint32_t samples) {
    job.batch = samples;
    assert_true(bpt_placement_bytes(&job, cut) <= bpt_placement_bytes(&job, BPT_PLACEMENT_NONE));
    job.batch++;
    assert_true(bpt_placement_bytes(&job, cut) > bpt_placement_bytes(&job, BPT_PLACEMENT_NONE));
}

static void test_vgg16(void **state) {
    (void)state;
    const table t = vgg16();
    bpt_placement_job job = job_of(&t, 4, 32);
    assert_near(megabytes(&job, BPT_PLACEMENT_NONE), 1106.9, 0.05);
    assert_near(megabytes(&job, t.last_conv), 124.1, 0.05);
    check_break_even(job, t.last_conv, 4928);
    assert_true(bpt_placement_bytes(&job, t.last_conv) ==
                2.0 * 3 * 4 * 14714688 + 2.0 * 3 * 32 * 4 * 25088);
    assert_true(bpt_placement_bytes(&job, BPT_PLACEMENT_NONE) ==
                2.0 * 3 * 4 * (14714688 + 123642856));
    job.batch = 128;
    assert_near(megabytes(&job, t.last_conv), 143.4, 0.05);
    job.label_bytes = 4;
    assert_true(bpt_placement_bytes(&job, t.last_conv) ==
                2.0 * 3 * 4 * 14714688 + 2.0 * 3 * 128 * 4 * 25088 + 3 * 128 * 4);
    job.value_bytes = 2;
    assert_true(bpt_placement_bytes(&job, t.last_conv) ==
                2.0 * 3 * 4 * 14714688 + 2.0 * 3 * 128 * 2 * 25088 + 3 * 128 * 4);
    job = job_of(&t, 4, 32);
    job.steps_per_exchange = 8; /* as much less is saved */
    check_break_even(job, t.last_conv, 4928 / 8);
}

static void test_alexnet(void **state) {
    (void)state;
    const table t = alexnet();
    const bpt_placement_job job = job_of(&t, 8, 128);
    assert_near(megabytes(&job, BPT_PLACEMENT_NONE), 487.7, 0.05);
    assert_near(megabytes(&job, t.last_conv), 28.1, 0.05);
    check_break_even(job, t.last_conv, 6361);
    const bpt_placement p = bpt_placement_choose(&job);
    assert_int_equal(p.cut, t.last_conv);
    assert_near(p.classic_bytes / p.bytes, 17.35, 0.01);
    assert_non_null(strstr(p.reason, "fc6: 17.4 times fewer bytes, "));
}

/* Four ranks, each a worker and the host of a quarter: what a rank has of its own is on no wire. */
static void test_busiest_link(void **state) {
    (void)state;
    const table t = vgg16();
    bpt_placement_job job = job_of(&t, 4, 32);
    const double all = 138357544, head = 14714688, border = 32 * (2.0 * 4 * 25088 + 4);
    job.label_bytes = 4;
    assert_true(bpt_placement_bytes(&job, BPT_PLACEMENT_NONE) == 3 * 8 * all);
    assert_true(bpt_placement_bytes(&job, t.last_conv) == 3 * (8 * head + border));
    assert_true(bpt_placement_link_bytes(&job, BPT_PLACEMENT_NONE) == 8 * all * 3 / 4);
    assert_true(bpt_placement_link_bytes(&job, t.last_conv) == 8 * head * 3 / 4 + 3 * border);
}

/* ---- the choice, in words ---- */

/* t = 7.936 of the convolutions + 107.56 MB / 125 MB/s + 4 x 0.064 of the rest, against 8 + 6.64.
 */
static void test_choice(void **state) {
    (void)state;
    const table t = vgg16();
    const bpt_placement_job job = job_of(&t, 4, 32);
    const bpt_placement p = bpt_placement_choose(&job);
    assert_int_equal(p.cut, t.last_conv);
    assert_near(p.classic_seconds, 8 + 830.145264 / 125, 1e-9);
    assert_near(p.seconds, 7.93607 + 107.555712 / 125 + 4 * 0.06393, 1e-4);
    assert_string_equal(p.reason, "fc6: 8.9 times fewer bytes, 1.62 times as fast as without");
}

static void test_residual_networks_keep_the_classic_plan(void **state) {
    (void)state;
    const table large = resnet(23508032, 2048, 1000), small = resnet(271824, 64, 10);
    bpt_placement_job job = job_of(&large, 4, 32);
    bpt_placement p = bpt_placement_choose(&job);
    assert_int_equal(p.cut, BPT_PLACEMENT_NONE);
    assert_true(p.seconds == p.classic_seconds && p.bytes == p.classic_bytes);
    assert_string_equal(p.reason,
                        "the best cut, before fc (1.08 times fewer bytes), would gain less than 10 "
                        "%");
    job = job_of(&small, 4, 32);
    p = bpt_placement_choose(&job);
    assert_int_equal(p.cut, BPT_PLACEMENT_NONE);
    assert_string_equal(p.reason,
                        "the best cut, before fc, would put 1.01 times the bytes on the wires");
}

/* However slow a worker seems: layers of few weights stay with the workers. */
static void test_few_weights_stay(void **state) {
    (void)state;
    table t = resnet(271824, 64, 10);
    t.layers[t.last_conv + 1].worker_s = 100;
    t.layers[t.last_conv + 1].server_s = 0.001;
    bpt_placement_job job = job_of(&t, 4, 32);
    assert_true(bpt_placement_seconds(&job, t.last_conv) <
                0.9 * bpt_placement_seconds(&job, BPT_PLACEMENT_NONE));
    assert_int_equal(bpt_placement_choose(&job).cut, BPT_PLACEMENT_NONE);
    assert_non_null(strstr(bpt_placement_choose(&job).reason, "1.01 times the bytes"));
    job.batch = 8; /* 650 weights there and back outweigh as many samples of 64 values */
    assert_int_equal(bpt_placement_choose(&job).cut, t.last_conv);
}

static void test_slow_server_backs_off(void **state) {
    (void)state;
    table t = vgg16();
    set_times(&t, 8.0, 500.0);
    bpt_placement_job job = job_of(&t, 4, 32);
    const bpt_placement p = bpt_placement_choose(&job);
    assert_int_equal(p.cut, BPT_PLACEMENT_NONE);
    /* fc8 alone is little enough to compute, and would save little */
    assert_non_null(strstr(p.reason, "the best cut, before fc8 (1.03 times fewer bytes), "));
    for (size_t i = 0; i < t.n; i++) t.layers[i].border = i == t.last_conv;
    assert_string_equal(bpt_placement_choose(&job).reason,
                        "the best cut, before fc6 (8.9 times fewer bytes), has the server compute "
                        "for 4 workers: a step would take 9.33 times as long");
}

static void test_memory(void **state) {
    (void)state;
    const table t = vgg16();
    bpt_placement_job job = job_of(&t, 4, 32);
    assert_true(bpt_placement_memory(&job, t.last_conv) ==
                4.0 * 4 * 123642856 + 2.0 * 4 * 4 * 32 * (25088 + 4096 + 4096 + 1000));
    job.bytes_per_s = 12.5e6;
    job.server_bytes = 1e9;
    const bpt_placement less = bpt_placement_choose(&job);
    assert_int_equal(less.cut, t.last_conv + 1);
    assert_non_null(strstr(less.reason, "fc7: 1.18 times fewer bytes, "));
    job.server_bytes = 1e8;
    const bpt_placement none = bpt_placement_choose(&job);
    assert_int_equal(none.cut, BPT_PLACEMENT_NONE);
    assert_string_equal(none.reason,
                        "the best cut, before fc6, needs 1.9 GiB of memory at the "
                        "server, which has 0.1 GiB");
}

static void test_nothing_to_choose(void **state) {
    (void)state;
    table t = vgg16();
    bpt_placement_job job = job_of(&t, 1, 32);
    for (size_t i = 0; i < t.n; i++) t.layers[i].server_s = 0; /* whatever it would save */
    const bpt_placement p = bpt_placement_choose(&job);
    assert_int_equal(p.cut, BPT_PLACEMENT_NONE);
    assert_true(p.bytes == 0 && p.classic_bytes == 0);
    assert_true(bpt_placement_bytes(&job, t.last_conv) == 0);
    assert_string_equal(p.reason, "a single rank sends nothing");
    job.n_workers = 2;
    for (size_t i = 0; i < t.n; i++) t.layers[i].border = false;
    assert_int_equal(bpt_placement_choose(&job).cut, BPT_PLACEMENT_NONE);
    assert_string_equal(bpt_placement_choose(&job).reason, "the model cannot be cut anywhere");
}

/* ---- how it changes ---- */

static double gain(const bpt_placement_job *job) {
    const bpt_placement p = bpt_placement_choose(job);
    return p.classic_seconds / p.seconds;
}

/* All but one worker's borders go through the server's link, and it computes for all: with many
 * workers that outgrows what is saved. */
static void test_grows_with_workers_until_the_server_is_busy(void **state) {
    (void)state;
    const table t = vgg16();
    bpt_placement_job job = job_of(&t, 1, 32);
    double before = gain(&job);
    assert_true(before == 1);
    for (job.n_workers = 2; job.n_workers <= 8; job.n_workers *= 2) {
        assert_true(gain(&job) > before);
        before = gain(&job);
    }
    for (; job.n_workers <= 64; job.n_workers *= 2) {
        assert_true(gain(&job) < before);
        before = gain(&job);
    }
    assert_true(before == 1);
}

static void test_falls_with_bandwidth(void **state) {
    (void)state;
    const table t = vgg16();
    bpt_placement_job job = job_of(&t, 4, 32);
    double before = INFINITY;
    for (job.bytes_per_s = 1e6; job.bytes_per_s < 1e8; job.bytes_per_s *= 2) {
        assert_true(gain(&job) < before);
        before = gain(&job);
    }
    job.bytes_per_s = 1e12;
    assert_int_equal(bpt_placement_choose(&job).cut, BPT_PLACEMENT_NONE);
}

/* ---- steps that overlap ---- */

/* Three workers, each with a second of its own; two of the server for each of them. */
static void test_overlapping_steps(void **state) {
    (void)state;
    bpt_placed_layer layers[] = {
        {.name = "a", .parameters = 600, .values = 5, .border = true, .worker_s = 1, .server_s = 9},
        {.name = "b", .parameters = 8400, .values = 2, .worker_s = 3, .server_s = 2},
    };
    bpt_placement_job job = {.layers = layers,
                             .n_layers = 2,
                             .n_workers = 3,
                             .batch = 2,
                             .steps_per_exchange = 4,
                             .value_bytes = 4,
                             .label_bytes = 0,
                             .copies = 3,
                             .overlaps = true,
                             .bytes_per_s = 40,
                             .server_bytes = 1e9};
    assert_true(bpt_placement_link_bytes(&job, 0) == 2 * (2 * 4 * 600 / 4 / 3 + 2 * 2 * 4 * 5));
    assert_near(bpt_placement_seconds(&job, 0), 2 * (400 + 80) / 40.0, 1e-12); /* the link */
    job.bytes_per_s = 4000;
    assert_near(bpt_placement_seconds(&job, 0), 6, 1e-12); /* the server */
    layers[1].server_s = 0.5;
    assert_near(bpt_placement_seconds(&job, 0), 1 + 80 / 4000.0 + 0.5, 1e-12); /* a worker */
    job.overlaps = false;
    assert_near(bpt_placement_seconds(&job, 0), 1 + 960 / 4000.0 + 3 * 0.5, 1e-12);
    assert_near(bpt_placement_seconds(&job, BPT_PLACEMENT_NONE),
                4 + 2 * (2 * 4 * 9000 / 4 / 3) / 4000.0, 1e-12);
}

/* ---- against all cuts ---- */

/* The same numbers again, in one piece. */
static double seconds_of(const bpt_placement_job *job, size_t n_head) {
    const double n = job->n_workers, wires = n - 1;
    double worker = 0, server = 0, head = 0, border = 0;
    for (size_t i = 0; i < job->n_layers; i++) {
        if (i < n_head) {
            worker += job->layers[i].worker_s;
            head += (double)job->layers[i].parameters;
        } else {
            server += job->layers[i].server_s;
        }
    }
    if (n_head < job->n_layers)
        border = job->batch * (2.0 * job->value_bytes * (double)job->layers[n_head - 1].values +
                               job->label_bytes);
    const double exchange = 8 * head / job->steps_per_exchange / n;
    const double link = wires * (exchange + border) / job->bytes_per_s;
    if (!job->overlaps) return worker + link + n * server;
    return fmax(fmax(n * server, link), worker + server + border / job->bytes_per_s);
}

/* Of one worker. */
static double bytes_of(const bpt_placement_job *job, size_t n_head) {
    double head = 0;
    for (size_t i = 0; i < n_head; i++) head += (double)job->layers[i].parameters;
    const double exchange = 8 * head / job->steps_per_exchange;
    if (n_head == job->n_layers) return exchange;
    return exchange +
           job->batch *
               (2.0 * job->value_bytes * (double)job->layers[n_head - 1].values + job->label_bytes);
}

static bool fits(const bpt_placement_job *job, size_t n_head) {
    double bytes = (double)job->layers[n_head - 1].values;
    for (size_t i = n_head; i < job->n_layers; i++) bytes += (double)job->layers[i].values;
    bytes *= 2.0 * job->value_bytes * job->n_workers * job->batch;
    for (size_t i = n_head; i < job->n_layers; i++)
        bytes += 4.0 * job->copies * (double)job->layers[i].parameters;
    return bytes <= job->server_bytes;
}

static uint64_t draw(bpt_random *r, int digits) {
    uint64_t x = 1 + bpt_random_below(r, 9);
    for (uint32_t n = bpt_random_below(r, (uint32_t)digits); n > 0; n--)
        x = 10 * x + bpt_random_below(r, 10);
    return x;
}

static bpt_placement_job draw_job(bpt_random *r, bpt_placed_layer *layers) {
    const size_t n = 1 + bpt_random_below(r, 12);
    for (size_t i = 0; i < n; i++)
        layers[i] = (bpt_placed_layer){.name = "layer",
                                       .parameters = bpt_random_below(r, 3) ? draw(r, 8) : 0,
                                       .values = draw(r, 6),
                                       .border = bpt_random_below(r, 3) > 0,
                                       .worker_s = bpt_random_uniform(r),
                                       .server_s = bpt_random_uniform(r) / 8};
    return (bpt_placement_job){.layers = layers,
                               .n_layers = n,
                               .n_workers = 1 + bpt_random_below(r, 16),
                               .batch = 1 + bpt_random_below(r, 256),
                               .steps_per_exchange = 1 + bpt_random_below(r, 8),
                               .value_bytes = bpt_random_below(r, 2) ? 4 : 2,
                               .label_bytes = bpt_random_below(r, 2) ? 4 : 0,
                               .copies = 2 + bpt_random_below(r, 4),
                               .overlaps = bpt_random_below(r, 2) == 0,
                               .bytes_per_s = (double)draw(r, 10),
                               .server_bytes = (double)draw(r, 11)};
}

static size_t least_cut(const bpt_placement_job *job) {
    size_t best = BPT_PLACEMENT_NONE;
    double least = INFINITY;
    for (size_t n_head = 1; n_head < job->n_layers; n_head++) {
        if (!job->layers[n_head - 1].border || !fits(job, n_head)) continue;
        if (bytes_of(job, n_head) > bytes_of(job, job->n_layers)) continue;
        if (seconds_of(job, n_head) > least) continue;
        least = seconds_of(job, n_head);
        best = n_head - 1;
    }
    if (job->n_workers == 1) return BPT_PLACEMENT_NONE;
    return least < 0.9 * seconds_of(job, job->n_layers) ? best : BPT_PLACEMENT_NONE;
}

static void test_least_of_all_cuts(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 0);
    size_t n_placed = 0, n_none = 0;
    for (int trial = 0; trial < 20000; trial++) {
        bpt_placed_layer layers[12];
        const bpt_placement_job job = draw_job(&r, layers);
        const size_t expected = least_cut(&job);
        const bpt_placement p = bpt_placement_choose(&job);
        const bool none = p.cut == BPT_PLACEMENT_NONE;
        const double seconds = seconds_of(&job, none ? job.n_layers : p.cut + 1);
        assert_near(p.seconds, seconds, 1e-9 * seconds);
        assert_true(strlen(p.reason) > 0 && strlen(p.reason) + 1 < sizeof p.reason);
        if (p.cut != expected) { /* two that are alike, but for rounding */
            assert_true(!none && expected != BPT_PLACEMENT_NONE);
            assert_near(seconds, seconds_of(&job, expected + 1), 1e-9 * seconds);
        }
        n_placed += !none;
        n_none += none;
    }
    assert_true(n_placed > 1000 && n_none > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vgg16),
        cmocka_unit_test(test_alexnet),
        cmocka_unit_test(test_busiest_link),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_residual_networks_keep_the_classic_plan),
        cmocka_unit_test(test_few_weights_stay),
        cmocka_unit_test(test_slow_server_backs_off),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_nothing_to_choose),
        cmocka_unit_test(test_grows_with_workers_until_the_server_is_busy),
        cmocka_unit_test(test_falls_with_bandwidth),
        cmocka_unit_test(test_overlapping_steps),
        cmocka_unit_test(test_least_of_all_cuts),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
