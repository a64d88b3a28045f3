/* The markers of a JPEG, read as libjpeg reads them: what this accepts has the size for libjpeg
 * that it has here. Source: ITU T.81, annex B. */
#include "storage/images/codecs.h"
#include "storage/images/exif.h"

#include <string.h>

enum {
    SOF0 = 0xC0,
    DHT = 0xC4,
    JPG = 0xC8,
    DAC = 0xCC,
    SOF15 = 0xCF,
    RST0 = 0xD0,
    RST7 = 0xD7,
    SOI = 0xD8,
    EOI = 0xD9,
    SOS = 0xDA,
    DQT = 0xDB,
    DNL = 0xDC,
    DRI = 0xDD,
    APP0 = 0xE0,
    APP1 = 0xE1,
    APP14 = 0xEE,
    APP15 = 0xEF,
    COM = 0xFE,
    TEM = 0x01,
};

typedef struct segment {
    uint8_t marker;
    size_t offset;       /* of the marker's code; its 0xFF is before */
    const uint8_t *body; /* behind the length */
    size_t size;         /* of the body */
} segment;

static bpt_status cut(const char *name) {
    const bpt_status status = bpt_fail(BPT_EDATA, "%s is cut short within its header", name);
    bpt_hint("fetch the file again");
    return status;
}

static bpt_status damaged(const char *name, const char *why) {
    const bpt_status status = bpt_fail(BPT_EDATA, "%s is a damaged JPEG: %s", name, why);
    bpt_hint("fetch the file again");
    return status;
}

static bool stands_alone(uint8_t marker) {
    return marker == TEM || (marker >= RST0 && marker <= RST7);
}

/* Segments that libjpeg knows before a scan; others it refuses. */
static bool is_known(uint8_t marker) {
    return (marker >= SOF0 && marker <= SOF15 && marker != JPG) || marker == SOS || marker == DQT ||
           marker == DNL || marker == DRI || (marker >= APP0 && marker <= APP15) || marker == COM;
}

static const char ends_early[] = "is cut short"; /* in place of a reason */

/* @param[in,out] at where to look for the next marker; then the end of its segment
 * @return NULL, or why there is none */
static const char *find_segment(const uint8_t *data, size_t size, size_t *at, segment *out) {
    size_t i = *at;
    do {
        while (i < size && data[i] != 0xFF) i++;
        while (i < size && data[i] == 0xFF) i++;
    } while (i < size && data[i] == 0);
    if (i >= size) return ends_early;
    *out = (segment){.marker = data[i], .offset = i};
    *at = i + 1;
    if (stands_alone(out->marker)) return NULL;
    if (out->marker == EOI) return "it ends before any pixel";
    if (!is_known(out->marker)) return "its header has an unknown marker";
    if (size - *at < 2) return ends_early;
    const size_t length = (size_t)data[*at] << 8 | data[*at + 1];
    if (length < 2) return "a segment of its header has no length";
    if (size - *at < length) return ends_early;
    out->body = data + *at + 2;
    out->size = length - 2;
    *at += length;
    return NULL;
}

static bpt_status next_segment(const char *name, const uint8_t *data, size_t size, size_t *at,
                               segment *out) {
    const char *why = find_segment(data, size, at, out);
    if (!why) return BPT_OK;
    return why == ends_early ? cut(name) : damaged(name, why);
}

static bpt_status unsupported(const char *name, const char *what) {
    const bpt_status status =
        bpt_fail(BPT_EDATA, "%s is a JPEG with %s; bpt cannot read it", name, what);
    bpt_hint("convert it, for example with ImageMagick: convert %s NEW.png", name);
    return status;
}

/* A frame header: the size of the image and of its pixels. */
static bpt_status read_frame(const char *name, const segment *s, bpt_image_info *info) {
    const uint8_t kind = s->marker - SOF0; /* 0 baseline, 1, 2 progressive, 9, 10 arithmetic */
    if (kind != 0 && kind != 1 && kind != 2 && kind != 9 && kind != 10)
        return unsupported(name, "lossless or hierarchical frames");
    if (info->C) return damaged(name, "it has two frame headers");
    if (s->size < 6 || s->size != 6 + 3 * (size_t)s->body[5])
        return damaged(name, "its frame header has the wrong length");
    info->bits = s->body[0];
    info->H = (uint32_t)s->body[1] << 8 | s->body[2];
    info->W = (uint32_t)s->body[3] << 8 | s->body[4];
    info->C = s->body[5];
    info->progressive = kind == 2 || kind == 10;
    if (info->bits != 8) return unsupported(name, "samples of other than 8 bits");
    switch (info->C) {
    case 1:
        info->colour = BPT_IMAGE_GREY;
        return BPT_OK;
    case 3:
        info->colour = BPT_IMAGE_RGB;
        return BPT_OK;
    case 4:
        info->colour = BPT_IMAGE_CMYK;
        return BPT_OK;
    default:
        return unsupported(name, "other than 1, 3 or 4 colours");
    }
}

static void read_application(const segment *s, bool *has_exif, bpt_image_info *info) {
    if (s->marker == APP1 && !*has_exif && s->size > 6 && memcmp(s->body, "Exif\0", 6) == 0) {
        info->orientation = bpt__exif_orientation(s->body + 6, s->size - 6);
        *has_exif = true;
    }
    if (s->marker == APP14 && s->size >= 12 && memcmp(s->body, "Adobe", 5) == 0) info->adobe = true;
}

/* @param[out] scan offset of the first SOS marker */
static bpt_status walk(const char *name, const uint8_t *data, size_t size, bpt_image_info *info,
                       size_t *scan) {
    bool has_exif = false;
    size_t at = 2; /* behind SOI */
    for (;;) {
        segment s;
        BPT_TRY(next_segment(name, data, size, &at, &s));
        if (s.marker == SOS) {
            *scan = s.offset - 1;
            return info->C ? BPT_OK : damaged(name, "it has pixels before their number");
        }
        if (s.marker >= SOF0 && s.marker <= SOF15 && s.marker != DHT && s.marker != DAC)
            BPT_TRY(read_frame(name, &s, info));
        read_application(&s, &has_exif, info);
    }
}

bpt_status bpt__jpeg_look(const char *name, const uint8_t *data, size_t size,
                          bpt_image_info *info) {
    size_t scan;
    *info = (bpt_image_info){.format = BPT_IMAGE_JPEG, .orientation = 1};
    return walk(name, data, size, info, &scan);
}

size_t bpt__jpeg_scan_offset(const uint8_t *data, size_t size) {
    size_t scan = 0;
    bpt_image_info info = {0};
    return walk("", data, size, &info, &scan) == BPT_OK ? scan : size;
}

/* @return where the marker behind a scan's coded bytes begins, in which 0xFF is followed by 0, by
 * another or by the number of a restart; @p size: there is none */
static size_t skip_coded(const uint8_t *data, size_t size, size_t at) {
    const uint8_t *next;
    while (at < size && (next = memchr(data + at, 0xFF, size - at))) {
        at = (size_t)(next - data) + 1;
        if (at < size && data[at] != 0 && data[at] != 0xFF && !stands_alone(data[at]))
            return at - 1;
    }
    return size;
}

bpt__jpeg_scans bpt__jpeg_count_scans(const uint8_t *data, size_t size) {
    bpt__jpeg_scans scans = {0};
    size_t at = 2; /* behind SOI */
    segment s;
    while (!find_segment(data, size, &at, &s)) {
        if (s.marker == DRI) scans.restart = true;
        if (s.marker != SOS) continue;
        scans.n++;
        at = skip_coded(data, size, at);
    }
    return scans;
}
