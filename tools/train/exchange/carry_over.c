#include "tools/train/exchange/carry_over.h"

#include "outer/rules/update_rule.h"

#include <string.h>

void bpt_carry_over(const bpt_carry *c, float *local, const float *pushed, const float *global,
                    size_t n) {
    const bool elastic = c->elasticity > 0 && !c->met;
    if (!c->own) memcpy(local, elastic ? pushed : global, n * sizeof *local);
    if (elastic)
        bpt_easgd_pull(local, pushed, global, c->elasticity, n);
    else if (c->own)
        for (size_t i = 0; i < n; i++) local[i] += global[i] - pushed[i];
}
