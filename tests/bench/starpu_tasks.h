/** @file tests/bench/starpu_tasks.h
 * Empty tasks under StarPU, where the build found it.
 *
 * Threads: one. */
#ifndef BPT_TESTS_STARPU_TASKS_H
#define BPT_TESTS_STARPU_TASKS_H

#include "tests/bench/task_shapes.h"

#include <stdbool.h>

/** Starts StarPU with workers on so many cores; the calling thread submits and
 * sleeps while they work. @return whether it
 * works */
bool starpu_tasks_start(unsigned n_workers);
void starpu_tasks_stop(void);

/** Makes the tasks and their dependences and submits them while workers pause, then lets them run
 * and waits for all.
 * @return nanoseconds of the latter; 0 if it failed */
uint64_t starpu_tasks_run(const task_shape *s);

#endif
