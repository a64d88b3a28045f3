#include "inner/mixed/mixed_trial.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "inner/mixed/mixed_split.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    N_WARM = 3,      /* steps: a device's is captured in the third, the cores have learnt by then */
    N_TIMED = 9,     /* at most, and 2 at least */
    MAX_ATTEMPTS = 3 /* at shares that both have */
};

static const uint64_t enough_ns = 500000000; /* of steps that are timed */
static const double gain = 0.98; /* what takes more than that part of another's is no faster */

/* What all steps are given, and what was found. */
typedef struct trial {
    bpt_mixed_device *device;
    const bpt_device_wish *wish;
    float *pixels, *weights; /* shapes [batch, input], [elements] */
    int32_t *labels;         /* shape [batch] */
    int64_t best;            /* samples of the cores */
    double best_ns;          /* of a step with these; nanoseconds, as all times here */
    double device_ns;        /* of the device's alone */
    bpt__mixed_costs costs;
} trial;

/* ---- what steps are given ---- */

static bpt_status prepare(trial *t) {
    const bpt_model *model = t->wish->model;
    const bpt_shape in = model->input;
    const size_t n = (size_t)t->wish->batch;
    size_t n_pixels;
    if (bpt_size_multiply(n, (size_t)(in.c * in.h * in.w), &n_pixels) != BPT_OK)
        n_pixels = SIZE_MAX; /* no allocation of that size succeeds */
    bpt_random r = bpt_random_stream(0, BPT_PURPOSE_SYNTHETIC, 0);
    BPT_TRY(BPT_NEW("batch of a trial", n_pixels, &t->pixels));
    BPT_TRY(BPT_NEW("labels of a trial", n, &t->labels));
    BPT_TRY(BPT_NEW("weights of a trial", model->segments.n_elements, &t->weights));
    for (size_t i = 0; i < n_pixels; i++) t->pixels[i] = bpt_random_uniform(&r);
    for (size_t i = 0; i < n; i++) t->labels[i] = (int32_t)((int64_t)i % model->classes);
    bpt_segments_initialise(&model->segments, 0, t->weights);
    return BPT_OK;
}

static void release(trial *t) {
    bpt_free(t->weights);
    bpt_free(t->labels);
    bpt_free(t->pixels);
}

/* A rate of 0: weights stay as they are. The next batch is there, as a loader would have it. */
static bpt_device_run run_of(const trial *t) {
    return (bpt_device_run){
        .input = t->pixels,
        .next = t->pixels,
        .labels = t->labels,
        .updates = 1,
        .denominator = (float)t->wish->batch,
    };
}

/* ---- times ---- */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef bpt_status (*step_fn)(const trial *t, bpt_mixed_network *m);

/* @param[out] ns of a step, the median */
static bpt_status time_steps(const trial *t, bpt_mixed_network *m, step_fn step, double *ns) {
    double times[N_TIMED], sum = 0.0;
    size_t n = 0;
    for (int i = 0; i < N_WARM; i++) BPT_TRY(step(t, m));
    while (n < N_TIMED && (n < 2 || sum < (double)enough_ns)) {
        const uint64_t start_ns = bpt_clock_ns();
        BPT_TRY(step(t, m));
        times[n] = (double)(bpt_clock_ns() - start_ns);
        sum += times[n++];
    }
    qsort(times, n, sizeof *times, compare);
    *ns = times[n / 2];
    return BPT_OK;
}

static bpt_status step_of_all(const trial *t, bpt_mixed_network *m) {
    const bpt_device_work work = t->wish->forward_only ? BPT_DEVICE_EVALUATE : BPT_DEVICE_TRAIN;
    const bpt_device_run run = run_of(t);
    bpt_device_outcome outcome;
    BPT_TRY(bpt__mixed_network_begin((bpt_device_network *)m, work, &run));
    return bpt__mixed_network_end((bpt_device_network *)m, work, &outcome);
}

static bpt_status step_of_device(const trial *t, bpt_mixed_network *m) {
    const bpt_device_work work = t->wish->forward_only ? BPT_DEVICE_EVALUATE : BPT_DEVICE_GRADIENT;
    const bpt_device_kind *kind = t->device->fast->kind;
    const bpt_device_run run = run_of(t);
    bpt_device_outcome outcome;
    BPT_TRY(kind->begin(m->fast, work, &run));
    return kind->end(m->fast, work, &outcome);
}

static bpt_status step_of_cores(const trial *t, bpt_mixed_network *m) {
    bpt_batch_result r;
    if (t->wish->forward_only) return bpt_network_evaluate(m->cores, t->pixels, t->labels, &r);
    return bpt_network_gradient(m->cores, t->pixels, t->labels, (float)t->wish->batch, &r);
}

/* ---- networks ---- */

static bpt_status make(const trial *t, int64_t batch, int64_t n_cores, bpt_mixed_network *m) {
    bpt_device_wish wish = *t->wish;
    bpt_network_memory memory;
    wish.batch = batch;
    BPT_TRY(bpt__mixed_make(t->device, &wish, n_cores, m, &memory));
    return bpt__mixed_network_set((bpt_device_network *)m, BPT_VECTOR_WEIGHTS, 0, t->weights);
}

static bpt_status time_whole(const trial *t, int64_t batch, int64_t n_cores, double *ns) {
    bpt_mixed_network m;
    bpt_status status = make(t, batch, n_cores, &m);
    if (status == BPT_OK) status = time_steps(t, &m, step_of_all, ns);
    bpt__mixed_unmake(&m);
    return status;
}

/* What does not fit into memory, or into a graph of tasks, is not to be had. */
static bpt_status forgive(bpt_status status, double *ns) {
    if (status != BPT_ENOMEM && status != BPT_EUSAGE && status != BPT_EFULL) return status;
    *ns = INFINITY;
    return BPT_OK;
}

static void note(trial *t, int64_t n_cores, double ns) {
    if (ns >= gain * t->best_ns) return;
    t->best = n_cores;
    t->best_ns = ns;
}

/* ---- the search ---- */

static bpt_status try_device(trial *t) {
    const int64_t batch = t->wish->batch;
    t->best = 0;
    BPT_TRY(time_whole(t, batch, 0, &t->device_ns));
    t->best_ns = t->device_ns;
    t->costs.device = bpt__mixed_cost_of(0, 0.0, batch, t->device_ns);
    bpt_debug("%s alone: %" PRId64 " samples in %.3f ms", t->device->fast->name, batch,
              t->device_ns * 1e-6);
    return BPT_OK;
}

/* Some samples first: the whole batch may take them a hundred times as long as the device. */
static bpt_status try_cores(trial *t) {
    const int64_t batch = t->wish->batch, some = (batch + 15) / 16;
    double some_ns, ns = INFINITY;
    BPT_TRY(forgive(time_whole(t, some, some, &some_ns), &some_ns));
    t->costs.cores = bpt__mixed_cost_of(0, 0.0, some, some_ns);
    bpt_debug("the cores alone: %" PRId64 " samples in %.3f ms", some, some_ns * 1e-6);
    if (some < batch && some_ns / (double)some * (double)batch < 2.0 * t->device_ns)
        BPT_TRY(forgive(time_whole(t, batch, batch, &ns), &ns));
    if (isfinite(ns)) t->costs.cores = bpt__mixed_cost_of(some, some_ns, batch, ns);
    note(t, batch, some < batch ? ns : some_ns);
    return BPT_OK;
}

/* Both at once, and each with its part by itself. */
static bpt_status time_both(trial *t, int64_t n_cores, double *ns, double *device_ns,
                            double *cores_ns) {
    bpt_mixed_network m;
    bpt_status status = make(t, t->wish->batch, n_cores, &m);
    if (status == BPT_OK) status = time_steps(t, &m, step_of_all, ns);
    if (status == BPT_OK) status = time_steps(t, &m, step_of_device, device_ns);
    if (status == BPT_OK) status = time_steps(t, &m, step_of_cores, cores_ns);
    bpt__mixed_unmake(&m);
    return status;
}

static bpt_status try_both(trial *t, int64_t n_cores, double *ns) {
    const int64_t batch = t->wish->batch;
    double device_ns, cores_ns;
    BPT_TRY(forgive(time_both(t, n_cores, ns, &device_ns, &cores_ns), ns));
    if (!isfinite(*ns)) return BPT_OK;
    note(t, n_cores, *ns);
    bpt_debug("both: %.3f ms, %" PRId64 " samples by the device, in %.3f ms by itself, %" PRId64
              " by the cores, in %.3f ms",
              *ns * 1e-6, batch - n_cores, device_ns * 1e-6, n_cores, cores_ns * 1e-6);
    t->costs.device = bpt__mixed_cost_of(batch - n_cores, device_ns, batch, t->device_ns);
    t->costs.cores = bpt__mixed_cost_of(0, 0.0, n_cores, cores_ns);
    t->costs.exchange_ns = *ns - (device_ns > cores_ns ? device_ns : cores_ns);
    if (t->costs.exchange_ns < 0.0) t->costs.exchange_ns = 0.0;
    return BPT_OK;
}

static bpt_status search(trial *t) {
    const int64_t batch = t->wish->batch, tile = bpt__mixed_tile(batch);
    const int64_t least = bpt__mixed_least(t->wish);
    int64_t last = 0;
    BPT_TRY(prepare(t));
    BPT_TRY(try_device(t));
    BPT_TRY(try_cores(t));
    for (int i = 0; i < MAX_ATTEMPTS; i++) {
        const int64_t n = bpt__mixed_split(&t->costs, batch, least);
        double ns;
        if (n == 0 || n == batch || llabs(n - last) < tile) break;
        if (bpt__mixed_step_ns(&t->costs, batch, n) >= gain * t->best_ns) break;
        BPT_TRY(try_both(t, n, &ns));
        if (!isfinite(ns)) break;
        last = n;
    }
    return BPT_OK;
}

/* Values of a trial are made up, and may be none any more in a model that real ones suit: then the
 * device has all. */
bpt_status bpt__mixed_find_share(bpt_mixed_device *device, const bpt_device_wish *wish,
                                 int64_t *n_cores) {
    trial t = {.device = device, .wish = wish};
    const bpt_status status = search(&t);
    *n_cores = status == BPT_OK ? t.best : 0;
    release(&t);
    return status == BPT_ENUMERIC ? BPT_OK : status;
}
