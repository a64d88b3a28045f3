#include "tests/bench/starpu_tasks.h"

#include "base/clock.h"

#include <starpu.h>
#include <stdlib.h>

static void nothing(void *buffers[], void *arg) {
    (void)buffers, (void)arg;
}

static struct starpu_codelet empty = {.cpu_funcs = {nothing}, .nbuffers = 0};
static struct starpu_task tasks[N_TASKS];

bool starpu_tasks_start(unsigned n_workers) {
    struct starpu_conf conf;
    setenv("STARPU_SILENT", "1", 1);
    starpu_conf_init(&conf);
    conf.ncpus = (int)n_workers;
    conf.ncuda = conf.nopencl = 0;
    return starpu_init(&conf) == 0;
}

void starpu_tasks_stop(void) {
    starpu_shutdown();
}

static void make_tasks(const task_shape *s) {
    struct starpu_task *before[SHAPE_FORK];
    for (uint32_t i = 0; i < N_TASKS; i++) {
        starpu_task_init(&tasks[i]);
        tasks[i].cl = &empty;
        for (uint32_t k = 0; k < s->n_before[i]; k++) before[k] = &tasks[s->before[i][k]];
        starpu_task_declare_deps_array(&tasks[i], s->n_before[i], before);
    }
}

uint64_t starpu_tasks_run(const task_shape *s) {
    make_tasks(s);
    bool done = true;
    starpu_pause();
    for (uint32_t i = 0; i < N_TASKS; i++) done &= starpu_task_submit(&tasks[i]) == 0;
    const uint64_t begin = bpt_clock_ns();
    starpu_resume();
    done &= starpu_task_wait_for_all() == 0;
    const uint64_t ns = bpt_clock_ns() - begin;
    for (uint32_t i = 0; i < N_TASKS; i++) starpu_task_clean(&tasks[i]);
    return done ? ns : 0;
}
