/* How fast JPEG files become pixels, next to libjpeg-turbo alone.
 *
 *   bench_decode FOLDER [THREADS [REPETITIONS [FILES]]]     (default: 1 thread, 9 repetitions,
 * 1000)
 *
 * Takes the first FILES files of the folder and all below it, by name, into memory. In every
 * repetition each way of decoding goes over all of them, THREADS threads at once:
 *   alone    tjDecompress2() to RGB, one handle a thread
 *   planes   bpt_image_decode(), the image as it is
 *   crop     likewise, 224 by 224 of its middle (less where it is smaller)
 *   short    likewise, resized to a short side of 256
 *   small    likewise, resized to 64 by 64: decoded at a part of its size
 * One line of JSON on stdout: images a second, and the rate over that of "alone" in the same
 * repetition: median, least, largest. */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "storage/images/image_decoder.h"
#include "tests/bench/figures.h"

#include <fts.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

enum { MAX_THREADS = 256, MAX_REPETITIONS = 1000, MAX_FILES = 100000 };

typedef struct image {
    char *data;
    size_t size;
    bpt_image_info info;
} image;

typedef struct images {
    image *items;
    size_t n, capacity, max_pixels;
} images;

/* ---- files ---- */

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bpt_status add_file(images *all, const char *path) {
    image i;
    BPT_TRY(bpt_file_read(path, 1 << 28, &i.data, &i.size));
    bpt_status status = bpt_image_look(path, i.data, i.size, NULL, &i.info);
    if (status == BPT_OK && i.info.format != BPT_IMAGE_JPEG)
        status = bpt_fail(BPT_EDATA, "%s is no JPEG", path);
    if (status == BPT_OK) status = BPT_GROW("images", all->n + 1, &all->items, &all->capacity);
    if (status != BPT_OK) {
        bpt_free(i.data);
        return status;
    }
    const size_t pixels = (size_t)i.info.H * i.info.W;
    if (pixels > all->max_pixels) all->max_pixels = pixels;
    all->items[all->n++] = i;
    return BPT_OK;
}

static bpt_status read_folder(char *path, size_t max, images *all) {
    char *const paths[] = {path, NULL};
    FTS *fts = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    if (!fts) return bpt_fail(BPT_EIO, "cannot read %s", path);
    bpt_status status = BPT_OK;
    FTSENT *entry;
    while (status == BPT_OK && all->n < max && (entry = fts_read(fts)))
        if (entry->fts_info == FTS_F) status = add_file(all, entry->fts_path);
    fts_close(fts);
    if (status == BPT_OK && all->n == 0) return bpt_fail(BPT_ENOENT, "%s has no files", path);
    return status;
}

/* ---- ways ---- */

typedef struct lane {
    pthread_t thread;
    const images *all;
    size_t first, step; /* which images are its own */
    int way;
    tjhandle alone;
    bpt_image_decoder *decoder;
    uint8_t *pixels;
    bpt_status status;
    bpt_error error;
} lane;

static bpt_image_frame frame_of(int way, const bpt_image_info *info) {
    const uint32_t H = info->H, W = info->W;
    if (way == 3) return bpt_image_fit_frame(&(bpt_image_fit){.short_side = 256}, H, W);
    if (way == 4) return bpt_image_fit_frame(&(bpt_image_fit){.H = 64, .W = 64}, H, W);
    bpt_image_frame f = bpt_image_fit_frame(&(bpt_image_fit){0}, H, W);
    if (way == 1) return f;
    f.H = H < 224 ? H : 224;
    f.W = W < 224 ? W : 224;
    f.crop_y = (H - f.H) / 2;
    f.crop_x = (W - f.W) / 2;
    return f;
}

static bpt_status decode_one(lane *l, const image *i) {
    if (l->way == 0) {
        if (tjDecompress2(l->alone, (const uint8_t *)i->data, i->size, l->pixels, 0, 0, 0, TJPF_RGB,
                          TJFLAG_ACCURATEDCT) != 0)
            return bpt_fail(BPT_EDATA, "%s", tjGetErrorStr2(l->alone));
        return BPT_OK;
    }
    const bpt_image_wish wish = {.frame = frame_of(l->way, &i->info), .C = 3};
    return bpt_image_decode(l->decoder, "an image", i->data, i->size, &wish, l->pixels);
}

static void *run(void *arg) {
    lane *l = arg;
    l->status = BPT_OK;
    for (size_t i = l->first; i < l->all->n && l->status == BPT_OK; i += l->step)
        l->status = decode_one(l, &l->all->items[i]);
    if (l->status != BPT_OK) bpt_error_get(&l->error);
    return NULL;
}

static bpt_status open_lane(lane *l, const images *all, size_t first, size_t step) {
    *l = (lane){.all = all, .first = first, .step = step, .alone = tjInitDecompress()};
    if (!l->alone) return bpt_fail(BPT_ENOMEM, "no JPEG decoder");
    BPT_TRY(bpt_image_decoder_open(NULL, &l->decoder));
    const size_t resized = (size_t)256 * BPT_IMAGE_MAX_SIDE;
    return BPT_NEW("pixels", 3 * (all->max_pixels > resized ? all->max_pixels : resized),
                   &l->pixels);
}

static void close_lane(lane *l) {
    if (l->alone) tjDestroy(l->alone);
    bpt_image_decoder_close(l->decoder);
    bpt_free(l->pixels);
}

/* All images, in one way. @param[out] rate images a second */
static bpt_status time_way(lane *lanes, size_t n, int way, double *rate) {
    const uint64_t start_ns = bpt_clock_ns();
    size_t started = 0;
    for (; started < n; started++) {
        lanes[started].way = way;
        if (pthread_create(&lanes[started].thread, NULL, run, &lanes[started]) != 0) break;
    }
    bpt_status status = BPT_OK;
    for (size_t i = 0; i < started; i++) {
        pthread_join(lanes[i].thread, NULL);
        if (lanes[i].status != BPT_OK) status = bpt_error_put(&lanes[i].error);
    }
    *rate = (double)lanes[0].all->n / bpt_clock_seconds_since(start_ns);
    return started < n ? bpt_fail(BPT_ENOMEM, "cannot start thread %zu", started) : status;
}

/* ---- figures ---- */

static const char *const ways[] = {"alone", "planes", "crop", "short", "small"};
enum { N_WAYS = 5 };

static void print_figures(const char *name, double *values, size_t n, int digits) {
    const figures of = figures_of(values, n);
    printf("\"%s\": {\"median\": %.*f, \"min\": %.*f, \"max\": %.*f}", name, digits, of.median,
           digits, of.least, digits, of.largest);
}

static bpt_status measure(lane *lanes, size_t n_threads, size_t n_repetitions) {
    static double rates[N_WAYS][MAX_REPETITIONS], ratios[N_WAYS][MAX_REPETITIONS];
    double warm_up;
    for (int way = 0; way < N_WAYS; way++) BPT_TRY(time_way(lanes, n_threads, way, &warm_up));
    for (size_t i = 0; i < n_repetitions; i++)
        for (int way = 0; way < N_WAYS; way++) {
            BPT_TRY(time_way(lanes, n_threads, way, &rates[way][i]));
            ratios[way][i] = rates[way][i] / rates[0][i];
        }
    printf(
        "{\"bench\": \"decode\", \"images\": %zu, \"threads\": %zu, \"repetitions\": %zu, "
        "\"images_per_s\": {",
        lanes[0].all->n, n_threads, n_repetitions);
    for (int way = 0; way < N_WAYS; way++) {
        if (way) printf(", ");
        print_figures(ways[way], rates[way], n_repetitions, 0);
    }
    printf("}, \"over_alone\": {");
    for (int way = 1; way < N_WAYS; way++) {
        if (way > 1) printf(", ");
        print_figures(ways[way], ratios[way], n_repetitions, 3);
    }
    printf("}}\n");
    return BPT_OK;
}

static bpt_status bench(char *folder, size_t n_threads, size_t n_repetitions, size_t max_files) {
    static lane lanes[MAX_THREADS];
    images all = {0};
    bpt_status status = read_folder(folder, max_files, &all);
    for (size_t i = 0; i < n_threads && status == BPT_OK; i++)
        status = open_lane(&lanes[i], &all, i, n_threads);
    if (status == BPT_OK) status = measure(lanes, n_threads, n_repetitions);
    for (size_t i = 0; i < n_threads; i++) close_lane(&lanes[i]);
    for (size_t i = 0; i < all.n; i++) bpt_free(all.items[i].data);
    bpt_free(all.items);
    return status;
}

int main(int argc, char **argv) {
    const int n_threads = argc > 2 ? atoi(argv[2]) : 1;
    const int n_repetitions = argc > 3 ? atoi(argv[3]) : 9;
    const int n_files = argc > 4 ? atoi(argv[4]) : 1000;
    if (argc < 2 || argc > 5 || n_threads < 1 || n_threads > MAX_THREADS || n_repetitions < 1 ||
        n_repetitions > MAX_REPETITIONS || n_files < 1 || n_files > MAX_FILES) {
        fprintf(stderr, "usage: bench_decode FOLDER [THREADS [REPETITIONS [FILES]]]\n");
        return 2;
    }
    const bpt_status status =
        bench(argv[1], (size_t)n_threads, (size_t)n_repetitions, (size_t)n_files);
    if (status == BPT_OK) return 0;
    fprintf(stderr, "bench_decode: %s\n", bpt_error_last()->text);
    return bpt_status_exit(status);
}
