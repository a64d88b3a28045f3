/* bpt-ingest montage: the first images of each class on one sheet, so that a person sees what was
 * ingested. */
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "storage/dataset/dataset.h"
#include "storage/dataset/record_decode.h"
#include "storage/images/image.h"
#include "storage/images/image_encoder.h"
#include "tools/ingest/ingest_commands.h"
#include "tools/ingest/record_copy.h"
#include "tools/interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GAP = 2, GROUND = 96 }; /* pixels between images, and their value */
enum { SIDE = 128 };           /* of encoded images: the middle of each */

typedef struct montage_options {
    const char *split, *to;
    int64_t columns;
} montage_options;

static const bpt_option montage_table[] = {
    {.name = "split",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(montage_options, split),
     .unit = "NAME",
     .help = "the split whose images are shown"},
    {.name = "to",
     .type = BPT_OPTION_TEXT,
     .offset = offsetof(montage_options, to),
     .unit = "FILE",
     .help = "PNG file to write"},
    {.name = "columns",
     .type = BPT_OPTION_INT,
     .offset = offsetof(montage_options, columns),
     .value = "12",
     .min = 1,
     .max = 1000,
     .unit = "N",
     .help = "how many images of each class"},
};

static const bpt_command montage_usage = {
    .name = "bpt-ingest montage",
    .synopsis = "DATASET --split NAME --to FILE [--columns N]",
    .summary =
        "Draws the first images of each class, a row for a class, and prints which row is "
        "which.",
    .epilogue = BPT_INGEST_EXIT_STATUS,
    .options = montage_table,
    .n_options = sizeof montage_table / sizeof *montage_table,
    .min_operands = 1,
    .max_operands = 1,
};

typedef struct sheet {
    const bpt_dataset_info *info;
    uint32_t rows, columns; /* of images */
    uint32_t H, W;          /* of the sheet */
    uint8_t *pixels;        /* shape [C,H,W] */
    uint32_t *n_shown;      /* of each class, shape [rows] */
    uint8_t decoded[BPT_RECORD_MAX_C * SIDE * SIDE];
} sheet;

static bpt_status plan_sheet(sheet *s, uint32_t columns) {
    const bpt_dataset_info *info = s->info;
    if (info->C != 1 && info->C != 3)
        return bpt_fail(BPT_EDATA, "images of %u channels cannot be drawn (1 or 3)", info->C);
    const uint32_t most_rows = (BPT_IMAGE_MAX_SIDE - GAP) / (info->H + GAP);
    const uint32_t most_columns = (BPT_IMAGE_MAX_SIDE - GAP) / (info->W + GAP);
    if (most_rows == 0 || most_columns == 0)
        return bpt_fail(BPT_EDATA, "images of %ux%u pixels are too large for a sheet", info->H,
                        info->W);
    s->rows = info->n_classes < most_rows ? info->n_classes : most_rows;
    s->columns = columns < most_columns ? columns : most_columns;
    s->H = GAP + s->rows * (info->H + GAP);
    s->W = GAP + s->columns * (info->W + GAP);
    BPT_TRY(BPT_NEW("rows", s->rows, &s->n_shown));
    BPT_TRY(bpt_alloc("sheet", (size_t)info->C * s->H, s->W, (void **)&s->pixels));
    memset(s->pixels, GROUND, (size_t)info->C * s->H * s->W);
    return BPT_OK;
}

static void draw(sheet *s, const uint8_t *pixels, uint32_t row, uint32_t column) {
    const bpt_dataset_info *info = s->info;
    const size_t y0 = GAP + (size_t)row * (info->H + GAP),
                 x0 = GAP + (size_t)column * (info->W + GAP);
    for (size_t c = 0; c < info->C; c++)
        for (size_t y = 0; y < info->H; y++)
            memcpy(s->pixels + (c * s->H + y0 + y) * s->W + x0,
                   pixels + (c * info->H + y) * info->W, info->W);
}

/* @param decoded shape [C,SIDE,SIDE] */
static bpt_status take(const bpt_dataset *dataset, const bpt_split *split, uint32_t i,
                       bpt_image_decoder *decoder, uint8_t *decoded, const uint8_t **pixels) {
    uint32_t label;
    bpt_record r;
    *pixels = decoded;
    if (!decoder) return bpt_dataset_get(dataset, split, i, pixels, &label);
    BPT_TRY(bpt_dataset_get_record(dataset, split, i, &r, &label));
    const bpt_image_frame frame = bpt_record_middle(r.H, r.W, SIDE, SIDE);
    return bpt_record_decode(decoder, dataset, split, i, &r, &frame, decoded);
}

/* @param decoder of an encoded dataset; else NULL */
static bpt_status fill_sheet(sheet *s, const bpt_dataset *dataset, const bpt_split *split,
                             bpt_image_decoder *decoder) {
    uint64_t left = 0;
    for (uint32_t r = 0; r < s->rows; r++)
        left += split->per_class[r] < s->columns ? split->per_class[r] : s->columns;
    for (uint32_t i = 0; i < split->count && left > 0; i++) {
        const uint8_t *pixels;
        uint32_t label;
        BPT_TRY(bpt_record_label(dataset, split, i, &label));
        if (label >= s->rows || s->n_shown[label] == s->columns) continue;
        BPT_TRY(take(dataset, split, i, decoder, s->decoded, &pixels));
        draw(s, pixels, label, s->n_shown[label]++);
        left--;
    }
    return bpt_dataset_check(dataset);
}

static void print_rows(const sheet *s, const bpt_split *split) {
    char shown[256];
    for (uint32_t r = 0; r < s->rows; r++) {
        bpt_text_escape(s->info->classes[r], shown, sizeof shown);
        printf("row %u: %s, the first %u of %" PRIu64 "\n", r + 1, shown, s->n_shown[r],
               split->per_class[r]);
    }
    if (s->rows < s->info->n_classes)
        printf("%u more classes have no room\n", s->info->n_classes - s->rows);
}

/* An earlier sheet is replaced, and nothing else. */
static bpt_status check_place(const char *path) {
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    uint8_t begin[sizeof signature] = {0};
    uint64_t bytes;
    int fd;
    if (!bpt_path_exists(path)) return BPT_OK;
    if (bpt_file_open(path, &fd, &bytes) == BPT_OK) {
        const ssize_t n = read(fd, begin, sizeof begin);
        close(fd);
        if (n == sizeof begin && memcmp(begin, signature, sizeof begin) == 0) return BPT_OK;
    }
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s of --to is there, and no PNG file", path);
    bpt_hint("name a file that is not there yet, or a PNG file to be replaced");
    return status;
}

static bpt_status write_sheet(const sheet *s, const char *path) {
    bpt_image_encoder *encoder;
    bpt_image_file file = {0};
    BPT_TRY(bpt_image_encoder_open(&encoder));
    bpt_status status = bpt_image_encode_png(encoder, s->pixels, s->info->C, s->H, s->W, &file);
    if (status == BPT_OK) status = bpt_interrupt_write(path, file.data, file.size);
    bpt_free(file.data);
    bpt_image_encoder_close(encoder);
    return status;
}

static bpt_status make_sheet(const montage_options *o, const char *path) {
    bpt_dataset *dataset;
    const bpt_split *split;
    bpt_image_decoder *decoder = NULL;
    BPT_TRY(bpt_dataset_open(path, &dataset));
    sheet s = {.info = bpt_dataset_describe(dataset)};
    bpt_status status;
    if (s.info->encoded) {
        BPT_TRY_GOTO(status, bpt_dataset_bring_to(dataset, SIDE, SIDE), done);
        BPT_TRY_GOTO(status, bpt_image_decoder_open(NULL, &decoder), done);
    }
    BPT_TRY_GOTO(status, bpt_dataset_find(dataset, o->split, &split), done);
    BPT_TRY_GOTO(status, plan_sheet(&s, (uint32_t)o->columns), done);
    BPT_TRY_GOTO(status, fill_sheet(&s, dataset, split, decoder), done);
    BPT_TRY_GOTO(status, write_sheet(&s, o->to), done);
    print_rows(&s, split);
done:
    bpt_image_decoder_close(decoder);
    bpt_free(s.pixels);
    bpt_free(s.n_shown);
    bpt_dataset_close(dataset);
    return status;
}

static bpt_status run_montage(int argc, char **argv) {
    montage_options o;
    bpt_option_request request;
    bpt_option_set *set;
    BPT_TRY(bpt_options_parse(&montage_usage, argc, argv, &o, &request, &set));
    bpt_status status = BPT_OK;
    if (request != BPT_REQUEST_RUN) goto done;
    BPT_TRY_GOTO(status, bpt_ingest_check_source(&montage_usage, o.split, o.to), done);
    BPT_TRY_GOTO(status, check_place(o.to), done);
    int n;
    status = make_sheet(&o, bpt_option_operands(set, &n)[0]);
done:
    bpt_option_set_free(set);
    return status;
}

const bpt_ingest_command bpt_ingest_montage = {"montage", &montage_usage, run_montage};
