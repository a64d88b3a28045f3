/* How many images a second the loader gives of a dataset of JPEG files, next to libjpeg-turbo
 * alone, which decodes the same files out of the same memory map:
 *
 *   bench_encoded DATASET [SIDE [REPETITIONS [LIST...]]]
 *
 * Of the split "train", images brought to SIDE by SIDE (224), in a shuffled order, in batches of
 * 32: with the middle of each image, with `resized-crop=0.08:1:0.75,flip` and with `window,flip`,
 * or with the LISTs, which are as bpt-train --augment takes them. With one thread and with two. In
 * each of the REPETITIONS (5), after a turn that does not count, all are measured one after the
 * other; "alone" is tjDecompress2() to whole images, a handle a thread. Prints a Markdown table:
 * images a second of each and the rate over that of "alone" in the same repetition: median, with
 * least and most in brackets.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "tests/bench/figures.h"
#include "tests/bench/loader_pass.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <turbojpeg.h>

enum { BATCH = 32, DEPTH = 8, MAX_LISTS = 16, MAX_REPETITIONS = 100, MAX_THREADS = 2 };

typedef struct bench {
    uint32_t side, n_repetitions, n_lists;
    const char *lists[MAX_LISTS];
    bpt_dataset *dataset;
    const bpt_split *split;
    uint32_t *order;  /* shape [split->count] */
    atomic_uint next; /* of the order, for "alone" */
    atomic_bool failed;
    double alone[MAX_THREADS][MAX_REPETITIONS]; /* images a second */
    double rates[MAX_LISTS][MAX_THREADS][MAX_REPETITIONS];
} bench;

/* ---- alone ---- */

typedef struct alone {
    tjhandle handle;
    unsigned char *pixels;
    size_t room;
} alone;

static bool decode_one(bench *b, uint32_t i, alone *a) {
    bpt_record r;
    uint32_t label;
    int W, H, chroma, colours;
    if (bpt_dataset_get_record(b->dataset, b->split, i, &r, &label) != BPT_OK) return false;
    if (tjDecompressHeader3(a->handle, r.data, r.size, &W, &H, &chroma, &colours) != 0)
        return false;
    const size_t wanted = (size_t)W * (size_t)H * 3;
    if (wanted > a->room) {
        free(a->pixels);
        a->pixels = malloc(wanted);
        a->room = a->pixels ? wanted : 0;
        if (!a->pixels) return false;
    }
    return tjDecompress2(a->handle, r.data, r.size, a->pixels, W, 0, H, TJPF_RGB, 0) == 0;
}

static void *decode_all(void *arg) {
    bench *b = arg;
    alone a = {.handle = tjInitDecompress()};
    for (uint32_t i; (i = atomic_fetch_add(&b->next, 1)) < b->split->count;)
        if (!decode_one(b, b->order[i], &a)) atomic_store(&b->failed, true);
    free(a.pixels);
    tjDestroy(a.handle);
    return NULL;
}

static bpt_status measure_alone(bench *b, uint32_t n_threads, double *rate) {
    pthread_t threads[MAX_THREADS];
    const uint64_t start_ns = bpt_clock_ns();
    atomic_store(&b->next, 0);
    for (uint32_t i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, decode_all, b) != 0) abort();
    for (uint32_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
    *rate = b->split->count / bpt_clock_seconds_since(start_ns);
    return atomic_load(&b->failed) ? bpt_fail(BPT_EDATA, "libjpeg-turbo refuses a file") : BPT_OK;
}

/* ---- all, by turns ---- */

static bpt_status measure_turn(bench *b, uint32_t r) {
    for (uint32_t t = 0; t < MAX_THREADS; t++) {
        BPT_TRY(measure_alone(b, t + 1, &b->alone[t][r]));
        const bpt_loader_options o = {.batch = BATCH, .n_threads = t + 1, .depth = DEPTH};
        for (uint32_t i = 0; i < b->n_lists; i++)
            BPT_TRY(loader_pass(b->dataset, b->split, b->order, b->split->count, b->lists[i], o,
                                &b->rates[i][t][r]));
    }
    return BPT_OK;
}

static void print_spread(const bench *b, int digits, const double *values) {
    double sorted[MAX_REPETITIONS];
    for (uint32_t r = 0; r < b->n_repetitions; r++) sorted[r] = values[r];
    const figures of = figures_of(sorted, b->n_repetitions);
    printf(" %.*f (%.*f to %.*f) |", digits, of.median, digits, of.least, digits, of.largest);
}

static void print_row(const bench *b, uint32_t i, uint32_t t) {
    double of_alone[MAX_REPETITIONS];
    for (uint32_t r = 0; r < b->n_repetitions; r++)
        of_alone[r] = b->rates[i][t][r] / b->alone[t][r];
    printf("| `%s` | %u |", b->lists[i], t + 1);
    print_spread(b, 0, b->alone[t]);
    print_spread(b, 0, b->rates[i][t]);
    print_spread(b, 2, of_alone);
    printf("\n");
}

static bpt_status run(bench *b, const char *path) {
    BPT_TRY(bpt_dataset_open(path, &b->dataset));
    BPT_TRY(bpt_dataset_find(b->dataset, "train", &b->split));
    BPT_TRY(bpt_dataset_bring_to(b->dataset, b->side, b->side));
    BPT_TRY(BPT_NEW("order", b->split->count, &b->order));
    bpt_random_permutation(1, BPT_PURPOSE_SHUFFLE, 0, b->order, b->split->count);
    BPT_TRY(measure_turn(b, 0)); /* warm-up: records are checked when they are first read */
    for (uint32_t r = 0; r < b->n_repetitions; r++) BPT_TRY(measure_turn(b, r));
    printf(
        "| %u images to %ux%u | threads | libjpeg-turbo alone | loader | of alone |\n"
        "|---|---|---|---|---|\n",
        b->split->count, b->side, b->side);
    for (uint32_t i = 0; i < b->n_lists; i++)
        for (uint32_t t = 0; t < MAX_THREADS; t++) print_row(b, i, t);
    return BPT_OK;
}

int main(int argc, char **argv) {
    static bench b; /* large */
    b.side = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 224;
    b.n_repetitions = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 5;
    if (argc < 2 || b.n_repetitions < 1 || b.n_repetitions > MAX_REPETITIONS ||
        argc > 4 + MAX_LISTS) {
        fprintf(stderr, "usage: bench_encoded DATASET [SIDE [REPETITIONS [LIST...]]]\n");
        return 2;
    }
    for (int i = 4; i < argc; i++) b.lists[b.n_lists++] = argv[i];
    if (b.n_lists == 0) {
        b.lists[b.n_lists++] = "none";
        b.lists[b.n_lists++] = "resized-crop=0.08:1:0.75,flip";
        b.lists[b.n_lists++] = "window,flip";
    }
    const bpt_status status = run(&b, argv[1]);
    bpt_free(b.order);
    bpt_dataset_close(b.dataset);
    if (status == BPT_OK) return 0;
    fprintf(stderr, "bench_encoded: %s\n", bpt_error_last()->text);
    return bpt_status_exit(status);
}
