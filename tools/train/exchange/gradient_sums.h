/** @file tools/train/exchange/gradient_sums.h
 * Gradients summed over the ranks while the backward pass goes on: the weights in buckets of whole
 * segments, the last layers' first (outer/exchange/reduction.h).
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_GRADIENT_SUMS_H
#define BPT_TOOLS_GRADIENT_SUMS_H

#include "inner/models/model.h"
#include "inner/network/network.h"
#include "outer/exchange/reduction.h"

typedef struct bpt_gradient_sums bpt_gradient_sums;

/** @return bytes that the sums of a model's gradients take on a rank */
size_t bpt_gradient_sums_bytes(const bpt_model *model, uint32_t n_ranks);

/** Makes them; collective.
 * @param comm borrowed
 * @param network borrowed; hands out its gradients from then on, so it is freed before the sums are
 * closed
 * @param model of the network
 * @param[out] sums caller owns, bpt_gradient_sums_close(), also on error
 * @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE, BPT_EFULL, BPT_EBACKEND, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_gradient_sums_open(bpt_comm *comm, const bpt_model *model, bpt_network *network,
                                  bpt_gradient_sums **sums);

/** Collective; every step that was begun has been waited for. A rank by itself may also close after
 * an error in the middle of a step. NULL is allowed. */
void bpt_gradient_sums_close(bpt_gradient_sums *sums);

/** Before gradients are computed. */
void bpt_gradient_sums_begin(bpt_gradient_sums *sums);

/** Waits for the sums of the gradients that were computed since, and sets them in the network.
 * @return BPT_OK, BPT_ECOMM, BPT_EBACKEND */
bpt_status bpt_gradient_sums_wait(bpt_gradient_sums *sums);

/** @return what has been sent and received */
bpt_reduction_stats bpt_gradient_sums_stats(const bpt_gradient_sums *sums);

#endif
