#include "outer/data/holdings.h"

#include "base/memory.h"

static uint64_t length(bpt__span span) {
    return span.end - span.begin;
}

static bpt_status add(bpt__spans *to, bpt__span span) {
    if (to->n > 0 && to->span[to->n - 1].end == span.begin) {
        to->span[to->n - 1].end = span.end;
        return BPT_OK;
    }
    BPT_TRY(BPT_GROW("samples of a rank", to->n + 1, &to->span, &to->capacity));
    to->span[to->n++] = span;
    return BPT_OK;
}

/* The last n positions, the latest span first. */
static bpt_status give(bpt__spans *from, uint64_t n, bpt__spans *pool) {
    while (n > 0) {
        bpt__span *last = &from->span[from->n - 1];
        const uint64_t part = n < length(*last) ? n : length(*last);
        BPT_TRY(add(pool, (bpt__span){last->end - part, last->end}));
        last->end -= part;
        if (length(*last) == 0) from->n--;
        n -= part;
    }
    return BPT_OK;
}

/* The next n positions of the pool, from span *at on. */
static bpt_status take(bpt__spans *to, uint64_t n, bpt__spans *pool, size_t *at) {
    while (n > 0) {
        bpt__span *next = &pool->span[*at];
        const uint64_t part = n < length(*next) ? n : length(*next);
        BPT_TRY(add(to, (bpt__span){next->begin, next->begin + part}));
        next->begin += part;
        if (length(*next) == 0) ++*at;
        n -= part;
    }
    return BPT_OK;
}

bpt_status bpt__holdings_create(uint32_t n_ranks, bpt__holdings **out) {
    bpt__holdings *h = NULL;
    BPT_TRY(BPT_NEW("holdings", 1, &h));
    h->n_ranks = n_ranks;
    bpt_status status = BPT_NEW("samples held", n_ranks, &h->held);
    if (status == BPT_OK) status = BPT_NEW("samples of ranks", n_ranks, &h->of);
    if (status == BPT_OK)
        *out = h;
    else
        bpt__holdings_free(h);
    return status;
}

void bpt__holdings_free(bpt__holdings *h) {
    if (!h) return;
    for (uint32_t r = 0; h->of && r < h->n_ranks; r++) bpt_free(h->of[r].span);
    bpt_free(h->pool.span);
    bpt_free(h->of);
    bpt_free(h->held);
    bpt_free(h);
}

bpt_status bpt__holdings_become(bpt__holdings *h, const uint32_t *held) {
    uint64_t total = 0;
    size_t at = 0;
    h->pool.n = 0;
    for (uint32_t r = 0; r < h->n_ranks; r++) {
        total += held[r];
        if (held[r] < h->held[r]) BPT_TRY(give(&h->of[r], h->held[r] - held[r], &h->pool));
    }
    if (total > h->total) BPT_TRY(add(&h->pool, (bpt__span){h->total, total}));
    for (uint32_t r = 0; r < h->n_ranks; r++)
        if (held[r] > h->held[r]) BPT_TRY(take(&h->of[r], held[r] - h->held[r], &h->pool, &at));
    for (uint32_t r = 0; r < h->n_ranks; r++) h->held[r] = held[r];
    h->total = total;
    return BPT_OK;
}
