/* bpt-ingest export: a split as files again, PNG or JPEG in a folder for each class, or IDX. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "storage/dataset/dataset.h"
#include "storage/dataset/record_decode.h"
#include "storage/images/image_encoder.h"
#include "tools/ingest/folder_name.h"
#include "tools/ingest/ingest_commands.h"
#include "tools/ingest/ingest_progress.h"
#include "tools/interrupt.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum export_format { FORMAT_PNG, FORMAT_IDX, FORMAT_JPEG } export_format;

typedef struct export_options {
    const char *split, *to;
    int format; /* export_format */
} export_options;

static const bpt_option export_table[] = {
    {.name = "split",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(export_options, split),
     .unit = "NAME",
     .help = "the split whose images are written"},
    {.name = "to",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(export_options, to),
     .unit = "DIR",
     .help = "folder to make; it may not be there yet"},
    {.name = "format",
     .type = BPT_OPTION_CHOICE,
     .offset = offsetof(export_options, format),
     .value = "png",
     .choices = "png|idx|jpeg",
     .help = "png: DIR/CLASS/NUMBER.png, the number being that of the image in the\nsplit; idx: "
             "DIR/images-idx3-ubyte and DIR/labels-idx1-ubyte, for grey\nimages of one size; "
             "jpeg: DIR/CLASS/NUMBER.jpg,\nof encoded images: the files as they are"},
};

static const bpt_command export_usage = {
    .name = "bpt-ingest export",
    .synopsis = "DATASET --split NAME --to DIR [--format png|idx|jpeg]",
    .summary = "Writes the images of a split as files.",
    .epilogue = BPT_INGEST_EXIT_STATUS,
    .options = export_table,
    .n_options = sizeof export_table / sizeof *export_table,
    .min_operands = 1,
    .max_operands = 1,
};

typedef struct export {
    const export_options *o;
    bpt_dataset *dataset;
    const bpt_dataset_info *info;
    const bpt_split *split;
    bpt_image_encoder *encoder;
    bpt_image_decoder *decoder; /* of encoded images that become PNG, as what follows */
    uint8_t *decoded;
    size_t decoded_capacity;
    bpt_image_file png;
    FILE *images, *labels; /* of IDX */
}
export;

/* What is done with record number i. */
typedef bpt_status (*put_fn)(export *x, uint32_t i);

static bpt_status each_record(export *x, put_fn put) {
    bpt_ingest_progress progress = bpt_ingest_progress_start("written");
    bpt_status status = BPT_OK;
    for (uint32_t i = 0; i < x->split->count && status == BPT_OK; i++) {
        status = put(x, i);
        if (status == BPT_OK)
            status = bpt_interrupt_check("nothing is left", "run the same command again");
        bpt_ingest_progress_show(&progress, i + 1, x->split->count);
    }
    bpt_log_progress_end();
    const bpt_status checked = bpt_dataset_check(x->dataset); /* the reason for what else failed */
    return checked == BPT_OK ? status : checked;
}

static bpt_status write_to(FILE *file, const char *path, const void *data, size_t size) {
    return fwrite(data, 1, size, file) == size ? BPT_OK : bpt_fail_write(errno, "write", path);
}

static bpt_status close_file(FILE *file, const char *path) {
    return fclose(file) == 0 ? BPT_OK : bpt_fail_write(errno, "write", path);
}

/* ---- PNG and JPEG ---- */

/* Writes the file of an image into the folder of its class. */
static bpt_status put_file(const export *x, uint32_t i, uint32_t label, const char *extension,
                           const void *data, size_t size) {
    char folder[BPT_FOLDER_NAME_SIZE], *path;
    BPT_TRY(bpt_folder_name(x->info->classes[label], folder));
    BPT_TRY(bpt_strf(&path, "%s/%s/%08u.%s", x->o->to, folder, i, extension));
    FILE *file = fopen(path, "wxe");
    bpt_status status =
        file ? write_to(file, path, data, size) : bpt_fail_write(errno, "write", path);
    if (file) {
        const bpt_status closed = close_file(file, path);
        if (status == BPT_OK) status = closed;
    }
    bpt_free(path);
    return status;
}

static bpt_status put_png(export *x, uint32_t i) {
    const uint8_t *pixels;
    uint32_t label;
    const bpt_dataset_info *info = x->info;
    BPT_TRY(bpt_dataset_get(x->dataset, x->split, i, &pixels, &label));
    BPT_TRY(bpt_image_encode_png(x->encoder, pixels, info->C, info->H, info->W, &x->png));
    return put_file(x, i, label, "png", x->png.data, x->png.size);
}

static bpt_status put_decoded(export *x, uint32_t i) {
    bpt_record r;
    uint32_t label;
    const uint32_t C = x->info->C;
    BPT_TRY(bpt_dataset_get_record(x->dataset, x->split, i, &r, &label));
    const bpt_image_fit as_is = {0};
    const bpt_image_frame frame = bpt_image_fit_frame(&as_is, r.H, r.W);
    BPT_TRY(BPT_GROW("image", (size_t)C * r.H * r.W, &x->decoded, &x->decoded_capacity));
    BPT_TRY(bpt_record_decode(x->decoder, x->dataset, x->split, i, &r, &frame, x->decoded));
    BPT_TRY(bpt_image_encode_png(x->encoder, x->decoded, C, r.H, r.W, &x->png));
    return put_file(x, i, label, "png", x->png.data, x->png.size);
}

static bpt_status put_jpeg(export *x, uint32_t i) {
    bpt_record r;
    uint32_t label;
    BPT_TRY(bpt_dataset_get_record(x->dataset, x->split, i, &r, &label));
    return put_file(x, i, label, "jpg", r.data, r.size);
}

/* Also of classes without images: they are classes all the same. */
static bpt_status make_folders(const export *x) {
    for (uint32_t c = 0; c < x->info->n_classes; c++) {
        char folder[BPT_FOLDER_NAME_SIZE], *path;
        BPT_TRY(bpt_folder_name(x->info->classes[c], folder));
        BPT_TRY(bpt_strf(&path, "%s/%s", x->o->to, folder));
        const bpt_status status = bpt_dir_create(path, true);
        bpt_free(path);
        BPT_TRY(status);
    }
    return BPT_OK;
}

static bpt_status export_png(export *x) {
    if (x->info->C != 1 && x->info->C != 3)
        return bpt_fail(BPT_EDATA, "images of %u channels cannot be written as PNG (1 or 3)",
                        x->info->C);
    BPT_TRY(bpt_image_encoder_open(&x->encoder));
    if (x->info->encoded) BPT_TRY(bpt_image_decoder_open(NULL, &x->decoder));
    BPT_TRY(make_folders(x));
    return each_record(x, x->info->encoded ? put_decoded : put_png);
}

static bpt_status export_jpeg(export *x) {
    if (!x->info->encoded) {
        const bpt_status status =
            bpt_fail(BPT_EDATA, "dataset %s holds raw images, no JPEG files", x->info->path);
        bpt_hint("--format png writes them, with the same pixels");
        return status;
    }
    BPT_TRY(make_folders(x));
    return each_record(x, put_jpeg);
}

/* ---- IDX ---- */

static const char image_name[] = "images-idx3-ubyte", label_name[] = "labels-idx1-ubyte";

static bpt_status fail_idx(const export *x, const char *name) {
    const int error = errno;
    char *path;
    BPT_TRY(bpt_strf(&path, "%s/%s", x->o->to, name));
    const bpt_status status = bpt_fail_write(error, "write", path);
    bpt_free(path);
    return status;
}

static bpt_status write_idx(const export *x, FILE *file, const char *name, const void *data,
                            size_t size) {
    return fwrite(data, 1, size, file) == size ? BPT_OK : fail_idx(x, name);
}

static bpt_status put_idx(export *x, uint32_t i) {
    const uint8_t *pixels;
    uint32_t label;
    BPT_TRY(bpt_dataset_get(x->dataset, x->split, i, &pixels, &label));
    const uint8_t byte = (uint8_t)label;
    BPT_TRY(write_idx(x, x->images, image_name, pixels, (size_t)x->info->H * x->info->W));
    return write_idx(x, x->labels, label_name, &byte, 1);
}

/* @param numbers the magic and the dimensions, shape [n] */
static bpt_status begin_idx(const export *x, const char *name, const uint32_t *numbers, size_t n,
                            FILE **out) {
    char *path;
    BPT_TRY(bpt_strf(&path, "%s/%s", x->o->to, name));
    *out = fopen(path, "wxe");
    bpt_status status = *out ? BPT_OK : fail_idx(x, name);
    bpt_free(path);
    for (size_t i = 0; i < n && status == BPT_OK; i++) {
        const uint8_t b[4] = {(uint8_t)(numbers[i] >> 24), (uint8_t)(numbers[i] >> 16),
                              (uint8_t)(numbers[i] >> 8), (uint8_t)numbers[i]};
        status = write_idx(x, *out, name, b, sizeof b);
    }
    return status;
}

static bpt_status end_idx(const export *x, FILE **file, const char *name, bpt_status status) {
    if (!*file) return status;
    const bpt_status closed = fclose(*file) == 0 || status != BPT_OK ? status : fail_idx(x, name);
    *file = NULL;
    return closed;
}

static bpt_status export_idx(export *x) {
    const bpt_dataset_info *info = x->info;
    if (info->C != 1 && info->C != 3)
        return bpt_fail(BPT_EDATA, "images of %u channels cannot be written as IDX (1)", info->C);
    if (info->C != 1 || info->n_classes > 256) {
        const bpt_status status =
            bpt_fail(BPT_EDATA, "IDX holds grey images of up to 256 classes, and these are %s",
                     info->C != 1 ? "in colour" : "more");
        bpt_hint("--format png writes them all");
        return status;
    }
    if (info->encoded) {
        const bpt_status status =
            bpt_fail(BPT_EDATA, "IDX holds images of one size, and these are JPEG files");
        bpt_hint("--format jpeg or --format png writes them all");
        return status;
    }
    const uint32_t images[] = {0x803, x->split->count, info->H, info->W};
    const uint32_t labels[] = {0x801, x->split->count};
    bpt_status status = begin_idx(x, image_name, images, 4, &x->images);
    if (status == BPT_OK) status = begin_idx(x, label_name, labels, 2, &x->labels);
    if (status == BPT_OK) status = each_record(x, put_idx);
    status = end_idx(x, &x->images, image_name, status);
    return end_idx(x, &x->labels, label_name, status);
}

/* ---- the command ---- */

static bpt_status export_split(export *x, const char *path) {
    BPT_TRY(bpt_dataset_open(path, &x->dataset));
    x->info = bpt_dataset_describe(x->dataset);
    BPT_TRY(bpt_dataset_find(x->dataset, x->o->split, &x->split));
    size_t n_made;
    const bpt_status made = bpt_dir_create_counted(x->o->to, true, &n_made);
    if (made == BPT_EEXIST) bpt_hint("name a folder that is not there yet, or remove this one");
    BPT_TRY(made);
    const bpt_status status = x->o->format == FORMAT_IDX    ? export_idx(x)
                              : x->o->format == FORMAT_JPEG ? export_jpeg(x)
                                                            : export_png(x);
    if (status == BPT_OK) {
        bpt_info("%u image%s of split %s written to %s", x->split->count,
                 x->split->count == 1 ? "" : "s", x->split->name, x->o->to);
        return BPT_OK;
    }
    bpt_error error; /* why, not what happens on the way out */
    bpt_error_get(&error);
    bpt_dir_remove(x->o->to);
    bpt_dir_take_back(x->o->to, n_made);
    return bpt_error_put(&error);
}

static bpt_status run_export(int argc, char **argv) {
    export_options o;
    bpt_option_request request;
    bpt_option_set *set;
    BPT_TRY(bpt_options_parse(&export_usage, argc, argv, &o, &request, &set));
    bpt_status status = BPT_OK;
    if (request != BPT_REQUEST_RUN) goto done;
    BPT_TRY_GOTO(status, bpt_ingest_check_source(&export_usage, o.split, o.to), done);
    bpt_interrupt_catch();
    int n;
    export x = {.o = &o};
    status = export_split(&x, bpt_option_operands(set, &n)[0]);
    bpt_image_encoder_close(x.encoder);
    bpt_image_decoder_close(x.decoder);
    bpt_free(x.decoded);
    bpt_free(x.png.data);
    bpt_dataset_close(x.dataset);
done:
    bpt_option_set_free(set);
    return status;
}

const bpt_ingest_command bpt_ingest_export = {"export", &export_usage, run_export};
