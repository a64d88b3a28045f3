/* IDX, the format of MNIST and its kin: a file of images and a file of labels, each a big-endian
 * header (two zero bytes, type 0x08 for bytes, number of dimensions, then each dimension) and
 * bytes. yann.lecun.com/exdb/mnist, "The IDX file format". */
#include "base/memory.h"
#include "storage/importers/gz_file.h"
#include "storage/importers/importer.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    MAGIC_LABELS = 0x00000801,
    MAGIC_IMAGES = 0x00000803,
    MAX_SIDE = 1 << 14,
};

typedef struct idx {
    const char *images_path; /* borrowed */
    bpt__gz_file *images;
    uint8_t *labels; /* shape [count] */
    uint32_t count, next, H, W;
} idx;

static void idx_close(void *import) {
    idx *x = import;
    if (!x) return;
    bpt__gz_close(x->images);
    bpt_free(x->labels);
    bpt_free(x);
}

static bpt_status read_u32(bpt__gz_file *file, uint32_t *out) {
    uint8_t b[4];
    BPT_TRY(bpt__gz_read(file, b, sizeof b, "its header"));
    *out = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    return BPT_OK;
}

static bpt_status expect_magic(bpt__gz_file *file, const char *path, uint32_t expected) {
    uint32_t magic;
    BPT_TRY(read_u32(file, &magic));
    if (magic == expected) return BPT_OK;
    const char *what = expected == MAGIC_IMAGES ? "images" : "labels";
    const bpt_status status = bpt_fail(
        BPT_EDATA, "%s is no IDX file of %s: it begins with 0x%08" PRIx32 ", not 0x%08" PRIx32,
        path, what, magic, expected);
    if (magic == MAGIC_IMAGES || magic == MAGIC_LABELS)
        bpt_hint("the images come first, then the labels: bpt-ingest idx IMAGES LABELS");
    else if (magic >> 8 == 8)
        bpt_hint("only grey images (3 dimensions) and labels (1 dimension) can be read");
    else
        bpt_hint("IDX files are those of MNIST, named like train-images-idx3-ubyte");
    return status;
}

static bpt_status read_labels(idx *x, const char *path) {
    bpt__gz_file *file;
    BPT_TRY(bpt__gz_open(path, &file));
    bpt_status status;
    BPT_TRY_GOTO(status, expect_magic(file, path, MAGIC_LABELS), done);
    BPT_TRY_GOTO(status, read_u32(file, &x->count), done);
    if (x->count == 0) {
        status = bpt_fail(BPT_EDATA, "%s holds no labels", path);
        goto done;
    }
    /* Grows with what is really there, so that a header that lies cannot exhaust the memory. */
    size_t capacity = 0;
    enum { STEP = 1 << 20 };
    for (uint32_t have = 0; have < x->count;) {
        const uint32_t n = x->count - have < STEP ? x->count - have : STEP;
        BPT_TRY_GOTO(status, BPT_GROW("labels", (size_t)have + n, &x->labels, &capacity), done);
        BPT_TRY_GOTO(status, bpt__gz_read(file, x->labels + have, n, "its labels"), done);
        have += n;
    }
    status = bpt__gz_expect_end(file);
done:
    bpt__gz_close(file);
    return status;
}

/* @param[out] count of images in the header */
static bpt_status open_images(idx *x, const char *path, uint32_t *count) {
    BPT_TRY(bpt__gz_open(path, &x->images));
    BPT_TRY(expect_magic(x->images, path, MAGIC_IMAGES));
    BPT_TRY(read_u32(x->images, count));
    BPT_TRY(read_u32(x->images, &x->H));
    BPT_TRY(read_u32(x->images, &x->W));
    if (x->H > 0 && x->W > 0 && x->H <= MAX_SIDE && x->W <= MAX_SIDE) return BPT_OK;
    return bpt_fail(BPT_EDATA, "%s announces images of %" PRIu32 "x%" PRIu32 " pixels", path, x->H,
                    x->W);
}

/* Labels are read whole, since they are small and say how many classes there are. */
static bpt_status open_both(idx *x, const char *images_path, const char *labels_path) {
    uint32_t n_images;
    BPT_TRY(open_images(x, images_path, &n_images));
    BPT_TRY(read_labels(x, labels_path));
    if (n_images == x->count) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EDATA, "%s holds %" PRIu32 " images, but %s holds %" PRIu32 " labels",
                 images_path, n_images, labels_path, x->count);
    bpt_hint("both files must be of the same set: train with train, t10k with t10k");
    return status;
}

static bpt_status idx_open(const bpt_import_source *source, bpt_import_plan *plan, void **import) {
    if (source->n_files != 2)
        return bpt_fail(BPT_EUSAGE,
                        "idx takes a file of images and a file of labels, not %zu files",
                        source->n_files);
    idx *x;
    BPT_TRY(BPT_NEW("idx import", 1, &x));
    x->images_path = source->files[0];
    bpt_status status;
    BPT_TRY_GOTO(status, open_both(x, source->files[0], source->files[1]), fail);
    uint32_t highest = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (x->labels[i] > highest) highest = x->labels[i];
    *plan = (bpt_import_plan){
        .C = 1, .H = x->H, .W = x->W, .count = x->count, .n_classes = highest + 1};
    *import = x;
    return BPT_OK;
fail:
    idx_close(x);
    return status;
}

static void idx_describe(void *import, const bpt_import_item *item, char *name, size_t size) {
    const idx *x = import;
    snprintf(name, size, "%s: image %" PRIu64, x->images_path, item->number);
}

static bpt_status idx_next(void *import, bpt_import_item *item) {
    idx *x = import;
    const size_t size = (size_t)x->H * x->W;
    char what[64];
    snprintf(what, sizeof what, "image %" PRIu32 " of %" PRIu32, x->next, x->count);
    BPT_TRY(BPT_GROW("image", size, &item->owned.bytes, &item->owned.capacity));
    BPT_TRY(bpt__gz_read(x->images, item->owned.bytes, size, what));
    item->bytes = item->owned.bytes;
    item->size = size;
    item->number = x->next++;
    /* The last image is good only if the stream ends well: gzip's checksum comes last. */
    return x->next == x->count ? bpt__gz_expect_end(x->images) : BPT_OK;
}

static bpt_status idx_load(void *import, const bpt_import_item *item, bpt_import_buffer *buffer,
                           bpt_import_image *image) {
    const idx *x = import;
    (void)buffer;
    *image = (bpt_import_image){.label = x->labels[item->number],
                                .bytes = item->bytes,
                                .size = item->size,
                                .C = 1,
                                .H = x->H,
                                .W = x->W};
    return BPT_OK;
}

const bpt_importer bpt__import_idx = {.name = "idx",
                                      .open = idx_open,
                                      .next = idx_next,
                                      .load = idx_load,
                                      .describe = idx_describe,
                                      .close = idx_close};
