/* How fast a folder of JPEG files becomes a dataset, next to libjpeg-turbo alone.
 *
 *   bench_ingest FOLDER SCRATCH [THREADS [REPETITIONS [SHORT H W]]]
 *
 * FOLDER has a folder for each class; SCRATCH is a folder to make, for datasets, and is removed.
 * Default: one thread a core, 5 repetitions, short side 256 and the middle 224 by 224; SHORT 0
 * keeps the size. In every repetition, one after the other:
 *
 *   alone    files are read, and decoded by tjDecompress2() to RGB, one handle a thread
 *   records  the stream of records: as alone, and resized, in order, nothing stored
 *   dataset  likewise, and stored, flushed to disk, as `bpt-ingest folder` does it
 *
 * One line of JSON on stdout: images a second of each, and the rate over that of "alone" in the
 * same repetition; processor time of all threads and the system for an image in milliseconds, and
 * that of "alone" over it, which other work on the machine disturbs less: median, least, largest.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "storage/importers/import_stream.h"
#include "storage/writer/writer.h"
#include "tests/bench/figures.h"

#include <sys/resource.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include <unistd.h>

enum { MAX_THREADS = 64, MAX_REPETITIONS = 100, WAYS = 3 };

static const char *const way_names[WAYS] = {"alone", "records", "dataset"};

typedef struct bench {
    char *folder;
    char *scratch;
    unsigned n_threads;
    bpt_picture_fit fit;
    char **paths; /* shape [n] */
    uint64_t n;
    atomic_uint_fast64_t next; /* path to decode */
    atomic_bool failed;
} bench;

/* ---- alone ---- */

static bool decode_one(tjhandle handle, const char *path, unsigned char **pixels, size_t *room) {
    char *data;
    size_t size;
    int W, H, chroma, colours;
    if (bpt_file_read(path, 1 << 28, &data, &size) != BPT_OK) return false;
    unsigned char *file = (unsigned char *)data;
    bool good = tjDecompressHeader3(handle, file, size, &W, &H, &chroma, &colours) == 0;
    if (good && (size_t)W * (size_t)H * 3 > *room) {
        *room = (size_t)W * (size_t)H * 3;
        free(*pixels);
        *pixels = malloc(*room);
        good = *pixels != NULL;
    }
    good = good && tjDecompress2(handle, file, size, *pixels, W, 0, H, TJPF_RGB, 0) == 0;
    bpt_free(data);
    return good;
}

static void *decode_all(void *arg) {
    bench *b = arg;
    const tjhandle handle = tjInitDecompress();
    unsigned char *pixels = NULL;
    size_t room = 0;
    for (uint64_t i; (i = atomic_fetch_add(&b->next, 1)) < b->n;)
        if (!decode_one(handle, b->paths[i], &pixels, &room)) atomic_store(&b->failed, true);
    free(pixels);
    tjDestroy(handle);
    return NULL;
}

static bpt_status run_alone(bench *b) {
    pthread_t threads[MAX_THREADS];
    atomic_store(&b->next, 0);
    for (unsigned i = 0; i < b->n_threads; i++)
        if (pthread_create(&threads[i], NULL, decode_all, b) != 0) abort();
    for (unsigned i = 0; i < b->n_threads; i++) pthread_join(threads[i], NULL);
    return atomic_load(&b->failed) ? bpt_fail(BPT_EDATA, "libjpeg-turbo refuses a file") : BPT_OK;
}

/* ---- records and datasets ---- */

static bpt_status open_writer(const bench *b, const bpt_import_plan *plan,
                              const bpt_import_record *first, bpt_writer **writer) {
    const bpt_writer_options options = {.split = "train",
                                        .C = first->C,
                                        .H = first->H,
                                        .W = first->W,
                                        .n_classes = plan->n_classes,
                                        .class_names = plan->class_names,
                                        .importer = "folder"};
    return bpt_writer_open(b->scratch, &options, writer);
}

static bpt_status drain(const bench *b, const bpt_import_plan *plan, bpt_import_stream *stream,
                        bool store) {
    bpt_writer *writer = NULL;
    bpt_status status = BPT_OK;
    for (uint64_t i = 0; i < plan->count && status == BPT_OK; i++) {
        bpt_import_record record;
        status = bpt_import_stream_next(stream, &record);
        if (status == BPT_OK && record.error) status = bpt_error_put(record.error);
        if (status == BPT_OK && store && !writer) status = open_writer(b, plan, &record, &writer);
        if (status == BPT_OK && store)
            status = bpt_writer_append(writer, record.pixels, record.label);
    }
    if (status == BPT_OK && store) status = bpt_writer_commit(writer);
    bpt_writer_close(writer);
    return status;
}

static bpt_status run_stream(bench *b, bool store) {
    const bpt_importer *importer = bpt_importer_find("folder");
    const bpt_import_stream_options options = {.fit = b->fit, .n_threads = b->n_threads};
    bpt_import_plan plan;
    void *import;
    bpt_import_stream *stream;
    BPT_TRY(
        importer->open(&(bpt_import_source){.files = &b->folder, .n_files = 1}, &plan, &import));
    bpt_status status = bpt_import_stream_open(importer, import, &plan, &options, &stream);
    if (status == BPT_OK) {
        status = drain(b, &plan, stream, store);
        bpt_import_stream_close(stream);
    }
    importer->close(import);
    return status;
}

static bpt_status run_way(bench *b, int way) {
    return way == 0 ? run_alone(b) : run_stream(b, way == 2);
}

/* ---- files, repetitions, results ---- */

static bpt_status list_files(bench *b) {
    const bpt_importer *importer = bpt_importer_find("folder");
    bpt_import_plan plan;
    void *import;
    bpt_import_item item = {0};
    BPT_TRY(
        importer->open(&(bpt_import_source){.files = &b->folder, .n_files = 1}, &plan, &import));
    bpt_status status = BPT_NEW("paths", plan.count, &b->paths);
    for (uint64_t i = 0; i < plan.count && status == BPT_OK; i++) {
        char name[BPT_IMPORT_NAME_SIZE];
        status = importer->next(import, &item);
        if (status != BPT_OK) break;
        importer->describe(import, &item, name, sizeof name);
        status = bpt_strdup(name, &b->paths[b->n++]);
    }
    importer->close(import);
    return status;
}

static void print_spread(const char *name, double *values, int n) {
    const figures of = figures_of(values, (size_t)n);
    printf("\"%s\": [%.3f, %.3f, %.3f]", name, of.median, of.least, of.largest);
}

/* Of all threads, those that have ended too, and of the system for them. */
static double processor_seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* What is measured of a way in each repetition, and its relation to that of "alone". */
typedef struct way_costs {
    double rate[MAX_REPETITIONS], of_alone[MAX_REPETITIONS];
    double cpu_ms[MAX_REPETITIONS], cpu_of_alone[MAX_REPETITIONS];
} way_costs;

static bpt_status measure_once(bench *b, int way, int r, way_costs *of) {
    BPT_TRY(bpt_dir_remove(b->scratch));
    const double cpu = processor_seconds();
    const uint64_t start = bpt_clock_ns();
    BPT_TRY(run_way(b, way));
    of[way].rate[r] = (double)b->n / bpt_clock_seconds_since(start);
    of[way].cpu_ms[r] = 1e3 * (processor_seconds() - cpu) / (double)b->n;
    of[way].of_alone[r] = of[way].rate[r] / of[0].rate[r];
    of[way].cpu_of_alone[r] = of[0].cpu_ms[r] / of[way].cpu_ms[r];
    return BPT_OK;
}

/* @param offset of the values among those of a way */
static void print_ways(const char *what, way_costs *of, size_t offset, int first, int n) {
    printf(", \"%s\": {", what);
    for (int way = first; way < WAYS; way++) {
        if (way > first) printf(", ");
        print_spread(way_names[way], (double *)(void *)((char *)&of[way] + offset), n);
    }
    printf("}");
}

static bpt_status measure(bench *b, int repetitions) {
    static way_costs of[WAYS];
    for (int way = 0; way < WAYS; way++) BPT_TRY(run_way(b, way)); /* warm-up */
    for (int r = 0; r < repetitions; r++)
        for (int way = 0; way < WAYS; way++) BPT_TRY(measure_once(b, way, r, of));
    printf("{\"images\": %llu, \"threads\": %u, \"repetitions\": %d", (unsigned long long)b->n,
           b->n_threads, repetitions);
    print_ways("images_per_s", of, offsetof(way_costs, rate), 0, repetitions);
    print_ways("of_alone", of, offsetof(way_costs, of_alone), 1, repetitions);
    print_ways("cpu_ms", of, offsetof(way_costs, cpu_ms), 0, repetitions);
    print_ways("cpu_of_alone", of, offsetof(way_costs, cpu_of_alone), 1, repetitions);
    printf("}\n");
    return BPT_OK;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: bench_ingest FOLDER SCRATCH [THREADS [REPETITIONS [SHORT H W]]]\n");
        return 2;
    }
    bpt_memory_keep(); /* as bpt-ingest does */
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    bench b = {.folder = argv[1], .scratch = argv[2]};
    const long threads = argc > 3 ? strtol(argv[3], NULL, 10) : cores;
    const long repetitions = argc > 4 ? strtol(argv[4], NULL, 10) : 5;
    b.fit.size = (bpt_image_fit){.short_side = 256, .H = 224, .W = 224};
    if (argc == 6) b.fit.size = (bpt_image_fit){0}; /* SHORT alone: 0 */
    if (argc > 7)
        b.fit.size = (bpt_image_fit){.short_side = (uint32_t)strtoul(argv[5], NULL, 10),
                                     .H = (uint32_t)strtoul(argv[6], NULL, 10),
                                     .W = (uint32_t)strtoul(argv[7], NULL, 10)};
    if (threads < 1 || threads > MAX_THREADS || repetitions < 1 || repetitions > MAX_REPETITIONS) {
        fprintf(stderr, "bench_ingest: 1 to %d threads, 1 to %d repetitions\n", MAX_THREADS,
                MAX_REPETITIONS);
        return 2;
    }
    b.n_threads = (unsigned)threads;
    bpt_status status = bpt_path_exists(b.scratch)
                            ? bpt_fail(BPT_EEXIST, "%s is there already", b.scratch)
                            : list_files(&b);
    if (status == BPT_OK) {
        status = measure(&b, (int)repetitions);
        bpt_error error;
        bpt_error_get(&error);
        bpt_dir_remove(b.scratch);
        if (status != BPT_OK) bpt_error_put(&error);
    }
    if (status != BPT_OK) fprintf(stderr, "bench_ingest: %s\n", bpt_error_last()->text);
    for (uint64_t i = 0; i < b.n; i++) bpt_free(b.paths[i]);
    bpt_free(b.paths);
    return bpt_status_exit(status);
}
