/* How oneDNN's convolution scales with threads on this machine: a bound for training steps.
 *
 *   bench_conv_scaling [THREADS [REPETITIONS]]     (default: 2 threads, 9 repetitions)
 *
 * A thread runs one large forward convolution in floats RUNS times, with a kernel and memory of its
 * own: threads share nothing but the machine. A repetition times one thread, then THREADS of them
 * until the last has finished. One line of JSON on stdout; the scaling is THREADS where each thread
 * is as fast as one alone. */
#include "base/clock.h"
#include "base/memory.h"
#include "inner/cpu/cpu.h"
#include "tests/bench/figures.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 4, MAX_THREADS = 256, MAX_REPETITIONS = 1000 };

static const bpt_conv_problem problem = {.n = 8,
                                         .c = 128,
                                         .h = 56,
                                         .w = 56,
                                         .k = 128,
                                         .p = 56,
                                         .q = 56,
                                         .r = 3,
                                         .s = 3,
                                         .stride = {1, 1},
                                         .pad = {1, 1},
                                         .dilation = {1, 1},
                                         .groups = 1,
                                         .type = BPT_F32};

/* What one thread has for itself. */
typedef struct {
    pthread_t thread;
    bpt_cpu *cpu;
    bpt_kernel *kernel;
    bpt_blocks blocks;
    bpt_status status; /* of its last runs */
} lane;

static void close_lane(lane *l) {
    bpt_cpu_free(l->cpu);
    bpt_blocks_release(&l->blocks);
}

static void fill(lane *l) {
    float *values = (float *)l->blocks.base[BPT_BLOCK_ACTIVATIONS];
    const size_t n = l->blocks.bytes[BPT_BLOCK_ACTIVATIONS] / sizeof *values;
    for (size_t i = 0; i < n; i++) values[i] = 0.01f * (float)(i % 19) - 0.09f;
}

/* @param l zeroed; closed by close_lane(), also after an error */
static bpt_status open_lane(lane *l) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_WEIGHTS, BPT_SLOT_DST};
    BPT_TRY(bpt_cpu_create(1, &l->cpu));
    BPT_TRY(bpt_cpu_conv_forward(l->cpu, &problem, NULL, NULL, NULL, &l->kernel));
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        const size_t bytes = bpt_layout_bytes(bpt_kernel_layout(l->kernel, slots[i]));
        bpt_kernel_bind(l->kernel, slots[i],
                        bpt_blocks_reserve(&l->blocks, BPT_BLOCK_ACTIVATIONS, bytes));
    }
    BPT_TRY(bpt_blocks_allocate(&l->blocks, 0));
    BPT_TRY(bpt_cpu_prepare(l->cpu));
    BPT_TRY(bpt_cpu_resolve(l->cpu, BPT_BLOCK_ACTIVATIONS, &l->blocks));
    fill(l);
    return BPT_OK;
}

static void *run(void *arg) {
    lane *l = arg;
    l->status = BPT_OK;
    for (int i = 0; i < RUNS && l->status == BPT_OK; i++) l->status = bpt_kernel_run(l->kernel, 0);
    return NULL;
}

/* Of all lanes at once; @p seconds until the last has finished. */
static bpt_status time_lanes(lane *lanes, unsigned n, double *seconds) {
    const uint64_t start_ns = bpt_clock_ns();
    unsigned n_started = 0;
    bpt_status status = BPT_OK;
    while (n_started < n &&
           pthread_create(&lanes[n_started].thread, NULL, run, &lanes[n_started]) == 0)
        n_started++;
    if (n_started < n) status = bpt_fail(BPT_ENOMEM, "cannot start thread %u", n_started);
    for (unsigned i = 0; i < n_started; i++) {
        pthread_join(lanes[i].thread, NULL);
        if (status == BPT_OK) status = lanes[i].status;
    }
    *seconds = bpt_clock_seconds_since(start_ns);
    return status;
}

static bpt_status measure(lane *lanes, unsigned n_threads, unsigned n_repetitions) {
    static double one_s[MAX_REPETITIONS], all_s[MAX_REPETITIONS], scaling[MAX_REPETITIONS];
    double warm_up_s;
    BPT_TRY(time_lanes(lanes, n_threads, &warm_up_s));
    for (unsigned i = 0; i < n_repetitions; i++) {
        BPT_TRY(time_lanes(lanes, 1, &one_s[i]));
        BPT_TRY(time_lanes(lanes, n_threads, &all_s[i]));
        scaling[i] = n_threads * one_s[i] / all_s[i];
    }
    const bpt_conv_problem *p = &problem;
    const double gflop = 2e-9 * RUNS * (double)(p->n * p->c * p->k * p->r * p->s * p->p * p->q);
    const figures of = figures_of(scaling, n_repetitions);
    printf(
        "{\"bench\": \"conv_scaling\", \"kernel\": \"%s\", \"threads\": %u, "
        "\"repetitions\": %u, \"one_gflops_per_s\": %.1f, \"all_gflops_per_s\": %.1f, "
        "\"scaling\": {\"median\": %.4f, \"min\": %.4f, \"max\": %.4f}}\n",
        bpt_kernel_implementation(lanes[0].kernel), n_threads, n_repetitions,
        gflop / figures_of(one_s, n_repetitions).median,
        n_threads * gflop / figures_of(all_s, n_repetitions).median, of.median, of.least,
        of.largest);
    return BPT_OK;
}

static bpt_status bench(unsigned n_threads, unsigned n_repetitions) {
    lane *lanes;
    BPT_TRY(BPT_NEW("lanes", n_threads, &lanes));
    bpt_status status = BPT_OK;
    for (unsigned i = 0; i < n_threads && status == BPT_OK; i++) status = open_lane(&lanes[i]);
    if (status == BPT_OK) status = measure(lanes, n_threads, n_repetitions);
    for (unsigned i = 0; i < n_threads; i++) close_lane(&lanes[i]);
    bpt_free(lanes);
    return status;
}

int main(int argc, char **argv) {
    const int n_threads = argc > 1 ? atoi(argv[1]) : 2,
              n_repetitions = argc > 2 ? atoi(argv[2]) : 9;
    if (argc > 3 || n_threads < 1 || n_threads > MAX_THREADS || n_repetitions < 1 ||
        n_repetitions > MAX_REPETITIONS) {
        fprintf(stderr, "usage: bench_conv_scaling [THREADS [REPETITIONS]]\n");
        return 2;
    }
    const bpt_status status = bench((unsigned)n_threads, (unsigned)n_repetitions);
    if (status != BPT_OK) fprintf(stderr, "bench_conv_scaling: %s\n", bpt_error_last()->text);
    return bpt_status_exit(status);
}
