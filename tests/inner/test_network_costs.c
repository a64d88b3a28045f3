/* What a network is told that its tasks take: it plans by it from the first run, keeps it where it
 * is complete, also where gradients are handed out, and learns the same bits.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/memory.h"
#include "inner/network/network_private.h"
#include "tests/inner/net_fixture.h"
#include "tests/scheduler/graph_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BATCH = 9, COST = 1000000 };

static net_fixture open_net(void) {
    return net_open(net_tiny, BATCH, (net_options){2, {.momentum = 0.9}, 7, BPT_F32});
}

static uint64_t same_for_all(void *context, const char *label, const char *kind) {
    (void)label;
    (void)kind;
    return *(uint64_t *)context;
}

/* What the loss takes is unknown. */
static uint64_t all_but_loss(void *context, const char *label, const char *kind) {
    (void)kind;
    return strcmp(label, "loss") == 0 ? 0 : *(uint64_t *)context;
}

static void train_once(net_fixture *f) {
    bpt_batch_result result;
    net_assert_ok(bpt_network_train(f->net, f->pixels, f->labels, 0.01f, (float)f->batch, &result));
}

/* The longest path of tasks that all take COST: as many of them as lie on it. */
static void test_planned_from_the_first_run(void **state) {
    (void)state;
    uint64_t cost = COST;
    net_fixture f = open_net();
    const bpt_graph *g = f.net->graphs[BPT_GRAPH_TRAIN];
    const uint64_t unknown = graph_critical_path(g);
    assert_true(unknown > 0 && unknown < COST);
    bpt_network_expect(f.net, same_for_all, &cost);
    const uint64_t expected = graph_critical_path(g);
    assert_in_range(expected / COST, unknown / 2, unknown);
    train_once(&f);
    assert_int_equal(graph_critical_path(g), expected);
    net_close(&f);
}

static void test_an_unknown_task_is_measured(void **state) {
    (void)state;
    uint64_t cost = 1000ull * COST; /* a second each: no run is so slow */
    net_fixture f = open_net();
    const bpt_graph *g = f.net->graphs[BPT_GRAPH_TRAIN];
    bpt_network_expect(f.net, all_but_loss, &cost);
    const uint64_t expected = graph_critical_path(g);
    train_once(&f);
    assert_true(graph_critical_path(g) < expected / 2);
    net_close(&f);
}

/* Untold, it takes the times of its first runs, of the last of them in the end, and no later ones.
 */
static void test_the_first_runs_tell(void **state) {
    (void)state;
    net_fixture f = open_net();
    const bpt_graph *g = f.net->graphs[BPT_GRAPH_TRAIN];
    for (int run = 0; run < BPT__LEARNING_RUNS; run++) {
        train_once(&f);
        for (uint32_t i = 0; i < bpt_graph_n_tasks(g); i++)
            assert_int_equal(bpt_graph_cost(g, i), bpt_graph_measured(g, i));
    }
    const uint64_t learned = graph_critical_path(g);
    assert_true(learned > 0);
    for (int run = 0; run < 3; run++) train_once(&f);
    assert_int_equal(graph_critical_path(g), learned);
    net_close(&f);
}

/* What another network has measured is what this one asks for. */
static void note_label(void *context, const char *label, const char *kind, unsigned n_tasks,
                       uint64_t ns) {
    (void)kind;
    (void)n_tasks;
    size_t *n_losses = context;
    assert_true(ns > 0);
    *n_losses += strcmp(label, "loss") == 0;
}

static void test_same_bits(void **state) {
    (void)state;
    uint64_t cost = COST;
    size_t n_losses = 0;
    net_fixture told = open_net(), plain = open_net();
    bpt_network_expect(told.net, same_for_all, &cost);
    for (int i = 0; i < 3; i++) {
        train_once(&told);
        train_once(&plain);
    }
    bpt_network_visit_times(told.net, note_label, &n_losses);
    assert_true(n_losses > 0);
    float *a = net_vector(&told, BPT_VECTOR_WEIGHTS), *b = net_vector(&plain, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("weights", a, b, told.n_weights);
    free(a);
    free(b);
    net_close(&told);
    net_close(&plain);
}

/* ---- gradients that are handed out have a graph of their own ---- */

static void take_nothing(void *context, uint32_t part) {
    (void)context;
    (void)part;
}

static void hand_out(net_fixture *f, float *flat) {
    const size_t begin[] = {0, f->n_weights};
    const bpt_gradient_parts parts = {1, begin, flat, take_nothing, NULL};
    net_assert_ok(bpt_network_hand_out(f->net, &parts));
}

static void gradient_once(net_fixture *f) {
    bpt_batch_result result;
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, (float)f->batch, &result));
}

static uint64_t gradient_path(const net_fixture *f) {
    return graph_critical_path(f->net->graphs[BPT_GRAPH_GRADIENT]);
}

/* Behind the longest path comes at most an export. */
static void test_handed_out_as_told(void **state) {
    (void)state;
    uint64_t cost = 1000ull * COST;
    net_fixture f = open_net();
    float *flat = net_floats(f.n_weights);
    bpt_network_expect(f.net, same_for_all, &cost);
    const uint64_t told = gradient_path(&f) / cost;
    hand_out(&f, flat);
    assert_in_range(gradient_path(&f) / cost, told, told + 1);
    gradient_once(&f);
    assert_in_range(gradient_path(&f) / cost, told, told + 1);
    free(flat);
    net_close(&f);
}

/* What is not known of exports is measured, and then all is. */
static void test_handed_out_as_measured(void **state) {
    (void)state;
    uint64_t cost = 1000ull * COST;
    net_fixture f = open_net();
    float *flat = net_floats(f.n_weights);
    bpt_network_expect(f.net, all_but_loss, &cost);
    const uint64_t told = gradient_path(&f);
    hand_out(&f, flat);
    assert_true(gradient_path(&f) >= told);
    gradient_once(&f);
    assert_true(gradient_path(&f) < told / 2);
    free(flat);
    net_close(&f);
}

/* ---- a table of costs in a file ---- */

static bpt_status read_table(const char *text, bpt_cost_table *table) {
    bpt_yaml *doc;
    net_assert_ok(bpt_yaml_parse("costs.yaml", text, strlen(text), &doc));
    const bpt_status status = bpt_cost_table_read(doc, bpt_yaml_root(doc), table);
    bpt_yaml_free(doc);
    return status;
}

#define COST(type)                                                                                 \
    "  - [backward_data, " type                                                                    \
    ", winograd, [16, 2, 3, 32, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "                               \
    "4], [5, 6, 7], 99]\n"

/* Numbers have their order, so that files of other versions mean the same. */
static void test_each_number_of_a_file(void **state) {
    (void)state;
    bpt_cost_table t = {0};
    net_assert_ok(read_table("workers: 3\nmargin-percent: 4\ncosts:\n" COST("bf16"), &t));
    assert_int_equal(t.workers, 3);
    assert_int_equal(t.margin_percent, 4);
    assert_int_equal(t.n, 1);
    const bpt_cost *c = &t.costs[0];
    const bpt_conv_problem *p = &c->problem;
    const int64_t read[] = {p->c,      p->h,      p->w,           p->k,           p->p,
                            p->q,      p->r,      p->s,           p->stride[0],   p->stride[1],
                            p->pad[0], p->pad[1], p->dilation[0], p->dilation[1], p->groups};
    static const int64_t expected[] = {16, 2, 3, 32, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 4};
    for (size_t i = 0; i < 15; i++) assert_int_equal(read[i], expected[i]);
    assert_int_equal(c->step, BPT_CONV_BACKWARD_DATA);
    assert_int_equal(p->type, BPT_BF16);
    assert_true(p->winograd);
    assert_int_equal(c->cut.samples, 5);
    assert_int_equal(c->cut.channels, 6);
    assert_int_equal(c->cut.rows, 7);
    assert_int_equal(c->ns, 99);
    bpt_cost_table_clear(&t);
}

static void test_a_file_that_is_refused_leaves_no_memory(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    bpt_cost_table t = {0};
    assert_int_equal(read_table("workers: 3\ncosts:\n" COST("bf16") COST("fp64"), &t), BPT_EUSAGE);
    assert_int_equal(t.n, 0);
    assert_int_equal(bpt_memory_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planned_from_the_first_run),
        cmocka_unit_test(test_an_unknown_task_is_measured),
        cmocka_unit_test(test_the_first_runs_tell),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_handed_out_as_told),
        cmocka_unit_test(test_handed_out_as_measured),
        cmocka_unit_test(test_each_number_of_a_file),
        cmocka_unit_test(test_a_file_that_is_refused_leaves_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
