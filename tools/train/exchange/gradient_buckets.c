#include "tools/train/exchange/gradient_buckets.h"

static void reverse(size_t *x, uint32_t n) {
    for (uint32_t i = 0; i < n / 2; i++) {
        const size_t swap = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = swap;
    }
}

uint32_t bpt_gradient_buckets_cut(const bpt_segments *segments, size_t first, size_t *begin) {
    const size_t frozen = segments->items[first].offset;
    uint32_t n = 0;
    begin[0] = segments->n_elements - frozen;
    for (size_t s = segments->n; s-- > first;) {
        const size_t here = segments->items[s].offset - frozen;
        if (s > first && begin[n] - here < BPT_BUCKET_FLOATS) continue;
        begin[++n] = here;
    }
    reverse(begin, n + 1);
    return n;
}

uint32_t bpt_gradient_buckets_most(size_t n_elements) {
    return (uint32_t)(n_elements / BPT_BUCKET_FLOATS + 1);
}
