/* What a step takes on a node, by those that were measured, and which node a rank is on. */
#include "tests/base/near.h"
#include "tools/plan/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void test_ranks(void **state) {
    (void)state;
    bpt_node nodes[] = {{.count = 2}, {.count = 1}, {.count = 3}};
    const bpt_cluster c = {.nodes = nodes, .n_nodes = 3};
    static const int of_rank[] = {0, 0, 1, 2, 2, 2};
    assert_int_equal(bpt_cluster_ranks(&c), 6);
    for (uint32_t r = 0; r < 6; r++)
        assert_ptr_equal(bpt_cluster_node_of(&c, r), &nodes[of_rank[r]]);
}

static void test_in_proportion_to_one(void **state) {
    (void)state;
    const bpt_node n = {.steps = {{.samples = 8, .seconds = 2}}, .n_steps = 1};
    assert_near(bpt_node_step_s(&n, 8), 2, 1e-12);
    assert_near(bpt_node_step_s(&n, 4), 1, 1e-12);
    assert_near(bpt_node_step_s(&n, 20), 5, 1e-12);
    assert_near(bpt_node_step_s(&n, 0.5), 0.125, 1e-12);
}

static void test_on_the_line_of_two(void **state) {
    (void)state;
    const bpt_node n = {
        .steps = {{.samples = 4, .seconds = 2}, {.samples = 8, .seconds = 3}, {12, 7}},
        .n_steps = 3};
    assert_near(bpt_node_step_s(&n, 4), 2, 1e-12);
    assert_near(bpt_node_step_s(&n, 6), 2.5, 1e-12);
    assert_near(bpt_node_step_s(&n, 8), 3, 1e-12);
    assert_near(bpt_node_step_s(&n, 9), 4, 1e-12);
    assert_near(bpt_node_step_s(&n, 12), 7, 1e-12);
    assert_near(bpt_node_step_s(&n, 16), 11, 1e-12); /* that of the last two goes on */
    assert_near(bpt_node_step_s(&n, 2), 1.5, 1e-12); /* and that of the first two */
}

/* What takes more a sample the fewer there are, as far as the line says. */
static void test_never_less_than_in_proportion(void **state) {
    (void)state;
    bpt_node n = {.steps = {{.samples = 4, .seconds = 1}, {.samples = 8, .seconds = 4}},
                  .n_steps = 2};
    assert_near(bpt_node_step_s(&n, 2), 0.5, 1e-12); /* the line is below 0 there */
    n.steps[1].seconds = 1;                          /* a step has a least time */
    assert_near(bpt_node_step_s(&n, 2), 1, 1e-12);
    assert_near(bpt_node_step_s(&n, 100), 1, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_in_proportion_to_one),
        cmocka_unit_test(test_on_the_line_of_two),
        cmocka_unit_test(test_never_less_than_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
