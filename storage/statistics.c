#include "storage/statistics.h"

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

void bpt__statistics_add(bpt__statistics *s, const uint8_t *pixels, uint32_t label) {
    /* 2^16 squares of a byte still fit 32 bits, which is what vectorises well. */
    enum { BLOCK = 1 << 16 };
    _Static_assert((uint64_t)255 * 255 * BLOCK <= UINT32_MAX, "a block's sum fits");
    s->count++;
    s->per_class[label]++;
    for (size_t c = 0; c < s->C; c++, pixels += s->plane)
        for (size_t start = 0; start < s->plane; start += BLOCK) {
            const size_t n = s->plane - start < BLOCK ? s->plane - start : BLOCK;
            uint32_t sum = 0, square = 0;
            for (size_t i = 0; i < n; i++) {
                const uint32_t p = pixels[start + i];
                sum += p;
                square += p * p;
            }
            s->sum[c] += sum;
            s->square[c] += square;
        }
}

void bpt__statistics_finish(const bpt__statistics *s, double *mean, double *std) {
    const double n = (double)s->count * (double)s->plane;
    for (size_t c = 0; c < s->C; c++) {
        const double m = (double)s->sum[c] / n;
        const double variance = (double)s->square[c] / n - m * m;
        mean[c] = m / 255;
        std[c] = variance > 0 ? sqrt(variance) / 255 : 0;
    }
}
