#include "tests/bench/task_shapes.h"

#include "base/random.h"

enum { MAX_BEFORE = 3 };

void task_shapes_make(task_shape *shapes) {
    task_shape *const chain = &shapes[1], *const random = &shapes[2], *const fork_join = &shapes[3];
    shapes[0].name = "independent";
    chain->name = "chain";
    random->name = "random";
    fork_join->name = "fork-join";
    bpt_random r = bpt_random_stream(1, BPT_PURPOSE_TEST, 0);
    for (uint32_t i = 1; i < N_TASKS; i++) {
        chain->n_before[i] = 1;
        chain->before[i][0] = i - 1;
        random->n_before[i] = bpt_random_below(&r, MAX_BEFORE + 1);
        for (uint32_t k = 0; k < random->n_before[i]; k++) {
            const uint32_t reach = i < 100 ? i : 100;
            random->before[i][k] = i - 1 - bpt_random_below(&r, reach);
        }
        /* Joins at multiples of SHAPE_FORK, SHAPE_FORK - 1 tasks between. */
        if (i % SHAPE_FORK) {
            fork_join->n_before[i] = 1;
            fork_join->before[i][0] = i / SHAPE_FORK * SHAPE_FORK;
        } else {
            fork_join->n_before[i] = SHAPE_FORK - 1;
            for (uint32_t k = 0; k < SHAPE_FORK - 1; k++) fork_join->before[i][k] = i - 1 - k;
        }
    }
}
