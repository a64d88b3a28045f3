#include "outer/placement.h"

#include <stdbool.h>

static const double alike = 2.0 / 3;

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

/* Scales the parts below @p largest so that all come to 1.
 * @return whether one has come above it */
static bool scale(double *part, uint32_t n, double largest) {
    double fixed = 0, free = 0;
    bool above = false;
    for (uint32_t r = 0; r < n; r++) *(part[r] < largest ? &free : &fixed) += part[r];
    for (uint32_t r = 0; r < n; r++) {
        if (part[r] >= largest) continue;
        part[r] *= (1 - fixed) / free;
        if (part[r] <= largest) continue;
        part[r] = largest;
        above = true;
    }
    return above;
}

void bpt_place_shards(const double *speed, uint32_t n_ranks, double *part) {
    const double largest = bpt_place_largest(n_ranks);
    const bool even = are_alike(speed, n_ranks);
    double sum = 0;
    for (uint32_t r = 0; r < n_ranks; r++) sum += speed[r];
    for (uint32_t r = 0; r < n_ranks; r++) part[r] = even ? 1.0 / n_ranks : speed[r] / sum;
    for (uint32_t r = 0; r < n_ranks; r++)
        if (part[r] > largest) part[r] = largest;
    while (scale(part, n_ranks, largest)) continue;
}
