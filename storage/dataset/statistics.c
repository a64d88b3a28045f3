#include "storage/dataset/statistics.h"

#include "base/memory.h"

#include <math.h>

bpt_status bpt__statistics_init(bpt__statistics *s, size_t C, size_t plane, uint32_t n_classes) {
    bpt__statistics made = {.C = C, .plane = plane, .n_classes = n_classes};
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("class counts", n_classes, &made.per_class), fail);
    BPT_TRY_GOTO(status, BPT_NEW("channel sums", C, &made.sum), fail);
    BPT_TRY_GOTO(status, BPT_NEW("channel sums", C, &made.square), fail);
    *s = made;
    return BPT_OK;
fail:
    bpt__statistics_free(&made);
    return status;
}

void bpt__statistics_free(bpt__statistics *s) {
    bpt_free(s->per_class);
    bpt_free(s->sum);
    bpt_free(s->square);
    *s = (bpt__statistics){0};
}

void bpt__statistics_sum(const uint8_t *pixels, size_t n_pixels, uint64_t *all, uint64_t *squares) {
    /* 2^16 squares of a byte still fit 32 bits, which is what vectorises well. */
    enum { BLOCK = 1 << 16 };
    _Static_assert((uint64_t)255 * 255 * BLOCK <= UINT32_MAX, "a block's sum fits");
    for (size_t start = 0; start < n_pixels; start += BLOCK) {
        const size_t n = n_pixels - start < BLOCK ? n_pixels - start : BLOCK;
        uint32_t sum = 0, square = 0;
        for (size_t i = 0; i < n; i++) {
            const uint32_t p = pixels[start + i];
            sum += p;
            square += p * p;
        }
        *all += sum;
        *squares += square;
    }
}

static void count(bpt__statistics *s, uint64_t n_pixels, uint32_t label) {
    s->count++;
    s->n_pixels += n_pixels;
    s->per_class[label]++;
}

void bpt__statistics_add(bpt__statistics *s, const uint8_t *pixels, uint32_t label) {
    count(s, s->plane, label);
    for (size_t c = 0; c < s->C; c++, pixels += s->plane)
        bpt__statistics_sum(pixels, s->plane, &s->sum[c], &s->square[c]);
}

void bpt__statistics_add_sums(bpt__statistics *s, uint64_t n_pixels, const uint64_t *sum,
                              const uint64_t *square, uint32_t label) {
    count(s, n_pixels, label);
    for (size_t c = 0; c < s->C; c++) {
        s->sum[c] += sum[c];
        s->square[c] += square[c];
    }
}

void bpt__statistics_restore(bpt__statistics *s, uint64_t records, uint64_t n_pixels,
                             const uint64_t *per_class, const double *mean, const double *std) {
    const double n = (double)n_pixels;
    s->count = records;
    s->n_pixels = n_pixels;
    for (uint32_t i = 0; i < s->n_classes; i++) s->per_class[i] = per_class[i];
    for (size_t c = 0; c < s->C; c++) {
        s->sum[c] = (uint64_t)(mean[c] * 255 * n + .5);
        const double m = (double)s->sum[c] / n, deviation = std[c] * 255;
        s->square[c] = (uint64_t)((deviation * deviation + m * m) * n + .5);
    }
}

void bpt__statistics_finish(const bpt__statistics *s, double *mean, double *std) {
    const double n = (double)s->n_pixels;
    for (size_t c = 0; c < s->C; c++) {
        const double m = (double)s->sum[c] / n;
        const double variance = (double)s->square[c] / n - m * m;
        mean[c] = m / 255;
        std[c] = variance > 0 ? sqrt(variance) / 255 : 0;
    }
}
