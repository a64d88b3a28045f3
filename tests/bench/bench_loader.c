/* How many images a second the loader gives, from page cache:
 *
 *   bench_loader [SIDE [IMAGES [REPETITIONS [LIST...]]]]
 *
 * Makes a dataset of raw images of 3xSIDExSIDE (32), 20,000 of them unless told otherwise, in
 * memory, and takes all of them in a shuffled order, in batches of 128, with one loader thread and
 * with two: as they are, after crop and flip, after each kind of augmentation, or after the LISTs,
 * which are as bpt-train --augment takes them. Batches are of floats, as cores take them, and of
 * bytes, as a GPU does, which makes the moves that the list ends with. All are measured in turns,
 * REPETITIONS (9) times after a turn that does not count. Prints a Markdown table of medians, with
 * least and most in brackets.
 */
#include "base/memory.h"
#include "storage/augmentations/augmentation.h"
#include "tests/bench/figures.h"
#include "tests/bench/loader_pass.h"
#include "tests/storage/made_dataset.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 128, DEPTH = 8, MAX_LISTS = 32, MAX_REPETITIONS = 100, SALT = 1 };

static const struct {
    bool bytes;
    uint32_t n_threads;
} ways[] = {{false, 1}, {false, 2}, {true, 1}, {true, 2}};
#define N_WAYS (sizeof ways / sizeof *ways)

typedef struct bench {
    uint32_t side, n_images, n_repetitions, n_lists;
    const char *lists[MAX_LISTS];
    bpt_dataset *dataset;
    const bpt_split *split;
    uint32_t *order; /* shape [n_images] */
    double rates[MAX_LISTS][N_WAYS][MAX_REPETITIONS];
} bench;

static bpt_status measure(const bench *b, const char *list, size_t way, double *rate) {
    const bpt_loader_options o = {.batch = BATCH,
                                  .n_threads = ways[way].n_threads,
                                  .depth = DEPTH,
                                  .as_images = ways[way].bytes};
    return loader_pass(b->dataset, b->split, b->order, b->n_images, list, o, rate);
}

static bpt_status measure_all(bench *b) {
    for (uint32_t turn = 0; turn <= b->n_repetitions; turn++)
        for (uint32_t i = 0; i < b->n_lists; i++)
            for (size_t w = 0; w < N_WAYS; w++)
                BPT_TRY(measure(b, b->lists[i], w, &b->rates[i][w][turn > 0 ? turn - 1 : 0]));
    return BPT_OK;
}

static void print_rates(bench *b) {
    printf(
        "| images of 3x%ux%u | floats, one thread, images/s | two threads | bytes, one thread | "
        "two threads |\n|---|---|---|---|---|\n",
        b->side, b->side);
    for (uint32_t i = 0; i < b->n_lists; i++) {
        printf("| `%s` |", b->lists[i]);
        for (size_t w = 0; w < N_WAYS; w++) {
            const figures of = figures_of(b->rates[i][w], b->n_repetitions);
            printf(" %.0f (%.0f-%.0f) |", of.median, of.least, of.largest);
        }
        printf("\n");
    }
}

static bpt_status run(bench *b, const made_place *place) {
    const bpt_writer_options o = made_options("train", 3, b->side, b->side);
    BPT_TRY(made_split(place->dataset, &o, SALT, b->n_images));
    BPT_TRY(bpt_dataset_open(place->dataset, &b->dataset));
    BPT_TRY(bpt_dataset_find(b->dataset, "train", &b->split));
    BPT_TRY(BPT_NEW("order", b->n_images, &b->order));
    bpt_random_permutation(1, BPT_PURPOSE_SHUFFLE, 0, b->order, b->n_images);
    BPT_TRY(measure_all(b));
    print_rates(b);
    return BPT_OK;
}

static void choose_lists(bench *b, int n_given, char **given) {
    const bpt_augmentation *kind;
    for (; (int)b->n_lists < n_given && b->n_lists < MAX_LISTS; b->n_lists++)
        b->lists[b->n_lists] = given[b->n_lists];
    if (n_given > 0) return;
    b->lists[b->n_lists++] = "none";
    b->lists[b->n_lists++] = "crop=4,flip";
    for (size_t i = 0; (kind = bpt_augmentation_at(i)); i++)
        if (!bpt_augmentation_wants_encoded(kind)) b->lists[b->n_lists++] = kind->example;
}

/* @return a number from 1 to most, 0 if there is none; @p otherwise if it is not given */
static uint32_t number(int argc, char **argv, int i, uint32_t otherwise, uint32_t most) {
    if (argc <= i) return otherwise;
    const long n = strtol(argv[i], NULL, 10);
    return n >= 1 && n <= most ? (uint32_t)n : 0;
}

int main(int argc, char **argv) {
    static bench b; /* large */
    b.side = number(argc, argv, 1, 32, 4096);
    b.n_images = number(argc, argv, 2, 20000, 10000000);
    b.n_repetitions = number(argc, argv, 3, 9, MAX_REPETITIONS);
    if (b.side == 0 || b.n_images == 0 || b.n_repetitions == 0) {
        fprintf(stderr, "usage: bench_loader [SIDE [IMAGES [REPETITIONS [LIST...]]]]\n");
        return 2;
    }
    choose_lists(&b, argc - 4, argv + 4);
    const made_place place = made_place_create();
    const bpt_status status = run(&b, &place);
    bpt_free(b.order);
    bpt_dataset_close(b.dataset);
    made_place_remove(&place);
    if (status == BPT_OK) return 0;
    fprintf(stderr, "bench_loader: %s\n", bpt_error_last()->text);
    return bpt_status_exit(status);
}
