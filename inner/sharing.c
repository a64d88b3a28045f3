#include "inner/sharing.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64, GROUP_BITS = 512 };

struct bpt_sharing {
    size_t n, stride; /* buffers; words of a row */
    uint64_t *apart;  /* bit b of row a: they may not share; shape [n, stride] */
};

static void set_bit(uint64_t *words, size_t i) {
    words[i / WORD_BITS] |= (uint64_t)1 << i % WORD_BITS;
}

static bool get_bit(const uint64_t *words, size_t i) {
    return words[i / WORD_BITS] >> i % WORD_BITS & 1;
}

static bool all_set(const uint64_t *words, size_t first, size_t n) {
    for (size_t i = first, end = first + n, next; i < end; i = next) {
        const uint64_t from_i = UINT64_MAX << i % WORD_BITS;
        next = i - i % WORD_BITS + WORD_BITS;
        const uint64_t to_end = next > end ? UINT64_MAX >> (next - end) : UINT64_MAX;
        if (~words[i / WORD_BITS] & from_i & to_end) return false;
    }
    return true;
}

static bool none_set(const uint64_t *words, size_t n_words) {
    uint64_t any = 0;
    for (size_t w = 0; w < n_words; w++) any |= words[w];
    return any == 0;
}

bpt_status bpt_sharing_create(size_t n, bpt_sharing **out) {
    bpt_sharing *s;
    size_t n_words;
    const size_t stride = (n + WORD_BITS - 1) / WORD_BITS;
    BPT_TRY(bpt_size_multiply(n, stride, &n_words));
    BPT_TRY(BPT_NEW("sharing of buffers", 1, &s));
    *s = (bpt_sharing){.n = n, .stride = stride};
    const bpt_status status = BPT_NEW("sharing of buffers", n_words, &s->apart);
    if (status == BPT_OK)
        *out = s;
    else
        bpt_sharing_free(s);
    return status;
}

void bpt_sharing_free(bpt_sharing *s) {
    if (!s) return;
    bpt_free(s->apart);
    bpt_free(s);
}

bool bpt_sharing_allows(const bpt_sharing *s, size_t a, size_t b) {
    return !get_bit(s->apart + a * s->stride, b);
}

/* ---- what the edges order ---- */

/* A graph while it is looked at. Buffers are taken some at a time, as many as have GROUP_BITS uses
 * together, or one that has more: a use is a bit, and bits flow along the edges. Where all bits of
 * a buffer have reached every user of another, it is over before that one begins. */
typedef struct {
    const bpt_user *users; /* shape [n_users] */
    size_t n_users, n;     /* n: buffers */
    size_t *first_use;     /* of each buffer, in `uses`; shape [n + 2] */
    uint32_t *uses;        /* tasks, by buffer */
    size_t n_words;        /* of the largest group */
    uint64_t *own;         /* bits that begin at a task, shape [n_users, n_words] */
    uint64_t *reached;     /* bits that have reached it, its own too; likewise */
    uint64_t *all;         /* bits that have reached all users of a buffer, shape [n, n_words] */
    uint64_t *used;        /* bit b: some task uses it; shape [stride] */
    uint64_t *ordered;     /* bit b of row a: one is over before the other; as bpt_sharing.apart */
} graph;

static size_t n_uses(const graph *g, size_t buffer) {
    return g->first_use[buffer + 1] - g->first_use[buffer];
}

static void list_uses(graph *g) {
    for (size_t t = 0; t < g->n_users; t++)
        for (size_t i = 0; i < g->users[t].n_buffers; i++)
            g->first_use[g->users[t].buffers[i] + 2]++;
    for (size_t b = 0; b <= g->n; b++) g->first_use[b + 1] += g->first_use[b];
    for (size_t t = 0; t < g->n_users; t++) /* moves the begin of each row to that of the next */
        for (size_t i = 0; i < g->users[t].n_buffers; i++)
            g->uses[g->first_use[g->users[t].buffers[i] + 1]++] = (uint32_t)t;
}

static void flow(const graph *g, size_t n_words) {
    memset(g->all, 0xff, g->n * n_words * sizeof *g->all);
    for (size_t t = 0; t < g->n_users; t++) {
        const bpt_user *u = &g->users[t];
        uint64_t *reached = g->reached + t * n_words;
        memset(reached, 0, n_words * sizeof *reached);
        for (size_t i = 0; i < u->n_after; i++)
            for (size_t w = 0; w < n_words; w++)
                reached[w] |= g->reached[u->after[i] * n_words + w];
        for (size_t i = 0; i < u->n_buffers; i++)
            for (size_t w = 0; w < n_words; w++) g->all[u->buffers[i] * n_words + w] &= reached[w];
        for (size_t w = 0; w < n_words; w++) reached[w] |= g->own[t * n_words + w];
    }
}

/* Buffers [first, end). */
static void look_at(const graph *g, size_t stride, size_t first, size_t end) {
    const size_t begin = g->first_use[first], n_bits = g->first_use[end] - begin;
    const size_t n_words = (n_bits + WORD_BITS - 1) / WORD_BITS;
    memset(g->own, 0, g->n_users * n_words * sizeof *g->own);
    for (size_t bit = 0; bit < n_bits; bit++) set_bit(g->own + g->uses[begin + bit] * n_words, bit);
    flow(g, n_words);
    for (size_t b = 0; b < g->n; b++) {
        const uint64_t *all = g->all + b * n_words;
        /* As a rule b is earlier than all of the group, or later. */
        if (none_set(all, n_words)) continue;
        const bool whole = all_set(all, 0, n_bits);
        for (size_t a = first; a < end; a++)
            if (whole || all_set(all, g->first_use[a] - begin, n_uses(g, a))) {
                set_bit(g->ordered + a * stride, b);
                set_bit(g->ordered + b * stride, a);
            }
    }
}

static size_t end_of_group(const graph *g, size_t first) {
    size_t end = first + 1;
    while (end < g->n && g->first_use[end + 1] - g->first_use[first] <= GROUP_BITS) end++;
    return end;
}

static bpt_status allocate(graph *g, size_t stride) {
    size_t total = 0, largest = GROUP_BITS;
    for (size_t t = 0; t < g->n_users; t++) total += g->users[t].n_buffers;
    BPT_TRY(BPT_NEW("uses of buffers", g->n + 2, &g->first_use));
    BPT_TRY(BPT_NEW("uses of buffers", total, &g->uses));
    list_uses(g);
    for (size_t b = 0; b < g->n; b++)
        if (n_uses(g, b) > largest) largest = n_uses(g, b);
    BPT_TRY(BPT_NEW("buffers that are used", stride, &g->used));
    for (size_t b = 0; b < g->n; b++)
        if (n_uses(g, b) > 0) set_bit(g->used, b);
    g->n_words = (largest + WORD_BITS - 1) / WORD_BITS;
    BPT_TRY(BPT_NEW("uses that begin", g->n_users * g->n_words, &g->own));
    BPT_TRY(BPT_NEW("uses that are over", g->n_users * g->n_words, &g->reached));
    BPT_TRY(BPT_NEW("uses that are over", g->n * g->n_words, &g->all));
    return BPT_NEW("order of buffers", g->n * stride, &g->ordered);
}

/* Buffers that are used and not ordered; but one is not apart from itself. */
static void keep_apart(const graph *g, bpt_sharing *s) {
    for (size_t a = 0; a < s->n; a++) {
        if (n_uses(g, a) == 0) continue;
        uint64_t *ordered = g->ordered + a * s->stride;
        set_bit(ordered, a);
        for (size_t w = 0; w < s->stride; w++)
            s->apart[a * s->stride + w] |= g->used[w] & ~ordered[w];
    }
}

bpt_status bpt_sharing_note(bpt_sharing *s, const bpt_user *users, size_t n_users) {
    graph g = {.users = users, .n_users = n_users, .n = s->n};
    const bpt_status status = allocate(&g, s->stride);
    if (status == BPT_OK) {
        for (size_t first = 0, end; first < g.n; first = end) {
            end = end_of_group(&g, first);
            look_at(&g, s->stride, first, end);
        }
        keep_apart(&g, s);
    }
    bpt_free(g.ordered);
    bpt_free(g.used);
    bpt_free(g.all);
    bpt_free(g.reached);
    bpt_free(g.own);
    bpt_free(g.uses);
    bpt_free(g.first_use);
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
    bpt_status status = BPT_NEW("order of buffers", s->n, &order);
    if (status == BPT_OK) status = BPT_NEW("line of buffers", s->n, &line);
    if (status == BPT_OK) {
        for (size_t i = 0; i < s->n; i++) order[i] = (sized){bytes[i], i};
        qsort(order, s->n, sizeof *order, compare_sizes);
        for (size_t i = 0; i < s->n; i++) {
            const size_t buffer = order[i].buffer;
            offsets[buffer] = bytes[buffer] ? find_gap(s, bytes, offsets, line, n_line, buffer) : 0;
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
