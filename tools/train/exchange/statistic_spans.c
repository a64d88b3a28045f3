#include "tools/train/exchange/statistic_spans.h"

#include "base/memory.h"

bpt_status bpt_statistic_spans(const bpt_model *model, bpt_span **spans, size_t *n) {
    const size_t frozen = bpt_model_frozen_elements(model);
    size_t capacity = 0;
    *spans = NULL;
    *n = 0;
    for (size_t i = bpt_model_frozen_segments(model); i < model->segments.n; i++) {
        const bpt_segment *s = &model->segments.items[i];
        const size_t begin = s->offset - frozen;
        if (!(s->role.running > 0)) continue;
        if (*n > 0 && (*spans)[*n - 1].end == begin) {
            (*spans)[*n - 1].end += s->count;
            continue;
        }
        const bpt_status status = BPT_GROW("spans of statistics", *n + 1, spans, &capacity);
        if (status != BPT_OK) {
            bpt_free(*spans);
            *spans = NULL;
            return status;
        }
        (*spans)[(*n)++] = (bpt_span){begin, begin + s->count};
    }
    return BPT_OK;
}
