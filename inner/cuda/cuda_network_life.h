/** @file inner/cuda/cuda_network_life.h
 * What a network on a GPU does, as inner/device.h asks for it. Private to inner/cuda/.
 *
 * Threads: the one that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_NETWORK_LIFE_H
#define BPT_INNER_CUDA_CUDA_NETWORK_LIFE_H

#include "inner/device.h"

bpt_status bpt__cuda_network_create(bpt_device *device, const bpt_device_wish *wish,
                                    bpt_device_network **net, bpt_network_memory *memory);
void bpt__cuda_network_free(bpt_device_network *net);
bpt_status bpt__cuda_network_begin(bpt_device_network *net, bpt_device_work work,
                                   const bpt_device_run *run);
bpt_status bpt__cuda_network_end(bpt_device_network *net, bpt_device_work work,
                                 bpt_device_outcome *outcome);
bpt_status bpt__cuda_network_get(bpt_device_network *net, bpt_vector which, size_t first,
                                 float *flat);
bpt_status bpt__cuda_network_set(bpt_device_network *net, bpt_vector which, size_t first,
                                 const float *flat);
bpt_status bpt__cuda_network_add_gradients(bpt_device_network *net, const float *flat);
bpt_status bpt__cuda_network_hand_out(bpt_device_network *net, const bpt_gradient_parts *parts);
void bpt__cuda_network_visit(const bpt_device_network *net, bpt_device_visit visit, void *context);
uint64_t bpt__cuda_network_products_ns(const bpt_device_network *net);

#endif
