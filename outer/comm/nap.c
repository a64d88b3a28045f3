#include "outer/comm/nap.h"

#define WINDOW_NS   100000000u
#define LEAST_SHARE 0.125

typedef struct pace {
    uint64_t min_ns, max_ns;
    uint64_t divisor; /* of the quiet time */
} pace;

static const pace paces[] = {
    [BPT__CALM] = {.min_ns = 1000000, .max_ns = 4000000, .divisor = 1},
    [BPT__EXPECTING] = {.min_ns = 20000, .max_ns = 4000000, .divisor = 8},
    [BPT__HURRIED] = {.min_ns = 20000, .max_ns = 200000, .divisor = 8},
};

void bpt__lateness_add(bpt__lateness *l, uint64_t asked_ns, uint64_t took_ns) {
    l->asked_ns += asked_ns;
    l->took_ns += took_ns;
    if (l->took_ns < WINDOW_NS) return;
    const double share = (double)l->asked_ns / (double)l->took_ns;
    *l = (bpt__lateness){.share = share < 1 ? share : 1};
}

/* How many times as long as that of a whole core. */
static double stretch(const bpt__lateness *l) {
    if (l->share == 0) return 1;
    return 1 / (l->share < LEAST_SHARE ? LEAST_SHARE : l->share);
}

uint64_t bpt__nap_ns(uint64_t quiet_ns, enum bpt__haste haste, const bpt__lateness *l) {
    const pace *p = &paces[haste];
    uint64_t nap_ns = quiet_ns / p->divisor;
    if (nap_ns < p->min_ns) nap_ns = p->min_ns;
    if (nap_ns > p->max_ns) nap_ns = p->max_ns;
    return haste == BPT__CALM ? (uint64_t)((double)nap_ns * stretch(l)) : nap_ns;
}
