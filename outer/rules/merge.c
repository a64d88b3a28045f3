#include "outer/rules/merge.h"

static void merge_range(const bpt_update_rule *rule, bpt_merge m, size_t begin, size_t end) {
    m.begin = begin;
    m.end = end;
    if (begin < end) rule->merge(&m);
}

/* An element of the vector among those of the arrays; at their nearest border if it is outside. */
static size_t cut(const bpt_merge *m, size_t first, size_t element) {
    const size_t i = element > first ? element - first : 0;
    return i < m->begin ? m->begin : i > m->end ? m->end : i;
}

void bpt_merge_part(const bpt_update_rule *rule, const bpt_merge *m, size_t first,
                    bpt_statistics statistics) {
    bpt_merge plain = *m;
    plain.velocity = NULL;
    plain.base = NULL;
    const size_t n_apart = m->velocity || m->base ? statistics.n : 0;
    size_t at = m->begin;
    for (size_t s = 0; s < n_apart; s++) {
        const size_t begin = cut(m, first, statistics.spans[s].begin);
        const size_t end = cut(m, first, statistics.spans[s].end);
        merge_range(rule, *m, at, begin);
        merge_range(rule, plain, begin, end);
        at = end;
    }
    merge_range(rule, *m, at, m->end);
}
