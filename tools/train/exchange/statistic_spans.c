#include "tools/train/exchange/statistic_spans.h"

#include "base/memory.h"

bpt_status bpt_statistic_spans(const bpt_segments *segments, bpt_span **spans, size_t *n) {
    size_t capacity = 0;
    *spans = NULL;
    *n = 0;
    for (size_t i = 0; i < segments->n; i++) {
        const bpt_segment *s = &segments->items[i];
        if (!(s->role.running > 0)) continue;
        if (*n > 0 && (*spans)[*n - 1].end == s->offset) {
            (*spans)[*n - 1].end += s->count;
            continue;
        }
        const bpt_status status = BPT_GROW("spans of statistics", *n + 1, spans, &capacity);
        if (status != BPT_OK) {
            bpt_free(*spans);
            *spans = NULL;
            return status;
        }
        (*spans)[(*n)++] = (bpt_span){s->offset, s->offset + s->count};
    }
    return BPT_OK;
}
