#include "outer/rules/merge_delta.h"

#include "outer/rules/apply_change.h"
#include "outer/rules/compensate.h"

static void merge_plainly(const bpt_merge *m) {
    float *const global = m->global;
    const float *const part = m->parts[0]; /* the only one: its sender is answered at once */
    const float factor = m->factors[0];
    for (size_t i = m->begin; i < m->end; i++) global[i] += factor * part[i];
}

/* In blocks that stay in cache. Without any term the bits are those of the above. */
void bpt__merge_delta(const bpt_merge *m) {
    enum { BLOCK = 1024 };
    const float factor = m->factors[0];
    float change[BLOCK];
    if (!m->velocity && !m->base) {
        merge_plainly(m);
        return;
    }
    for (size_t begin = m->begin; begin < m->end; begin += BLOCK) {
        const size_t n = m->end - begin < BLOCK ? m->end - begin : BLOCK;
        const float *delta = m->parts[0] + begin;
        if (m->base) {
            bpt__compensate(m, begin, change, n);
            delta = change;
        }
        for (size_t i = 0; i < n; i++) change[i] = factor * delta[i];
        bpt__apply_change(m, begin, change, n);
    }
}
