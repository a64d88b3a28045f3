/** @file tools/train/job/host_place.h
 * Which of the workers of its host a rank is: they take its GPUs in this order.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_HOST_PLACE_H
#define BPT_TOOLS_HOST_PLACE_H

#include "outer/comm/comm.h"
#include "tools/device_option.h"

/** @param n_workers ranks from this number on are servers, which have no device
 * @return this rank's place among the workers of its host, of which it is one */
bpt_host_place bpt_host_place_of(const bpt_comm *comm, uint32_t n_workers);

#endif
