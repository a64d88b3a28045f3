/* Numbers of ranks on a line. */
#include "tools/train/job/rank_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void test_few(void **state) {
    (void)state;
    char list[BPT_RANK_LIST_SIZE];
    bpt_rank_list((const double[]){7}, 1, 0, "", list);
    assert_string_equal(list, "7");
    bpt_rank_list((const double[]){50.04, 25, 24.96}, 3, 1, "%", list);
    assert_string_equal(list, "50.0%, 25.0%, 25.0%");
    const double all[BPT_RANK_LIST_MOST] = {0};
    bpt_rank_list(all, BPT_RANK_LIST_MOST, 0, "", list);
    assert_string_equal(list, "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0");
}

static void test_many(void **state) {
    (void)state;
    enum { N = 300 };
    char list[BPT_RANK_LIST_SIZE];
    double value[N];
    for (int i = 0; i < N; i++) value[i] = 100.0 + i;
    value[200] = 3;
    bpt_rank_list(value, N, 0, "", list);
    assert_string_equal(list, "from 3 on rank 200 to 399 on rank 299");
    bpt_rank_list(value, BPT_RANK_LIST_MOST + 1, 1, "%", list);
    assert_string_equal(list, "from 100.0% on rank 0 to 116.0% on rank 16");
    for (int i = 0; i < N; i++) value[i] = i % 3; /* of equals the first */
    bpt_rank_list(value, N, 0, "", list);
    assert_string_equal(list, "from 0 on rank 0 to 2 on rank 2");
    value[0] = 9;
    bpt_rank_list(value, N, 0, "", list);
    assert_string_equal(list, "from 0 on rank 3 to 9 on rank 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
