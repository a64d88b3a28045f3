/* How many records a second come from a disk that has not been read yet, by order and by what the
 * system is told:
 *
 *   bench_cold_reads FOLDER [SIDE [RECORDS [REPETITIONS]]]
 *
 * Makes a dataset of raw images of 3xSIDExSIDE (96) in FOLDER, which should be on the disk in
 * question, 20,000 of them unless told otherwise. Before each measurement the system forgets the
 * file (posix_fadvise()); then the first quarter of an epoch is read in each order, in batches of
 * 64, with and without bpt_dataset_expect(). All in turns, REPETITIONS (5) times. Prints a Markdown
 * table of medians, least and most in brackets, and of the bytes that the disk gave for each byte
 * of the records.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "outer/data/order.h"
#include "storage/dataset/dataset.h"
#include "tests/bench/figures.h"
#include "tests/storage/made_dataset.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 64, SALT = 1, MAX_REPETITIONS = 50, N_ORDERS = 3, N_WAYS = 2 };

static const char *const order_names[N_ORDERS] = {"shuffle", "blocks", "sequential"};
static const char *const way_names[N_WAYS] = {"nothing", "expected"};

typedef struct bench {
    char path[1024], file[1100];
    uint32_t side, n, n_repetitions;
    double rates[N_ORDERS][N_WAYS][MAX_REPETITIONS], reads[N_ORDERS][N_WAYS];
} bench;

static void end(const char *why) {
    fprintf(stderr, "bench_cold_reads: %s\n", why);
    exit(1);
}

static void check(bpt_status status) {
    if (status != BPT_OK) end(bpt_error_last()->text);
}

/* @return bytes that this process has had from disks */
static double bytes_read(void) {
    char line[128];
    double bytes = 0;
    FILE *io = fopen("/proc/self/io", "re");
    while (io && fgets(line, sizeof line, io))
        if (sscanf(line, "read_bytes: %lf", &bytes) == 1) break;
    if (io) fclose(io);
    return bytes;
}

static void forget(const bench *b) {
    const int fd = open(b->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        end("the system does not forget the file");
    close(fd);
}

static uint32_t *draw(const bench *b, int kind) {
    const bpt_order order = {.seed = 1, .kind = (bpt_order_kind)kind, .block = 256};
    uint32_t *samples, *scratch;
    check(BPT_NEW("samples", b->n, &samples));
    check(BPT_NEW("scratch", (size_t)2 * b->n, &scratch));
    for (uint32_t i = 0; i < b->n; i++) samples[i] = i;
    bpt_order_pass(&order, 0, samples, b->n, scratch);
    bpt_free(scratch);
    return samples;
}

static double measure(bench *b, int kind, int way) {
    uint32_t *samples = draw(b, kind);
    const uint32_t n_read = b->n / 4 / BATCH * BATCH;
    bpt_dataset *dataset;
    const bpt_split *train;
    forget(b);
    check(bpt_dataset_open(b->path, &dataset));
    check(bpt_dataset_find(dataset, "train", &train));
    const double before = bytes_read();
    const uint64_t start = bpt_clock_ns();
    for (uint32_t at = 0; at < n_read; at += BATCH) {
        if (way > 0) bpt_dataset_expect(dataset, train, samples + at, BATCH);
        for (uint32_t i = at; i < at + BATCH; i++) {
            const uint8_t *pixels;
            uint32_t label;
            check(bpt_dataset_get(dataset, train, samples[i], &pixels, &label));
        }
    }
    const double rate = n_read / bpt_clock_seconds_since(start);
    b->reads[kind][way] = (bytes_read() - before) / ((double)n_read * 3 * b->side * b->side);
    bpt_dataset_close(dataset);
    bpt_free(samples);
    return rate;
}

static void print(bench *b) {
    printf(
        "| order | the system is told | records/s | bytes from disk a byte |\n|---|---|---|---|\n");
    for (int k = 0; k < N_ORDERS; k++)
        for (int w = 0; w < N_WAYS; w++) {
            const figures of = figures_of(b->rates[k][w], b->n_repetitions);
            printf("| %s | %s | %.0f (%.0f to %.0f) | %.2f |\n", order_names[k], way_names[w],
                   of.median, of.least, of.largest, b->reads[k][w]);
        }
}

static uint32_t number(int argc, char **argv, int i, uint32_t otherwise, uint32_t most) {
    const long value = i < argc ? atol(argv[i]) : otherwise;
    if (value < 1 || value > most) end("a number is out of range");
    return (uint32_t)value;
}

int main(int argc, char **argv) {
    static bench b;
    if (argc < 2) end("name a folder on the disk to be read");
    b.side = number(argc, argv, 2, 96, 4096);
    b.n = number(argc, argv, 3, 20000, 100000000);
    b.n_repetitions = number(argc, argv, 4, 5, MAX_REPETITIONS);
    snprintf(b.path, sizeof b.path, "%.900s/bench-cold-reads", argv[1]);
    snprintf(b.file, sizeof b.file, "%s/data.mdb", b.path);
    const bpt_writer_options o = made_options("train", 3, b.side, b.side);
    check(made_split(b.path, &o, SALT, b.n));
    for (uint32_t r = 0; r < b.n_repetitions; r++)
        for (int k = 0; k < N_ORDERS; k++)
            for (int w = 0; w < N_WAYS; w++) b.rates[k][w][r] = measure(&b, k, w);
    check(bpt_dir_remove(b.path));
    print(&b);
    return 0;
}
