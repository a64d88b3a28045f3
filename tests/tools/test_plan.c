/* Plans of made-up clusters: which ways, sizes, gains, memory and choice there are; by predictions
 * made apart. */
#include "tests/base/near.h"
#include "tools/plan/plan.h"
#include "tools/precision.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const bpt_plan_options options = {
    .model = "lenet", .epochs = 8, .batch_size = 64, .images = 60000};

static const double latency_s = 1e-5;

static bpt_model *model;
static bpt_recipe recipe;

static int open_recipe(void **state) {
    (void)state;
    if (bpt_model_load("lenet", NULL, &model) != BPT_OK) return 1;
    recipe = (bpt_recipe){.options = &options, .model = model, .epoch_samples = 60000};
    return bpt_gradient_schedule_make(model, &recipe.gradient) == BPT_OK ? 0 : 1;
}

static int close_recipe(void **state) {
    (void)state;
    bpt_gradient_schedule_free(&recipe.gradient);
    bpt_model_free(model);
    return 0;
}

static bpt_node node_of(const char *name, uint32_t count, double images_per_s) {
    return (bpt_node){
        .name = name, .count = count, .threads = 1, .steps = {{1, 1 / images_per_s}}, .n_steps = 1};
}

static bpt_cluster cluster_of(bpt_node *nodes, size_t n) {
    return (bpt_cluster){.nodes = nodes, .n_nodes = n, .latency_s = latency_s};
}

/* What the way comes to with these ranks. */
static double predict(bpt_way way, const bpt_node *const *nodes, uint32_t n) {
    const bpt_team team = {.nodes = nodes, .n = n, .latency_s = latency_s};
    bpt_plan_scratch scratch;
    bpt_forecast f;
    bpt_work work;
    assert_int_equal(bpt_recipe_work(&recipe, way, n, &work), BPT_OK);
    assert_int_equal(bpt_plan_scratch_make(n, &scratch), BPT_OK);
    bpt_predict(way, &team, &work, &scratch, &f);
    bpt_plan_scratch_free(&scratch);
    return f.images_per_s;
}

static void test_sizes(void **state) {
    (void)state;
    bpt_node nodes[] = {node_of("a", 3, 1000), node_of("b", 4, 500)};
    const bpt_cluster cluster = cluster_of(nodes, 2);
    bpt_plan plan;
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    const uint32_t ranks[] = {1, 2, 4, 7};
    const double alone[] = {1000, 2000, 3500, 5000};
    assert_int_equal(plan.n_sizes, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(plan.sizes[i].n_ranks, ranks[i]);
        assert_near(plan.sizes[i].alone, alone[i], 1e-9);
        assert_int_equal(plan.sizes[i].n_rows, i == 0 ? 1 : BPT_PLAN_WAYS - 1);
        for (size_t w = 0; w < plan.sizes[i].n_rows; w++) {
            const bpt_plan_row *row = &plan.sizes[i].rows[w];
            assert_near(row->forecast.images_per_s, predict(row->way, plan.nodes, ranks[i]), 1e-9);
            assert_int_equal(row->most_memory > 0, i == 3);
        }
    }
    assert_ptr_equal(bpt_plan_whole(&plan), &plan.sizes[3]);
    assert_ptr_equal(plan.nodes[2], &nodes[0]);
    assert_ptr_equal(plan.nodes[3], &nodes[1]);
    assert_near(plan.alone[2], 1000, 1e-9);
    assert_near(plan.alone[3], 500, 1e-9);
    bpt_plan_free(&plan);
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 2, &plan), BPT_OK);
    assert_int_equal(plan.n_sizes, 2);
    assert_int_equal(bpt_plan_whole(&plan)->n_ranks, 2);
    bpt_plan_free(&plan);
}

/* Many that merge have half of the batch, as bpt-train gives them, and a batch that cannot be
 * shared goes no such way. */
static void test_batches(void **state) {
    (void)state;
    bpt_node nodes[] = {node_of("a", 65, 1000)};
    const bpt_cluster cluster = cluster_of(nodes, 1);
    bpt_plan plan;
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    const bpt_plan_size *whole = bpt_plan_whole(&plan), *few = &plan.sizes[2];
    const bpt_way *ways = bpt_plan_ways();
    assert_int_equal(bpt_plan_find(whole, ways[1])->batch, 32);
    assert_int_equal(bpt_plan_find(few, ways[1])->batch, 64);
    assert_int_equal(bpt_plan_find(few, ways[3])->batch, 64);
    assert_null(bpt_plan_find(whole, ways[3]));
    assert_null(bpt_plan_find(whole, ways[0]));
    bpt_plan_free(&plan);
}

static void test_gains(void **state) {
    (void)state;
    bpt_node nodes[] = {node_of("a", 1, 1000), node_of("b", 2, 400), node_of("c", 1, 10)};
    nodes[0].message_s_per_byte = 1e-8; /* it serves the others at a price */
    nodes[0].copy_s = 0.01;
    const bpt_cluster cluster = cluster_of(nodes, 3);
    const bpt_node *without[4][3] = {{&nodes[1], &nodes[1], &nodes[2]},
                                     {&nodes[0], &nodes[1], &nodes[2]},
                                     {&nodes[0], &nodes[1], &nodes[2]},
                                     {&nodes[0], &nodes[1], &nodes[1]}};
    bpt_plan plan;
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    assert_int_equal(plan.chosen->way.update, BPT_UPDATE_AGWU);
    const double with = plan.chosen->forecast.images_per_s;
    for (uint32_t r = 0; r < 4; r++)
        assert_near(plan.gain[r], 1 - predict(plan.chosen->way, without[r], 3) / with, 1e-9);
    assert_true(plan.gain[0] > plan.gain[1] && plan.gain[1] > plan.gain[3]);
    bpt_plan_free(&plan);
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 2, &plan), BPT_OK);
    const double two = plan.chosen->forecast.images_per_s; /* without one the other is by itself */
    assert_near(plan.gain[0], 1 - 400 / two, 1e-9);
    assert_near(plan.gain[1], 1 - 1000 / two, 1e-9);
    bpt_plan_free(&plan);
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 1, &plan), BPT_OK);
    assert_near(plan.gain[0], 0, 0);
    bpt_plan_free(&plan);
}

/* Without one of five the others have the whole batch again. */
static void test_gains_of_many(void **state) {
    (void)state;
    bpt_node nodes[] = {node_of("a", 4, 1000), node_of("b", 1, 10)};
    nodes[0].copy_s = 0.01;
    const bpt_cluster cluster = cluster_of(nodes, 2);
    const bpt_node *others[] = {&nodes[0], &nodes[0], &nodes[0], &nodes[0]};
    bpt_plan plan;
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    const bpt_plan_row *chosen = plan.chosen;
    assert_int_equal(chosen->way.update, BPT_UPDATE_AGWU);
    assert_int_equal(chosen->batch, 32);
    assert_near(plan.gain[4], 1 - predict(chosen->way, others, 4) / chosen->forecast.images_per_s,
                1e-9);
    bpt_plan_free(&plan);
    nodes[0].copy_s = 0;
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 4, &plan), BPT_OK); /* one trajectory */
    assert_int_equal(plan.chosen->way.update, BPT_UPDATE_ALLREDUCE);
    assert_near(plan.gain[0],
                1 - predict(plan.chosen->way, others, 3) / plan.chosen->forecast.images_per_s,
                1e-9);
    bpt_plan_free(&plan);
}

/* One trajectory where that comes to four fifths, else what is fastest. */
static void test_choice(void **state) {
    (void)state;
    bpt_node nodes[] = {node_of("a", 2, 1000)};
    const bpt_cluster cluster = cluster_of(nodes, 1);
    bpt_plan plan;
    nodes[0].copy_s = 1e-6; /* so that exchanges in every step cost a little */
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    assert_int_equal(plan.chosen->way.update, BPT_UPDATE_ALLREDUCE);
    assert_true(plan.chosen->forecast.part > 0.8 && plan.chosen->forecast.part < 1);
    assert_int_equal(plan.fastest->way.update, BPT_UPDATE_AGWU);
    bpt_plan_free(&plan);
    nodes[0].copy_s = 0.0079; /* of 0.032 s */
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    assert_int_equal(plan.chosen->way.update, BPT_UPDATE_ALLREDUCE);
    bpt_plan_free(&plan);
    nodes[0].copy_s = 0.0081;
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    assert_int_equal(plan.chosen->way.update, BPT_UPDATE_AGWU);
    assert_ptr_equal(plan.chosen, plan.fastest);
    bpt_plan_free(&plan);
    bpt_node unlike[] = {node_of("a", 1, 1000), node_of("b", 1, 750)};
    const bpt_cluster two = cluster_of(unlike, 2); /* cut by speed it is faster */
    assert_int_equal(bpt_plan_make(&recipe, &two, 0, &plan), BPT_OK);
    assert_true(bpt_plan_find(bpt_plan_whole(&plan), bpt_plan_ways()[3])->forecast.part > 0.8);
    assert_ptr_equal(plan.chosen, bpt_plan_find(bpt_plan_whole(&plan), bpt_plan_ways()[4]));
    bpt_plan_free(&plan);
}

/* What does not fit is not chosen; what is not known of a memory is no bound. */
static void test_memory(void **state) {
    (void)state;
    bpt_node nodes[] = {node_of("a", 1, 1000), node_of("b", 1, 100)};
    const bpt_cluster cluster = cluster_of(nodes, 2);
    const bpt_way agwu = bpt_plan_ways()[1], even = bpt_plan_ways()[3];
    bpt_plan plan;
    nodes[0].copy_s = 0.05; /* sums in every step are no choice */
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    const double merging = bpt_plan_find(bpt_plan_whole(&plan), agwu)->most_memory;
    const double summing = bpt_plan_find(bpt_plan_whole(&plan), even)->most_memory;
    assert_true(merging > summing); /* a batch each, not a part of one */
    assert_null(bpt_plan_find(bpt_plan_whole(&plan), agwu)->full);
    bpt_plan_free(&plan);
    nodes[1].memory_bytes = merging;
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    assert_int_equal(plan.chosen->way.update, BPT_UPDATE_AGWU);
    bpt_plan_free(&plan);
    nodes[1].memory_bytes = merging - 1;
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    assert_ptr_equal(bpt_plan_find(bpt_plan_whole(&plan), agwu)->full, &nodes[1]);
    assert_int_equal(plan.chosen->way.update, BPT_UPDATE_ALLREDUCE);
    assert_null(plan.chosen->full);
    bpt_plan_free(&plan);
    nodes[1].memory_bytes = 1;
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    assert_null(plan.chosen);
    bpt_plan_free(&plan);
}

static double memory_of(bpt_way way, const bpt_node *node, uint32_t part) {
    size_t bytes;
    assert_int_equal(bpt_recipe_memory(&recipe, way, 3, node, part, &bytes), BPT_OK);
    return (double)bytes;
}

/* What is told is that of the rank that takes most: of a batch that is cut evenly the larger part,
 * by speed that of the fastest. */
static void test_most_memory(void **state) {
    (void)state;
    bpt_node nodes[] = {node_of("a", 1, 1000), node_of("b", 2, 100)};
    nodes[0].threads = 2;
    const bpt_cluster cluster = cluster_of(nodes, 2);
    const bpt_way *all = bpt_plan_ways();
    bpt_plan plan;
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    const bpt_plan_size *whole = bpt_plan_whole(&plan);
    assert_near(bpt_plan_find(whole, all[1])->most_memory, memory_of(all[1], &nodes[0], 0), 0);
    assert_near(bpt_plan_find(whole, all[3])->most_memory, memory_of(all[3], &nodes[0], 22), 0);
    assert_near(bpt_plan_find(whole, all[4])->most_memory, memory_of(all[4], &nodes[0], 53), 0);
    assert_true(memory_of(all[3], &nodes[0], 22) > memory_of(all[3], &nodes[1], 22));
    assert_true(memory_of(all[3], &nodes[0], 22) > memory_of(all[3], &nodes[0], 21));
    bpt_plan_free(&plan);
    nodes[0].memory_bytes = nodes[1].memory_bytes = 1; /* the first that has too little is named */
    assert_int_equal(bpt_plan_make(&recipe, &cluster, 0, &plan), BPT_OK);
    assert_ptr_equal(bpt_plan_find(bpt_plan_whole(&plan), all[1])->full, &nodes[0]);
    bpt_plan_free(&plan);
}

/* ---- what bpt-train would do ---- */

static void test_recipe(void **state) {
    (void)state;
    const bpt_way agwu = bpt_plan_ways()[1];
    const bpt_node node = node_of("a", 1, 100);
    const double weights = (double)model->segments.n_elements * sizeof(float);
    bpt_plan_options changed = options;
    const bpt_recipe other = {
        .options = &changed, .model = model, .gradient = recipe.gradient, .epoch_samples = 60000};
    bpt_work work;
    size_t bytes;
    changed.epochs = 2.5;
    assert_int_equal(bpt_recipe_work(&other, agwu, 3, &work), BPT_OK);
    assert_near(work.weight_bytes, weights, 0);
    assert_int_equal(work.epoch_samples, 60000);
    assert_int_equal(work.total_samples, 150000);
    assert_int_equal(work.batch, 64);
    assert_int_equal(work.least_batch, 1);
    changed.optimizer = 1; /* adamw has two moments for sgd's one */
    assert_int_equal(bpt_recipe_memory(&other, agwu, 3, &node, 0, &bytes), BPT_OK);
    assert_true((double)bytes >= memory_of(agwu, &node, 0) + weights);
    changed.optimizer = 0;
    changed.precision = BPT_PRECISION_BF16_EMULATED; /* halves activations */
    assert_int_equal(bpt_recipe_memory(&other, agwu, 3, &node, 0, &bytes), BPT_OK);
    assert_true((double)bytes < memory_of(agwu, &node, 0));
}

/* All weights leave, the last layers' first, and the last part at the end of the step. */
static void test_gradient_schedule(void **state) {
    (void)state;
    const char *const names[] = {"lenet", "resnet20", "vgg16", "alexnet"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bpt_gradient_schedule s;
        bpt_model *m;
        double bytes = 0, before = 1.0 / 3;
        assert_int_equal(bpt_model_load(names[i], NULL, &m), BPT_OK);
        assert_int_equal(bpt_gradient_schedule_make(m, &s), BPT_OK);
        for (uint32_t part = 0; part < s.n; part++) {
            assert_true(s.parts[part].ready > before);
            before = s.parts[part].ready;
            bytes += s.parts[part].bytes;
        }
        assert_near(before, 1, 1e-12);
        assert_near(bytes, (double)m->segments.n_elements * 4, 0);
        if (i == 2) { /* fc8 and fc7 are 0.0003 and 0.0011 of the operations, and in two parts */
            assert_near(s.parts[0].bytes, 4.0 * (4096 * 1000 + 1000), 0);
            assert_near(s.parts[0].ready, 1.0 / 3 + 2.0 / 3 * 4096e3 / 15470264320, 1e-4);
        }
        bpt_gradient_schedule_free(&s);
        bpt_model_free(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),         cmocka_unit_test(test_batches),
        cmocka_unit_test(test_gains),         cmocka_unit_test(test_choice),
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_gradient_schedule),
        cmocka_unit_test(test_gains_of_many), cmocka_unit_test(test_most_memory),
        cmocka_unit_test(test_recipe),
    };
    return cmocka_run_group_tests(tests, open_recipe, close_recipe);
}
