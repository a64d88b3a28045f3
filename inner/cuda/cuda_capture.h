/** @file inner/cuda/cuda_capture.h
 * Runs a network's works: the first time task by task, later as a CUDA graph, or as several where
 * gradients are handed out (cuda_hand_out.h).
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_CAPTURE_H
#define BPT_INNER_CUDA_CUDA_CAPTURE_H

#include "inner/cuda/cuda_network.h"

/** Makes room for what is captured. @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_cuda_captured_create(bpt_cuda_captured **captured);
void bpt_cuda_captured_free(bpt_cuda_captured *captured);

/** Has a work captured anew, as so many graphs: pieces of bpt_cuda_hand_out.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_cuda_captured_cut(bpt_cuda_captured *captured, bpt_device_work work, size_t n);

/** Puts a work on the network's stream: what the host has given, its tasks, the outcome to the
 * host; and behind its pieces what is handed out, on a stream of its own. Its first run loads the
 * kernels; a training step's second one is measured task by task (it has ended then). @return
 * BPT_OK, BPT_EBACKEND, BPT_ENOMEM, BPT_EFULL */
bpt_status bpt_cuda_start(bpt_device_network *net, bpt_device_work work);

/** Runs a task by itself. */
bpt_status bpt_cuda_run_task(const bpt_device_network *net, const bpt_cuda_task *task);

/** @return bytes of what the host gives to a run */
size_t bpt_cuda_given_bytes(const bpt_device_network *net);

#endif
