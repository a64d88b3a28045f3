#include "tools/train/bench/train_bench.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "inner/network/network.h"
#include "tools/shaped_model.h"
#include "tools/train/bench/bench_batches.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/memory_plan.h"
#include "tools/train/options/learning_options.h"
#include "tools/train/report/bottleneck.h"
#include "tools/train/run/step_trace.h"
#include "tools/train/run/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP_STEPS = 5 };

typedef struct {
    bpt_model *model;
    bpt_device *device; /* NULL: the processor's cores */
    bpt_pool *pool;
    bpt_network *network;
    bpt_step_trace *trace; /* NULL without --trace */
    unsigned n_threads;
    bpt_bench_batches batches;
    float *weights;
    double *step_ms;      /* shape [options->bench] */
    bpt_time_spent spent; /* of measured steps */
    uint64_t n_steps;     /* trained */
} bench;

static void close_bench(bench *b) {
    bpt_step_trace_close(b->trace);
    bpt_network_free(b->network);
    bpt_device_close(b->device);
    bpt_pool_free(b->pool);
    bpt_model_free(b->model);
    bpt_bench_batches_close(&b->batches);
    bpt_free(b->weights);
    bpt_free(b->step_ms);
}

/* As of a training on one rank that evaluates nothing. */
static bpt_job job_of(const bpt_train_options *o, const bench *b) {
    return (bpt_job){
        .options = o,
        .model = b->model,
        .device = b->device,
        .dataset = b->batches.dataset,
        .train = b->batches.split,
        .epoch_samples = b->batches.split ? b->batches.split->count : 0,
        .update = BPT_UPDATE_LOCAL,
        .batch = (uint32_t)o->batch_size,
        .n_ranks = 1,
        .n_workers = 1,
        .ranks_on_host = 1,
        .n_threads = b->n_threads,
    };
}

static bpt_status open_bench(const bpt_train_options *o, bench *b) {
    const bpt_shaped_model shaped = {o->model, o->data, o->input_size, o->classes};
    /* One after the other: either opens the dataset, which a process may do but once at a time. */
    BPT_TRY(bpt_shaped_model_load(&shaped, &b->model));
    BPT_TRY(bpt_train_freeze(o, b->model));
    BPT_TRY(bpt_bench_batches_open(&b->batches, o));
    BPT_TRY(bpt_job_find_device(o, 1, (bpt_host_place)BPT_HOST_PLACE_ALONE, &b->device));
    BPT_TRY(bpt_tuning_use(o, b->model, b->batches.dataset, o->batch_size, bpt_pool_allowed_cores(),
                           NULL));
    bpt_tuning_say(o);
    b->n_threads =
        bpt_device_option_threads(b->device, (unsigned)o->threads, bpt_pool_allowed_cores());
    const bpt_job job = job_of(o, b);
    BPT_TRY(bpt_job_check_batch_norms(&job));
    BPT_TRY(bpt_memory_plan_check(&job));
    BPT_TRY(bpt_pool_open(o->policy, b->n_threads, &b->pool));
    BPT_TRY(bpt_network_create_on(b->device, b->model, o->batch_size,
                                  bpt_train_activations(o, b->device), bpt_train_learning(o, 1),
                                  b->pool, &b->network));
    bpt_device_option_say(b->network);
    bpt_tuning_expect(o, b->network);
    return BPT_OK;
}

static bpt_status fill(const bpt_train_options *o, bench *b) {
    BPT_TRY(bpt_bench_batches_start(&b->batches, o, b->model, bpt_device_takes_images(b->device)));
    BPT_TRY(BPT_NEW("initial weights", b->model->segments.n_elements, &b->weights));
    BPT_TRY(BPT_NEW("step times", (size_t)o->bench, &b->step_ms));
    bpt_segments_initialise(&b->model->segments, (uint64_t)o->seed, b->weights);
    return bpt_network_set(b->network, BPT_VECTOR_WEIGHTS, b->weights);
}

/* A small fixed rate: the arithmetic of training without its convergence. */
static bpt_status train(const bpt_train_options *o, bench *b, const bpt_batch *batch) {
    bpt_batch_result result;
    bpt_network_set_draw(b->network, (bpt_draw){(uint64_t)o->seed, b->n_steps++, 0});
    bpt_network_set_second(b->network, batch->second_labels, batch->second_parts);
    if (b->device) bpt_network_set_next(b->network, bpt_bench_batches_peek(&b->batches));
    return bpt_network_train(b->network, batch->input, batch->labels, 1e-4f, (float)o->batch_size,
                             &result);
}

/* @param total_ns of these @p step_ns were computing */
static void note_time(bench *b, uint64_t total_ns, uint64_t data_ns, uint64_t step_ns) {
    bpt_time_spent *t = &b->spent;
    t->total_ns += total_ns;
    t->data_ns += data_ns;
    t->steps_ns += step_ns;
    if (b->device) return; /* it has one task */
    t->path_ns += bpt_network_critical_path(b->network);
    t->work_ns += bpt_network_last_run(b->network).busy_ns / b->n_threads;
}

static bpt_status time_step(const bpt_train_options *o, bench *b, double *ms) {
    bpt_batch batch;
    const uint64_t start_ns = bpt_clock_ns(), waited_ns = bpt_bench_batches_wait_ns(&b->batches);
    BPT_TRY(bpt_bench_batches_next(&b->batches, &batch));
    const uint64_t loaded_ns = bpt_clock_ns();
    if (b->batches.feed) bpt_step_trace_wait(b->trace, "data", start_ns);
    BPT_TRY(train(o, b, &batch));
    bpt_step_trace_end(b->trace);
    const uint64_t end_ns = bpt_clock_ns();
    note_time(b, end_ns - start_ns, bpt_bench_batches_wait_ns(&b->batches) - waited_ns,
              end_ns - loaded_ns);
    *ms = (double)(end_ns - start_ns) * 1e-6;
    return BPT_OK;
}

static int compare_reals(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the table of layers: widths in characters. */
typedef struct {
    int label, kind, n;
    double total_ns, sum_ns;
} layer_table;

static void measure_layer(void *context, const char *label, const char *kind, unsigned n_tasks,
                          uint64_t ns) {
    layer_table *table = context;
    (void)n_tasks;
    table->n++;
    table->sum_ns += (double)ns;
    if ((int)strlen(label) > table->label) table->label = (int)strlen(label);
    if ((int)strlen(kind) > table->kind) table->kind = (int)strlen(kind);
}

static void print_layer(void *context, const char *label, const char *kind, unsigned n_tasks,
                        uint64_t ns) {
    const layer_table *table = context;
    fprintf(stderr, "%-*s  %-*s  %6u %10.3f ms %6.1f %%\n", table->label, label, table->kind, kind,
            n_tasks, (double)ns * 1e-6, 100.0 * (double)ns / table->total_ns);
}

static void print_layers(const bpt_network *network, const bpt_run_stats *last) {
    layer_table table = {sizeof "layer" - 1, sizeof "task" - 1, 0, (double)last->busy_ns, 0.0};
    bpt_network_visit_times(network, measure_layer, &table);
    if (table.n == 0) return;
    if (bpt_network_device(network)) table.total_ns = table.sum_ns;
    fprintf(stderr, "%-*s  %-*s  %6s %13s %8s   (%s)\n", table.label, "layer", table.kind, "task",
            "tasks", "time", "share",
            bpt_network_device(network) ? "a step, part by part" : "last step");
    bpt_network_visit_times(network, print_layer, &table);
}

static bpt_status print_summary(const bpt_train_options *o, bench *b) {
    const size_t n = (size_t)o->bench;
    bpt_json_writer w = {0};
    const char *text;
    size_t length;
    qsort(b->step_ms, n, sizeof *b->step_ms, compare_reals);
    const double median =
        n % 2 ? b->step_ms[n / 2] : (b->step_ms[n / 2 - 1] + b->step_ms[n / 2]) / 2;
    const uint64_t flops = bpt_model_training_flops(b->model);
    bpt_json_open_object(&w, NULL);
    bpt_json_put_text(&w, "model", b->model->name);
    if (b->device) {
        bpt_json_put_text(&w, "device", b->device->name);
        bpt_json_put_text(&w, "precision",
                          bpt_precision_text((bpt_precision)o->precision, b->device));
        bpt_json_put_real(&w, "products_ms", (double)bpt_network_products_ns(b->network) * 1e-6);
    }
    bpt_json_put_u64(&w, "batch_size", (uint64_t)o->batch_size);
    bpt_json_put_u64(&w, "threads", b->n_threads);
    bpt_json_put_u64(&w, "steps", n);
    bpt_json_put_real(&w, "images_per_s", (double)o->batch_size * 1e3 / median);
    bpt_json_open_object(&w, "step_ms");
    bpt_json_put_real(&w, "median", median);
    bpt_json_put_real(&w, "min", b->step_ms[0]);
    bpt_json_put_real(&w, "max", b->step_ms[n - 1]);
    bpt_json_close_object(&w);
    bpt_json_put_u64(&w, "flops_per_image", flops);
    bpt_json_put_real(&w, "gflops_per_s", (double)flops * (double)o->batch_size * 1e-6 / median);
    bpt_json_put_real(&w, "data_wait_ms", (double)b->spent.data_ns * 1e-6 / (double)n);
    bpt_json_put_text(&w, "limit", bpt_bottleneck_name(bpt_bottleneck_of(&b->spent)));
    bpt_json_put_u64(&w, "memory_bytes",
                     bpt_network_memory_of(b->network).total +
                         bpt_network_host_memory_of(b->network).total);
    bpt_json_close_object(&w);
    const bpt_status status = bpt_json_end_text(&w, &text, &length);
    if (status == BPT_OK) puts(text);
    bpt_json_free(&w);
    return status;
}

/* Means of all steps that were measured. */
static void print_limit(const bpt_train_options *o, const bench *b) {
    const bpt_time_spent *t = &b->spent;
    const double to_ms = 1e-6 / (double)o->bench;
    char data[64] = "";
    if (b->batches.feed)
        snprintf(data, sizeof data, ", waiting for data %.3f ms", (double)t->data_ns * to_ms);
    if (b->device) {
        const double wall_ms = (double)t->total_ns * to_ms;
        const double products_ms = (double)bpt_network_products_ns(b->network) * 1e-6;
        fprintf(stderr,
                "%s, %s: wall %.3f ms, of which convolutions and products by themselves take "
                "%.3f ms (%.0f %%)%s\n",
                b->device->name, bpt_precision_text((bpt_precision)o->precision, b->device),
                wall_ms, products_ms, 100.0 * products_ms / wall_ms, data);
        return;
    }
    fprintf(stderr, "workers busy %.1f %% of the step\n",
            100.0 * (double)t->work_ns / (double)t->total_ns);
    fprintf(stderr,
            "the step is limited by %s (wall %.3f ms, critical path %.3f ms, "
            "work / %u worker%s %.3f ms%s)\n",
            bpt_bottleneck_text(bpt_bottleneck_of(t)), (double)t->total_ns * to_ms,
            (double)t->path_ns * to_ms, b->n_threads, b->n_threads == 1 ? "" : "s",
            (double)t->work_ns * to_ms, data);
}

static bpt_status run_bench(const bpt_train_options *o, bench *b) {
    double ms;
    BPT_TRY(open_bench(o, b));
    BPT_TRY(bpt_step_trace_open(o, NULL, b->pool, &b->trace));
    BPT_TRY(fill(o, b));
    for (int i = 0; i < WARM_UP_STEPS; i++) BPT_TRY(time_step(o, b, &ms));
    b->spent = (bpt_time_spent){0};
    for (int64_t i = 0; i < o->bench; i++) {
        bpt_step_trace_begin(b->trace, (uint64_t)i + 1);
        BPT_TRY(time_step(o, b, &b->step_ms[i]));
        printf("{\"step\": %lld, \"ms\": %.4f}\n", (long long)(i + 1), b->step_ms[i]);
    }
    const bpt_run_stats last = bpt_network_last_run(b->network);
    print_layers(b->network, &last);
    print_limit(o, b);
    BPT_TRY(print_summary(o, b)); /* first: measured in vain otherwise if the trace fails */
    return bpt_step_trace_write(b->trace);
}

bpt_status bpt_train_bench(const bpt_train_options *o) {
    bench b = {0};
    const bpt_status status = run_bench(o, &b);
    close_bench(&b);
    return status;
}
