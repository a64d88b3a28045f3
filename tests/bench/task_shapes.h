/** @file tests/bench/task_shapes.h
 * Graphs of empty tasks that engines are compared on.
 *
 * Threads: one. */
#ifndef BPT_TESTS_TASK_SHAPES_H
#define BPT_TESTS_TASK_SHAPES_H

#include <stdint.h>

enum { N_SHAPES = 4, N_TASKS = 10000, SHAPE_FORK = 50 };

/** A shape is the predecessors of each task, all of lower number. */
typedef struct task_shape {
    const char *name;
    uint32_t n_before[N_TASKS];
    uint32_t before[N_TASKS][SHAPE_FORK];
} task_shape;

/** Independent tasks (the first), a chain, random ones with up to three predecessors, forks and
 * joins of SHAPE_FORK - 1 tasks. @param[out] shapes shape [N_SHAPES], zero */
void task_shapes_make(task_shape *shapes);

#endif
