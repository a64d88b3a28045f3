/* The ready queue: order, melding, exchange. */
#include "scheduler/ready.h"
#include "tests/scheduler/random_dag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { N_TASKS = 300 };

/* The first of the tasks that are queued, by looking at all. */
static bpt__task *naive_first(bpt__task *tasks, const bool *queued) {
    bpt__task *first = NULL;
    for (size_t i = 0; i < N_TASKS; i++)
        if (queued[i] && (!first || tasks[i].key > first->key)) first = &tasks[i];
    return first;
}

static void takes_in_order_of_key_then_id(void **state) {
    (void)state;
    bpt_random r = bpt_random_stream(dag_seed(), BPT_PURPOSE_TEST, 0);
    static bpt__task tasks[N_TASKS];
    bool queued[N_TASKS] = {false};
    for (size_t i = 0; i < N_TASKS; i++) tasks[i].key = 1 + bpt_random_below(&r, 40);
    bpt__ready ready = {.lock = PTHREAD_MUTEX_INITIALIZER};
    for (int turn = 0; turn < 20000; turn++) {
        const uint32_t i = bpt_random_below(&r, N_TASKS);
        bpt__task *taken = NULL;
        bpt__task *const expected = naive_first(tasks, queued);
        if (queued[i] || bpt_random_below(&r, 3) == 0) {
            taken = bpt__ready_pop(&ready);
            assert_ptr_equal(taken, expected);
        } else if (bpt_random_below(&r, 2)) {
            queued[i] = true;
            taken = bpt__ready_exchange(&ready, &tasks[i]);
            assert_ptr_equal(taken, naive_first(tasks, queued));
        } else {
            /* A heap of several at once. */
            bpt__task *heap = NULL;
            for (uint32_t k = i; k < N_TASKS && k < i + 5; k++)
                if (!queued[k]) {
                    heap = bpt__heap_meld(heap, &tasks[k]);
                    queued[k] = true;
                }
            bpt__ready_push(&ready, heap);
        }
        if (taken) {
            queued[taken - tasks] = false;
            assert_null(taken->child);
            assert_null(taken->sibling);
        }
        const bpt__task *const first = naive_first(tasks, queued);
        assert_int_equal(ready.best, first ? first->key : 0);
    }
    pthread_mutex_destroy(&ready.lock);
}

static void empty_gives_nothing(void **state) {
    (void)state;
    bpt__ready ready = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_null(bpt__ready_pop(&ready));
    bpt__task task = {.key = 1};
    assert_ptr_equal(bpt__ready_exchange(&ready, &task), &task);
    assert_null(bpt__ready_pop(&ready));
    pthread_mutex_destroy(&ready.lock);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_in_order_of_key_then_id),
        cmocka_unit_test(empty_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
