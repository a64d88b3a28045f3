#include "inner/memory/sharing.h"

#include "base/memory.h"
#include "inner/memory/buffer_order.h"

#include <stdlib.h>
#include <string.h>

struct bpt_sharing {
    bpt_buffer_pairs apart; /* that may not share */
};

bpt_status bpt_sharing_create(size_t n, bpt_sharing **out) {
    bpt_sharing *s;
    BPT_TRY(BPT_NEW("sharing of buffers", 1, &s));
    const bpt_status status = bpt_buffer_pairs_create(n, &s->apart);
    if (status == BPT_OK)
        *out = s;
    else
        bpt_sharing_free(s);
    return status;
}

void bpt_sharing_free(bpt_sharing *s) {
    if (!s) return;
    bpt_buffer_pairs_free(&s->apart);
    bpt_free(s);
}

bool bpt_sharing_allows(const bpt_sharing *s, size_t a, size_t b) {
    return !bpt_buffer_pairs_get(&s->apart, a, b);
}

/* ---- what the edges order ---- */

/* @param[in,out] used bit b: some task uses it; a row of pairs */
static void mark_used(const bpt_user *users, size_t n_users, uint64_t *used) {
    for (size_t t = 0; t < n_users; t++)
        for (size_t i = 0; i < users[t].n_buffers; i++) {
            const uint32_t b = users[t].buffers[i];
            used[b / 64] |= (uint64_t)1 << b % 64;
        }
}

/* Buffers that are used and not ordered; but one is not apart from itself. */
static void keep_apart(bpt_sharing *s, const bpt_buffer_pairs *ordered, const uint64_t *used) {
    const size_t stride = s->apart.stride;
    for (size_t a = 0; a < s->apart.n; a++) {
        if (!(used[a / 64] >> a % 64 & 1)) continue;
        bpt_buffer_pairs_set(ordered, a, a);
        for (size_t w = 0; w < stride; w++)
            s->apart.bits[a * stride + w] |= used[w] & ~ordered->bits[a * stride + w];
    }
}

bpt_status bpt_sharing_note(bpt_sharing *s, const bpt_user *users, size_t n_users) {
    bpt_buffer_pairs ordered;
    uint64_t *used = NULL;
    bpt_status status = bpt_buffer_pairs_create(s->apart.n, &ordered);
    if (status == BPT_OK) status = BPT_NEW("buffers that are used", ordered.stride, &used);
    if (status == BPT_OK) status = bpt_buffer_order(users, n_users, &ordered);
    if (status == BPT_OK) {
        mark_used(users, n_users, used);
        keep_apart(s, &ordered, used);
    }
    bpt_free(used);
    bpt_buffer_pairs_free(&ordered);
    return status;
}

/* ---- offsets ---- */

typedef struct {
    size_t bytes, buffer;
} sized;

static int compare_sizes(const void *x, const void *y) {
    const sized *a = x, *b = y;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

/* @param line buffers that have their place, by offset; shape [n_line] */
static size_t find_gap(const bpt_sharing *s, const size_t *bytes, const size_t *offsets,
                       const size_t *line, size_t n_line, size_t buffer) {
    size_t end = 0, best = 0, smallest = SIZE_MAX;
    for (size_t i = 0; i < n_line; i++) {
        const size_t other = line[i];
        if (bpt_sharing_allows(s, buffer, other)) continue;
        if (offsets[other] > end && offsets[other] - end >= bytes[buffer] &&
            offsets[other] - end < smallest) {
            smallest = offsets[other] - end;
            best = end;
        }
        if (end < bpt_size_add(offsets[other], bytes[other]))
            end = bpt_size_add(offsets[other], bytes[other]);
    }
    return smallest < SIZE_MAX ? best : end;
}

static void insert(const size_t *offsets, size_t *line, size_t n_line, size_t buffer) {
    size_t i = n_line;
    for (; i > 0 && offsets[line[i - 1]] > offsets[buffer]; i--) line[i] = line[i - 1];
    line[i] = buffer;
}

bpt_status bpt_sharing_place(const bpt_sharing *s, const size_t *bytes, size_t *offsets,
                             size_t *total) {
    sized *order = NULL;
    size_t *line = NULL, n_line = 0, end = 0;
    bpt_status status = BPT_NEW("order of buffers", s->apart.n, &order);
    if (status == BPT_OK) status = BPT_NEW("line of buffers", s->apart.n, &line);
    if (status == BPT_OK) {
        for (size_t i = 0; i < s->apart.n; i++) order[i] = (sized){bytes[i], i};
        qsort(order, s->apart.n, sizeof *order, compare_sizes);
        for (size_t i = 0; i < s->apart.n; i++) {
            const size_t buffer = order[i].buffer;
            offsets[buffer] = find_gap(s, bytes, offsets, line, n_line, buffer);
            insert(offsets, line, n_line++, buffer);
            if (end < bpt_size_add(offsets[buffer], bytes[buffer]))
                end = bpt_size_add(offsets[buffer], bytes[buffer]);
        }
        *total = end;
    }
    bpt_free(line);
    bpt_free(order);
    return status;
}
