#include "tools/train/exchange/exchange_cost.h"

#include <time.h>

static double cpu_s(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bpt_exchange_cost_begin(bpt_exchange_cost *cost) {
    cost->process_before_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID);
    cost->comm_before_s = bpt_comm_cpu_seconds(cost->comm);
    cost->copies_s = cost->steps_s = cost->judged_s = 0;
}

void bpt_exchange_cost_copy(bpt_exchange_cost *cost) {
    cost->copy_before_s = cpu_s(CLOCK_THREAD_CPUTIME_ID);
}

void bpt_exchange_cost_copied(bpt_exchange_cost *cost) {
    cost->copies_s += cpu_s(CLOCK_THREAD_CPUTIME_ID) - cost->copy_before_s;
}

void bpt_exchange_cost_judge(bpt_exchange_cost *cost) {
    cost->judge_process_before_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID);
    cost->judge_comm_before_s = bpt_comm_cpu_seconds(cost->comm);
}

void bpt_exchange_cost_judged(bpt_exchange_cost *cost) {
    cost->judged_s += cpu_s(CLOCK_PROCESS_CPUTIME_ID) - cost->judge_process_before_s -
                      (bpt_comm_cpu_seconds(cost->comm) - cost->judge_comm_before_s);
}

static double comm_s(const bpt_exchange_cost *cost) {
    return bpt_comm_cpu_seconds(cost->comm) - cost->comm_before_s;
}

void bpt_exchange_cost_steps_over(bpt_exchange_cost *cost) {
    const double all_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - cost->process_before_s;
    cost->steps_s = all_s - comm_s(cost) - cost->copies_s - cost->judged_s;
}

double bpt_exchange_cost_read(const bpt_exchange_cost *cost) {
    return cost->copies_s * cost->n_threads + comm_s(cost) + cost->judged_s;
}
