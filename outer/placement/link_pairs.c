#include "outer/placement/link_pairs.h"

/* Hosts are numbered in the order of their lowest ranks.
 * @return how many have theirs below @p end */
static uint32_t hosts_below(const uint32_t *first, uint32_t end) {
    uint32_t n = 0;
    for (uint32_t r = 0; r < end; r++) n += first[r] == r;
    return n;
}

static uint32_t lowest_rank(const uint32_t *first, uint32_t host) {
    uint32_t r = 0;
    for (uint32_t left = host + 1; left > 0; r++) left -= first[r] == r;
    return r - 1;
}

uint32_t bpt__link_rounds(const uint32_t *first, uint32_t n_ranks) {
    const uint32_t n = hosts_below(first, n_ranks);
    if (n < 2) return 0;
    return n < BPT__LINK_ROUNDS ? n : BPT__LINK_ROUNDS;
}

/* The circle method: in round k host a meets host k - a, and is on its own where that is a. */
uint32_t bpt__link_partner(const uint32_t *first, uint32_t n_ranks, uint32_t round, uint32_t rank) {
    if (first[rank] != rank) return rank;
    const uint32_t n = hosts_below(first, n_ranks), host = hosts_below(first, rank);
    return lowest_rank(first, (round + n - host) % n);
}

void bpt__link_share(const uint32_t *first, uint32_t n_ranks, double *bytes_per_s) {
    for (uint32_t lowest = 0; lowest < n_ranks; lowest++) {
        uint32_t sharers = 0;
        if (first[lowest] != lowest) continue;
        for (uint32_t r = lowest; r < n_ranks; r++) sharers += first[r] == lowest;
        const double each = bytes_per_s[lowest] / sharers;
        for (uint32_t r = lowest; r < n_ranks; r++)
            if (first[r] == lowest) bytes_per_s[r] = each;
    }
}
