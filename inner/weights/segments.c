#include "inner/weights/segments.h"

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
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_INIT, s->n_before + i);
        bpt_random_normals(&r, values, segment->count);
        for (size_t j = 0; j < segment->count; j++) values[j] *= deviation;
    }
}

/* @return why a value of a segment cannot be one, NULL if it can */
static const char *find_fault(const bpt_segment *segment, float value) {
    if (!isfinite(value)) return "not a finite number";
    return segment->role.variance && value < 0.0f ? "a variance below 0" : NULL;
}

bpt_status bpt_segments_check(const bpt_segments *s, const char *path, const float *weights) {
    for (size_t i = 0; i < s->n; i++) {
        const bpt_segment *segment = &s->items[i];
        for (size_t j = 0; j < segment->count; j++) {
            const float value = weights[segment->offset + j];
            const char *fault = find_fault(segment, value);
            if (!fault) continue;
            const bpt_status status =
                bpt_fail(BPT_EDATA, "%s: tensor %s: value %zu of %zu is %g, %s", path,
                         segment->name, j + 1, segment->count, (double)value, fault);
            if (isfinite(value))
                bpt_hint(
                    "a checkpoint of agwu or sgwu may hold one, the weights at the end of a "
                    "run never: take these");
            else
                bpt_hint("the file is damaged, or its training went wrong: take another one");
            return status;
        }
    }
    return BPT_OK;
}

void bpt_segments_settle(const bpt_segments *s, float *weights) {
    for (size_t i = 0; i < s->n; i++) {
        const bpt_segment *segment = &s->items[i];
        float *values = weights + segment->offset;
        for (size_t j = 0; segment->role.variance && j < segment->count; j++)
            if (values[j] < 0.0f) values[j] = 0.0f;
    }
}
