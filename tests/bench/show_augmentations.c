/* A sheet of augmented images, to look at:
 *
 *   show_augmentations DATASET SPLIT SHEET [LIST...]
 *
 * The first row of the sheet has images of the split as they are, each further one has the same
 * images after one LIST, as bpt-train --augment takes it; without LISTs each kind of augmentation
 * has a row, and all of them one after another have the last. Small images are magnified. SHEET is
 * written as PPM, or as PGM where images have one channel; which row is which goes to stdout, and
 * of mixed images which part of each is another. Images come from the loader, as in training; those
 * of an encoded dataset are brought to 128 by 128.
 */
#include "base/file.h"
#include "base/memory.h"
#include "storage/augmentations/augmentation.h"
#include "storage/loader/loader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_COLUMNS = 12, MAX_ROWS = 32, GAP = 4, SMALL = 64, LONGEST = 256, SIDE = 128 };

typedef struct sheet {
    uint32_t C, H, W;    /* of an image */
    uint32_t n_channels; /* of the sheet: 3 or 1 */
    uint32_t magnified;  /* a pixel's height and width on the sheet */
    uint32_t n_rows;
    size_t width, height;
    uint8_t *pixels; /* shape [height, width, n_channels] */
    uint8_t *image;  /* shape [C,H,W] */
} sheet;

static bpt_status open_sheet(const bpt_dataset_info *info, uint32_t n_rows, sheet *s) {
    const uint32_t side = info->H < info->W ? info->H : info->W;
    *s = (sheet){.C = info->C, .H = info->H, .W = info->W, .n_rows = n_rows};
    s->n_channels = info->C == 3 ? 3 : 1;
    s->magnified = side < SMALL ? (SMALL + side - 1) / side : 1;
    s->width = GAP + N_COLUMNS * ((size_t)s->W * s->magnified + GAP);
    s->height = GAP + n_rows * ((size_t)s->H * s->magnified + GAP);
    BPT_TRY(BPT_NEW("sheet", s->width * s->height * s->n_channels, &s->pixels));
    BPT_TRY(BPT_NEW("image", (size_t)s->C * s->H * s->W, &s->image));
    memset(s->pixels, 255, s->width * s->height * s->n_channels);
    return BPT_OK;
}

static void close_sheet(sheet *s) {
    bpt_free(s->pixels);
    bpt_free(s->image);
}

/* @param image shape [C,H,W] */
static void put(sheet *s, uint32_t row, uint32_t column, const uint8_t *image) {
    const size_t high = (size_t)s->H * s->magnified, wide = (size_t)s->W * s->magnified;
    const size_t top = GAP + row * (high + GAP), left = GAP + column * (wide + GAP);
    for (size_t y = 0; y < high; y++)
        for (size_t x = 0; x < wide; x++)
            for (size_t c = 0; c < s->n_channels; c++)
                s->pixels[((top + y) * s->width + left + x) * s->n_channels + c] =
                    image[(c * s->H + y / s->magnified) * s->W + x / s->magnified];
}

static void put_row(sheet *s, uint32_t row, const bpt_batch *batch) {
    const size_t size = (size_t)s->C * s->H * s->W;
    for (uint32_t i = 0; i < batch->n; i++) {
        const float *pixels = batch->pixels + i * size;
        for (size_t p = 0; p < size; p++) s->image[p] = (uint8_t)lroundf(255 * pixels[p]);
        put(s, row, i, s->image);
    }
}

/* Which row has what; of mixed images also how much of each is another. */
static void name_row(uint32_t row, const char *list, const bpt_batch *batch) {
    printf("row %u: %s", row + 1, list);
    for (uint32_t i = 0; batch->second_parts && i < batch->n; i++)
        printf("%s%.2f", i == 0 ? "; parts of another: " : " ", (double)batch->second_parts[i]);
    printf("\n");
}

static bpt_status fill_row(const bpt_dataset *dataset, const bpt_split *split, const char *list,
                           uint32_t row, sheet *s) {
    bpt_loader_options o = {.batch = N_COLUMNS, .n_threads = 1, .depth = 1, .seed = 1};
    uint32_t records[N_COLUMNS], passes[N_COLUMNS], n = 0;
    bpt_loader *loader;
    bpt_batch batch;
    for (; n < N_COLUMNS && n < split->count; n++) {
        records[n] = (uint32_t)((uint64_t)n * split->count / N_COLUMNS);
        passes[n] = row;
    }
    BPT_TRY(bpt_augment_parse(list, &o.augment));
    BPT_TRY(bpt_loader_create(dataset, split, &o, &loader));
    bpt_status status = bpt_loader_request(loader, records, passes, n);
    if (status == BPT_OK) status = bpt_loader_next(loader, &batch);
    if (status == BPT_OK) put_row(s, row, &batch);
    if (status == BPT_OK) name_row(row, list, &batch);
    bpt_loader_destroy(loader);
    return status;
}

static bpt_status write_sheet(const sheet *s, const char *path) {
    char head[64];
    snprintf(head, sizeof head, "P%c\n%zu %zu\n255\n", s->n_channels == 3 ? '6' : '5', s->width,
             s->height);
    const bpt_bytes parts[] = {{head, strlen(head)},
                               {s->pixels, s->width * s->height * s->n_channels}};
    return bpt_file_write_parts(path, parts, 2);
}

/* Adds each kind's example to the lists, and one that has them all.
 * @param[out] all the text of that one */
static void name_kinds(const char **lists, char all[LONGEST], uint32_t *n) {
    const bpt_augmentation *kind;
    all[0] = 0;
    for (size_t i = 0; (kind = bpt_augmentation_at(i)); i++) {
        const size_t length = strlen(all);
        if (bpt_augmentation_wants_encoded(kind)) continue;
        snprintf(all + length, LONGEST - length, "%s%s", length > 0 ? "," : "", kind->example);
        lists[(*n)++] = kind->example;
    }
    lists[(*n)++] = all;
}

static bpt_status show(char **arguments, const char **lists, uint32_t n_lists) {
    bpt_dataset *dataset;
    const bpt_split *split;
    sheet s = {0};
    BPT_TRY(bpt_dataset_open(arguments[1], &dataset));
    bpt_status status = bpt_dataset_find(dataset, arguments[2], &split);
    if (status == BPT_OK && bpt_dataset_describe(dataset)->encoded)
        status = bpt_dataset_bring_to(dataset, SIDE, SIDE);
    if (status == BPT_OK) status = open_sheet(bpt_dataset_describe(dataset), n_lists, &s);
    for (uint32_t i = 0; i < n_lists && status == BPT_OK; i++)
        status = fill_row(dataset, split, lists[i], i, &s);
    if (status == BPT_OK) status = write_sheet(&s, arguments[3]);
    close_sheet(&s);
    bpt_dataset_close(dataset);
    return status;
}

int main(int argc, char **argv) {
    const char *lists[MAX_ROWS] = {"none"};
    char all[LONGEST];
    uint32_t n = 1;
    if (argc < 4 || argc - 4 > MAX_ROWS - 1) {
        fprintf(stderr, "usage: show_augmentations DATASET SPLIT SHEET [LIST...]\n");
        return 2;
    }
    for (int i = 4; i < argc; i++) lists[n++] = argv[i];
    if (argc == 4) name_kinds(lists, all, &n);
    const bpt_status status = show(argv, lists, n);
    if (status == BPT_OK) return 0;
    fprintf(stderr, "show_augmentations: %s\n", bpt_error_last()->text);
    if (bpt_error_last()->hint[0]) fprintf(stderr, "hint: %s\n", bpt_error_last()->hint);
    return bpt_status_exit(status);
}
