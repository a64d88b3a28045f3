/** @file outer/placement/link_pairs.h
 * Inside of outer/: which hosts measure the link between them, and what follows for ranks: pure
 * rules.
 *
 * A pair of hosts is as fast as the slower of its two links, so what counts for a host is its
 * fastest pair, and it has to be in several: a host that met slow ones alone would pass for slow.
 * In a round each host is in one pair at most. Hosts are told by their lowest ranks, which measure
 * for all on the host.
 *
 * Threads: any. */
#ifndef BPT_OUTER_LINK_PAIRS_H
#define BPT_OUTER_LINK_PAIRS_H

#include <stdint.h>

enum { BPT__LINK_ROUNDS = 5 }; /* at most */

/** @param first lowest rank on the host of each rank, shape [n_ranks]
 * @return rounds in which every host meets all others, or BPT__LINK_ROUNDS - 1 of them at least; 0
 * where there is one host */
uint32_t bpt__link_rounds(const uint32_t *first, uint32_t n_ranks);

/** @param round in [0, bpt__link_rounds()); no two hosts meet in two of them
 * @return the rank that @p rank measures with, whose partner is @p rank; @p rank itself: none */
uint32_t bpt__link_partner(const uint32_t *first, uint32_t n_ranks, uint32_t round, uint32_t rank);

/** Gives each rank an even part of what its host's link carries, since they share it.
 * @param[in,out] bytes_per_s in: the fastest pair of each host, where its lowest rank is; shape
 * [n_ranks] */
void bpt__link_share(const uint32_t *first, uint32_t n_ranks, double *bytes_per_s);

#endif
