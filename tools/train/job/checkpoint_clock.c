#include "tools/train/job/checkpoint_clock.h"

static const uint64_t least_times = 100; /* what one takes, between two */

bpt_checkpoint_clock bpt_checkpoint_clock_begin(double minutes, uint64_t now_ns) {
    bpt_checkpoint_clock c = {.every_ns = (uint64_t)(minutes * 60e9)};
    bpt_checkpoint_clock_put_off(&c, now_ns, 0);
    return c;
}

bool bpt_checkpoint_clock_due(const bpt_checkpoint_clock *c, uint64_t now_ns) {
    return c->every_ns > 0 && now_ns >= c->due_ns;
}

void bpt_checkpoint_clock_put_off(bpt_checkpoint_clock *c, uint64_t now_ns, uint64_t took_ns) {
    const uint64_t affordable = least_times * took_ns;
    c->due_ns = now_ns + (affordable > c->every_ns ? affordable : c->every_ns);
}
