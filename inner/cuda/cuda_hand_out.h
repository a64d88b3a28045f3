/** @file inner/cuda/cuda_hand_out.h
 * Gradients that go to the host part by part (bpt_network_hand_out()) while others are computed.
 *
 * The work that computes them is cut into pieces of tasks. Behind a piece some parts are whole;
 * they are copied on a stream of its own, while the next piece computes.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_HAND_OUT_H
#define BPT_INNER_CUDA_CUDA_HAND_OUT_H

#include "inner/cuda/cuda_network.h"

/** @param parts .begin is read by this call alone, the rest is borrowed
 * @param[out] out caller owns, bpt_cuda_hand_out_free(), before what it has borrowed is gone
 * @return BPT_OK, BPT_ENOMEM, BPT_EFULL, BPT_EBACKEND */
bpt_status bpt_cuda_hand_out_create(const bpt_device_network *net, const bpt_gradient_parts *parts,
                                    bpt_cuda_hand_out **out);
void bpt_cuda_hand_out_free(bpt_cuda_hand_out *hand_out);

/** @return pieces, at least 1, and the first task behind one of them */
size_t bpt_cuda_hand_out_pieces(const bpt_cuda_hand_out *hand_out);
size_t bpt_cuda_hand_out_end(const bpt_cuda_hand_out *hand_out, size_t piece);

/** Puts the copies behind a piece, which is what the network's stream has last. Nothing waits.
 * @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_cuda_hand_out_copy(const bpt_device_network *net, bpt_cuda_hand_out *hand_out,
                                  size_t piece);

/** Waits for the copies behind all pieces, and says of each part that it is there as soon as it is;
 * of none, where the loss is not finite or a label is not one. @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_cuda_hand_out_take(bpt_cuda_hand_out *hand_out);

/** Waits until nothing of it is under way. */
void bpt_cuda_hand_out_drain(bpt_cuda_hand_out *hand_out);

#endif
