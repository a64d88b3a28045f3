/** @file inner/cuda/cuda_device.h
 * NVIDIA GPUs as devices (inner/device.h).
 *
 * Threads: as there. */
#ifndef BPT_INNER_CUDA_CUDA_DEVICE_H
#define BPT_INNER_CUDA_CUDA_DEVICE_H

#include "inner/device.h"

extern const bpt_device_kind bpt_cuda_device_kind;

#endif
