#include "inner/segments.h"

#include "base/memory.h"
#include "base/random.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

/* Together with the bound on activations (model.c) this keeps every count of operations below
 * 2^63, and a flat vector below what one MPI call can carry. */
static const size_t MAX_ELEMENTS = (size_t)1 << 30;

bpt_status bpt_segments_add(bpt_segments *s, const char *name, const int64_t *dims, int n_dims,
                            bpt_segment_role role) {
    assert(n_dims >= 1 && n_dims <= BPT_MAX_DIMS);
    bpt_segment segment = {.offset = s->n_elements, .count = 1, .n_dims = n_dims, .role = role};
    for (int d = 0; d < n_dims; d++) {
        assert(dims[d] >= 1);
        segment.dims[d] = dims[d];
        if (__builtin_mul_overflow(segment.count, (size_t)dims[d], &segment.count) ||
            segment.count > MAX_ELEMENTS - s->n_elements)
            return bpt_fail(BPT_EUSAGE, "with %s the model has more than %zu weights", name,
                            MAX_ELEMENTS);
    }
    snprintf(segment.name, sizeof segment.name, "%s", name);
    BPT_TRY(BPT_GROW("table of weights", s->n + 1, &s->items, &s->capacity));
    s->items[s->n++] = segment;
    s->n_elements += segment.count;
    return BPT_OK;
}

void bpt_segments_clear(bpt_segments *s) {
    bpt_free(s->items);
    *s = (bpt_segments){0};
}

void bpt_segments_initialise(const bpt_segments *s, uint64_t seed, float *weights) {
    for (size_t i = 0; i < s->n; i++) {
        const bpt_segment *segment = &s->items[i];
        float *values = weights + segment->offset;
        if (segment->role.fan_in == 0) {
            for (size_t j = 0; j < segment->count; j++) values[j] = segment->role.initial;
            continue;
        }
        const float deviation = sqrtf(2.0f / (float)segment->role.fan_in);
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_INIT, i);
        for (size_t j = 0; j < segment->count; j++) values[j] = deviation * bpt_random_normal(&r);
    }
}
