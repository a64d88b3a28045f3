/** @file tools/train/data/held_out.h
 * Records of the training split that no rank trains on: what --quality held-out judges weights by.
 *
 * They are drawn by the seed, so that every rank, and a replay, has the same; all else that counts
 * or draws samples of the split speaks of those that are left.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_HELD_OUT_H
#define BPT_TOOLS_HELD_OUT_H

#include "storage/loader/loader.h"
#include "tools/train/options/train_options.h"

/** @param update never AUTO; where it has no use for a quality nothing is held out, nor on one rank
 * @param n_records of the split
 * @return how many are held out, below @p n_records */
uint64_t bpt_held_out(const bpt_train_options *o, bpt_update_choice update, uint32_t n_ranks,
                      uint64_t n_records);

/** Names the records of a split.
 * @param n_held  below @p n_records
 * @param[out] records the first n_held are held out, in the order in which they were drawn; then
 *                     come the others, ascending; shape [n_records], caller owns, bpt_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_held_out_draw(uint64_t seed, uint32_t n_records, uint32_t n_held,
                             uint32_t **records);

/** Turns numbers among the records that are left to train on into numbers of the split.
 * @param records as drawn; NULL where none are held out: nothing changes
 * @param indices shape [n], below n_records - n_held */
void bpt_held_out_skip(const uint32_t *records, uint64_t n_held, uint32_t *indices, size_t n);

/** Lets images be mixed with those alone that are left to train on.
 * @param records likewise; borrowed while the loader lives
 * @param split   that they are of */
void bpt_held_out_skip_partners(const uint32_t *records, uint64_t n_held, const bpt_split *split,
                                bpt_loader_options *loader);

#endif
