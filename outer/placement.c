#include "outer/placement.h"

#include <stddef.h>

static const double alike = 2.0 / 3;
static const double link_share = 0.5; /* that exchanges may take of a link without regard to it */

double bpt_place_largest(uint32_t n_ranks) {
    return n_ranks > 2 ? 2.0 / n_ranks : 1.0;
}

static bool are_alike(const double *speed, uint32_t n) {
    double least = speed[0], most = speed[0];
    for (uint32_t r = 1; r < n; r++) {
        if (speed[r] < least) least = speed[r];
        if (speed[r] > most) most = speed[r];
    }
    return least >= alike * most;
}

static double sum_of(const double *x, uint32_t n) {
    double sum = 0;
    for (uint32_t r = 0; r < n; r++) sum += x[r];
    return sum;
}

/* Bounds of parts: what keeps links within a share of their time, which is the same for all. */
typedef struct bounds {
    const bpt_place_inputs *in;
    bool even;     /* speeds are alike: what they differ by is noise */
    double speeds; /* their sum */
    double largest;
    double share;
} bounds;

/* @return the part f of all pushes that rank @p r makes */
static double own_pushes(const bounds *b, uint32_t r) {
    return b->even ? 1.0 / b->in->n_ranks : b->in->speed[r] / b->speeds;
}

/* @return the most that rank @p r may host */
static double bound(const bounds *b, uint32_t r) {
    const double link = b->in->bytes_per_s ? b->in->bytes_per_s[r] : 0;
    const double own = b->in->apart ? 0 : own_pushes(b, r); /* f */
    if (!(link > 0) || own >= 0.5) return b->largest; /* from a half on, hosting saves messages */
    const double part = (b->share * link / b->in->pushed_bytes_per_s - own) / (1 - 2 * own);
    return part < 0 ? 0 : part < b->largest ? part : b->largest;
}

/* Makes the bounds wide enough for the whole. */
static void widen(bounds *b) {
    const double step = 1.05;
    for (;; b->share *= step) {
        double sum = 0;
        for (uint32_t r = 0; r < b->in->n_ranks; r++) sum += bound(b, r);
        if (sum >= 1) return;
    }
}

/* Scales the parts below their bounds so that all come to 1.
 * @return whether one has come above its own, and is at it now */
static bool scale(const bounds *b, double *part) {
    double fixed = 0, free = 0;
    bool above = false;
    for (uint32_t r = 0; r < b->in->n_ranks; r++)
        *(part[r] < bound(b, r) ? &free : &fixed) += part[r];
    for (uint32_t r = 0; r < b->in->n_ranks; r++) {
        const double most = bound(b, r);
        if (part[r] >= most) continue;
        part[r] *= (1 - fixed) / free;
        if (part[r] <= most) continue;
        part[r] = most;
        above = true;
    }
    return above;
}

void bpt_place_shards(const bpt_place_inputs *in, double *part) {
    const uint32_t n = in->n_ranks;
    bounds b = {in, are_alike(in->speed, n), sum_of(in->speed, n), bpt_place_largest(n),
                link_share};
    widen(&b);
    for (uint32_t r = 0; r < n; r++) {
        const double most = bound(&b, r);
        part[r] = own_pushes(&b, r) < most ? own_pushes(&b, r) : most;
    }
    while (scale(&b, part)) continue;
}
