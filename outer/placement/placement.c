#include "outer/placement/placement.h"

#include <math.h>

static const double alike = 2.0 / 3;
static const double link_share = 0.5;  /* that exchanges may take of a link without regard to it */
static const double least_cost = 0.02; /* what 1 - 2 f counts as where it is less */
static const double too_small = 0.25;  /* part, of an even one, that is not worth a message */

double bpt_place_planned(uint32_t n_ranks) {
    return n_ranks > 2 ? 2.0 / n_ranks : 1.0;
}

double bpt_place_room(double planned, double left, double whole) {
    const double part = planned + left / 2 / whole; /* the machine has other things to do, too */
    return part < 1 ? part : 1;
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
    double share;
} bounds;

/* @return the rank's part of all speeds */
static double speed_of(const bounds *b, uint32_t r) {
    return b->even ? 1.0 / b->in->n_ranks : b->in->speed[r] / b->speeds;
}

/* @return the part f of all pushes that rank @p r makes */
static double pushes(const bounds *b, uint32_t r) {
    if (b->in->apart) return 0;
    return b->in->in_rounds ? 1.0 / b->in->n_ranks : speed_of(b, r);
}

/* Whether what a rank's part saves of its own pushes counts. */
static bool counts_messages(const bounds *b) {
    return !b->even && !b->in->apart && !b->in->in_rounds && !b->in->guessed;
}

/* @return the most that rank @p r may host, links apart */
static double room(const bounds *b, uint32_t r) {
    const double planned = bpt_place_planned(b->in->n_ranks);
    const double largest = b->in->largest ? b->in->largest[r] : 1;
    return (b->in->in_rounds || b->in->guessed) && largest > planned ? planned : largest;
}

/* @return the most that rank @p r may host */
static double bound(const bounds *b, uint32_t r) {
    const double link = b->in->bytes_per_s ? b->in->bytes_per_s[r] : 0;
    const double own = pushes(b, r); /* f */
    const double largest = room(b, r);
    if (!(link > 0) || own >= 0.5) return largest; /* from a half on, hosting saves messages */
    const double part = (b->share * link / b->in->pushed_bytes_per_s - own) / (1 - 2 * own);
    return part < 0 ? 0 : part < largest ? part : largest;
}

/* @return what parts are to be in proportion to */
static double weight(const bounds *b, uint32_t r) {
    const double f = speed_of(b, r);
    return counts_messages(b) ? f / fmax(1 - 2 * f, least_cost) : f;
}

/* Makes the bounds wide enough for the whole. */
static void widen(bounds *b) {
    const double step = 1.05;
    for (;; b->share *= step) {
        double sum = 0;
        for (uint32_t r = 0; r < b->in->n_ranks; r++) sum += bound(b, r);
        if (sum >= 1 || isinf(b->share)) return;
    }
}

/* Scales the parts below their bounds so that all come to 1.
 * @return whether one has come above its own, and is at it now */
static bool scale(const bounds *b, double *part) {
    double fixed = 0, free = 0;
    bool above = false;
    for (uint32_t r = 0; r < b->in->n_ranks; r++)
        *(part[r] < bound(b, r) ? &free : &fixed) += part[r];
    if (!(free > 0)) return false;
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

/* @return whether a part is too small */
static bool is_small(const bounds *b, double part) {
    return part * b->in->n_ranks < too_small;
}

/* Takes away parts that are too small, where messages count and the others have room for them.
 * @return whether there was one */
static bool drop(const bounds *b, double *part) {
    double others = 0; /* may host so much */
    bool dropped = false;
    if (!counts_messages(b)) return false;
    for (uint32_t r = 0; r < b->in->n_ranks; r++)
        if (!is_small(b, part[r])) others += bound(b, r);
    for (uint32_t r = 0; r < b->in->n_ranks && others >= 1; r++) {
        dropped = dropped || (part[r] > 0 && is_small(b, part[r]));
        if (is_small(b, part[r])) part[r] = 0;
    }
    return dropped;
}

void bpt_place_shards(const bpt_place_inputs *in, double *part) {
    const uint32_t n = in->n_ranks;
    bounds b = {in, are_alike(in->speed, n), sum_of(in->speed, n), link_share};
    double sum = 0;
    widen(&b);
    for (uint32_t r = 0; r < n; r++) sum += weight(&b, r);
    for (uint32_t r = 0; r < n; r++) part[r] = fmin(weight(&b, r) / sum, bound(&b, r));
    do
        while (scale(&b, part)) continue;
    while (drop(&b, part));
}
