#include "storage/images/jpeg_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#ifndef JCS_EXTENSIONS
#error "this needs libjpeg-turbo, not another libjpeg"
#endif

enum {
    MOST_SCANS = 500,
    MARGIN = 4, /* pixels: colours of less resolution are mixed with those of their neighbours */
};

/* Decoder and what its callbacks need; they find it by the address of their first argument. */
typedef struct reader {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    bpt__jpeg_report *report;
    jmp_buf escape;
} reader;

/* ---- callbacks ---- */

static _Noreturn void fail_now(j_common_ptr d) {
    reader *r = (reader *)(void *)d;
    r->report->failed = true;
    d->err->format_message(d, r->report->reason);
    longjmp(r->escape, 1);
}

static void note_warning(j_common_ptr d, int level) {
    reader *r = (reader *)(void *)d;
    if (level >= 0) return; /* no more than news */
    if (!r->report->warned) d->err->format_message(d, r->report->reason);
    r->report->warned = true;
    d->err->num_warnings++;
}

static _Noreturn void give_up(reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static _Noreturn void give_up(reader *r, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->report->reason, sizeof r->report->reason, format, arguments);
    va_end(arguments);
    r->report->failed = true;
    longjmp(r->escape, 1);
}

static void count_scans(j_common_ptr d) {
    reader *r = (reader *)(void *)d;
    if (r->d.input_scan_number > MOST_SCANS)
        give_up(r, "Progressive JPEG image has more than %d scans", MOST_SCANS);
}

/* ---- reading ---- */

static void begin(reader *r, const uint8_t *data, size_t size, uint32_t divisor, uint32_t lanes) {
    struct jpeg_decompress_struct *d = &r->d;
    jpeg_create_decompress(d);
    d->progress = &r->progress;
    jpeg_mem_src(d, data, size);
    jpeg_read_header(d, TRUE);
    d->out_color_space = lanes == 1               ? JCS_GRAYSCALE
                         : d->num_components == 4 ? JCS_CMYK
                                                  : JCS_EXT_RGBX;
    d->scale_num = 1;
    d->scale_denom = divisor;
    jpeg_start_decompress(d);
}

/* Whether libjpeg-turbo passes over pixels as well as it computes them: of several scans, or with
 * arithmetic coding, that has been a source of errors. */
static bool can_pass_over(reader *r) {
    return !jpeg_has_multiple_scans(&r->d) && !r->d.progressive_mode && !r->d.arith_code;
}

/* Takes the columns of the region, and those next to them.
 * @return column of the first */
static uint32_t cut_columns(reader *r, const bpt__region *region) {
    struct jpeg_decompress_struct *d = &r->d;
    const uint32_t end = region->x + region->w;
    JDIMENSION from = region->x > MARGIN ? region->x - MARGIN : 0;
    JDIMENSION n = (d->output_width - end > MARGIN ? end + MARGIN : d->output_width) - from;
    if (n == d->output_width) return 0;
    jpeg_crop_scanline(d, &from, &n);
    return from;
}

/* Several at a time: where colours have half as many rows, libjpeg-turbo makes up to four at once.
 */
static void read_rows(reader *r, uint32_t first, uint32_t n, uint8_t *pixels, size_t pitch) {
    enum { AT_ONCE = 4 };
    const uint32_t end = first + n;
    for (uint32_t y = first; y < end;) {
        JSAMPROW rows[AT_ONCE];
        const uint32_t n_rows = end - y < AT_ONCE ? end - y : AT_ONCE;
        for (uint32_t i = 0; i < n_rows; i++) rows[i] = pixels + (size_t)(y + i) * pitch;
        const uint32_t n_read = jpeg_read_scanlines(&r->d, rows, n_rows);
        if (n_read == 0) give_up(r, "row %u does not come", y); /* a file in memory gives all */
        y += n_read;
    }
}

/* The last row is always read: libjpeg-turbo does not decode rows that are passed over up to the
 * end, and would miss what is damaged in them. */
static void read_all(reader *r, const bpt__region *region, bpt__packed *out) {
    struct jpeg_decompress_struct *d = &r->d;
    const size_t pitch = (size_t)out->W * out->lanes;
    const uint32_t end = region->y + region->h, last = d->output_height - 1;
    if (!can_pass_over(r)) {
        read_rows(r, 0, d->output_height, out->pixels, pitch);
    } else {
        uint8_t *pixels = out->pixels + (size_t)cut_columns(r, region) * out->lanes;
        if (region->y) jpeg_skip_scanlines(d, region->y);
        read_rows(r, region->y, region->h, pixels, pitch);
        if (end < last) jpeg_skip_scanlines(d, last - end);
        if (end <= last) read_rows(r, last, 1, pixels, pitch);
    }
    jpeg_finish_decompress(d);
}

void bpt__jpeg_read(const uint8_t *data, size_t size, uint32_t divisor, const bpt__region *region,
                    bpt__packed *out, bpt__jpeg_report *report) {
    reader r;
    memset(&r.d, 0, sizeof r.d); /* a failure before it is made leaves one to destroy */
    *report = (bpt__jpeg_report){0};
    r.report = report;
    r.d.err = jpeg_std_error(&r.errors);
    r.errors.error_exit = fail_now;
    r.errors.emit_message = note_warning;
    r.progress.progress_monitor = count_scans;
    if (setjmp(r.escape) == 0) {
        begin(&r, data, size, divisor, out->lanes);
        if (r.d.output_width == out->W && r.d.output_height == out->H) {
            read_all(&r, region, out);
        } else {
            report->failed = true;
            snprintf(report->reason, sizeof report->reason, "it has %u x %u pixels",
                     r.d.output_height, r.d.output_width);
        }
    }
    jpeg_destroy_decompress(&r.d);
}
